"""A change of the embedder: the copies are what the new embedder would have stored, whatever ends the command."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.ports import Embedder, EmbedderIdentity, Point
from memstream.adapters.vectors import sparse_form
from memstream.adapters.vectors.embedder_change import ChangePhase, ChangeRefused, ChangeState
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.agents.recorder.stage import Recorder
from memstream.cli.wiring.reembedding import Reembedding, ReembeddingReport
from memstream.memory.policies import RoutingPolicy, SessionLogPolicy
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.schemas import ids
from memstream.schemas.collections import EPISODES, FACTS, TURNS
from memstream.schemas.errors import Fatal, Poison, Transient
from memstream.schemas.periods import Period
from memstream.schemas.topics import TURNS as TURNS_TOPIC
from memstream.schemas.turns import turn_value
from tests.support.embedded_stage import Killed
from tests.support.model_server import bag_of_words
from tests.support.stage_harness import StageHarness, Topics
from tests.support.stored_memory import StoredMemory
from tests.support.vector_backends import PLACES, Backend, make_point, place

VECTORS = (EPISODES, FACTS, TURNS)
CHANGES = (
    "create_collection",
    "create_payload_index",
    "delete",
    "delete_collection",
    "update_collection_aliases",
    "upsert",
)
"""The engine's methods that change something durable."""


class WordEmbedder:
    """An embedder with few dimensions. It refuses texts with the word in `refuses`."""

    def __init__(self, name: str = "openai:words", *, dimension: int = 32) -> None:
        self.identity = EmbedderIdentity(name, dimension)
        self.refuses = ""
        self.texts = 0

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        if self.refuses and any(self.refuses in text for text in texts):
            raise Poison("refused_by_model", "no")
        self.texts += len(texts)
        vectors = [bag_of_words(text, self.identity.dimension) for text in texts]
        lengths = [sum(number * number for number in vector) ** 0.5 for vector in vectors]
        return [[number / length for number in vector] for vector, length in zip(vectors, lengths, strict=True)]

    async def close(self) -> None:
        return None


@pytest.fixture(params=PLACES)
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    async with place(request.param, tmp_path / "held") as empty:
        yield empty


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Backend]:
    async with place("embedded", tmp_path / "folder") as empty:
        yield empty


async def filled(store: PeriodStore, embedder: Embedder) -> None:
    """Write facts, episodes and turns of two tenants as the stages do, with this embedder. Turns are in two periods."""
    await store.ensure()
    await store.open_period(TURNS, Period(2026, 3), newest=Period(2026, 3))
    memory = StoredMemory(store)
    memory.embedder = embedder  # type: ignore[assignment]
    for tenant in ("acme", "other"):
        for content in ("Works at Stripe", "Lives in Oslo", "Likes green tea"):
            await memory.fact(content, tenant=tenant)
        await memory.episode("Moved from Oslo to Bergen", tenant=tenant)
        await recorded(store, embedder, tenant, "Where do you work?", "At Stripe, since May.", "Good for you!")


async def recorded(store: PeriodStore, embedder: Embedder, tenant: str, *texts: str) -> None:
    """Record one turn for each text, with an answer of a tool without a place in the thread, and an empty message."""

    def recorder(harness: StageHarness) -> Recorder:
        return Recorder(
            store=store,
            embedder=embedder,
            calls=harness.calls,
            metrics=harness.metrics,
            partitions=1,
            secrets=SecretFilter(),
            routing=RoutingPolicy(),
            session_log=SessionLogPolicy(),
        )

    harness, topics = StageHarness(name="recorder", make=recorder), Topics()
    session = (tenant, "u1", "s1")
    for number, text in enumerate(texts):
        said = [{"role": "user", "content": text}, {"role": "tool", "content": f"tool {number}"}]
        said.append({"role": "assistant", "content": ""})
        value = turn_value(
            {"tenant_id": tenant, "user_id": "u1", "session_id": "s1", "turn_id": f"t{number}", "messages": said}
        )
        await harness.deliver(topics.record(TURNS_TOPIC.name, ids.session_key(*session).encode(), value, partition=0))


async def content(store: PeriodStore) -> dict[str, dict[str, tuple[dict[str, Any], dict[str, Any]]]]:
    """Return payload and vectors of every point behind the readers' aliases, by collection and id."""
    found: dict[str, dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {}
    for pair in (await store.embedder_change().state()).pairs:
        rows, _ = await store._engine.scroll(pair.used, limit=1000, with_vectors=True)
        found[pair.aliases[0]] = {str(row.id): (row.payload or {}, _plain(row.vector)) for row in rows}
    return found


def _plain(vectors: Any) -> dict[str, Any]:
    """Return vectors as rounded numbers, in any form of the engine."""
    plain = {}
    for name, vector in (vectors or {}).items():
        pairs = enumerate(vector) if isinstance(vector, list) else zip(vector.indices, vector.values, strict=True)
        plain[name] = {place: round(number, 4) for place, number in pairs if abs(number) > 1e-5}
    return plain


def silent(collection: str, done: int, total: int) -> None:
    assert done <= total


async def moved(store: PeriodStore, new: Embedder, *, batch: int = 2) -> ReembeddingReport:
    change = store.embedder_change()
    state = await change.begin(new.identity)
    report = await Reembedding(change=change, store=store, embedder=new, batch=batch).fill(state, silent)
    await change.switch()
    return report


async def phase(store: PeriodStore) -> ChangePhase:
    return (await store.embedder_change().state()).phase


async def usable(store: PeriodStore) -> bool:
    """Return whether this store's embedder is the one of every collection."""
    try:
        await store.ensure(*VECTORS)
    except Fatal:
        return False
    return True


@pytest.mark.parametrize(
    ("old", "new"),
    [(HashingEmbedder, WordEmbedder), (WordEmbedder, HashingEmbedder)],
    ids=["from hashing", "to hashing"],
)
async def test_the_copies_are_what_the_new_embedder_would_have_stored(
    old: Callable[[], Embedder], new: Callable[[], Embedder], backend: Backend, tmp_path: Path
) -> None:
    async with place("embedded", tmp_path / "wanted") as other:
        direct = await other.open(new().identity)
        await filled(direct, new())
        wanted = await content(direct)
        await direct.close()
    store = await backend.open(old().identity)
    await filled(store, old())
    before = await content(store)
    report = await moved(store, new())
    assert await content(store) == wanted
    points = sum(map(len, wanted.values()))
    assert report == ReembeddingReport(read=points, written=points)
    assert await phase(store) == "switched"
    await store.embedder_change().back()
    assert await content(store) == before
    await moved(store, new())
    await store.embedder_change().drop_old()
    assert await phase(store) == "locked"
    names = [each.name for each in (await store._engine.get_collections()).collections]
    assert not [name for name in names if f"__{old().identity.slug}_" in name]
    await store.close()
    store = await backend.open(new().identity)
    assert await usable(store)
    assert await content(store) == wanted
    [near] = await store.nearest(
        FACTS, tenant_id="acme", dense=(await new().embed(["Lives in Oslo"], tenant_id="acme"))[0], limit=1
    )
    assert near.payload["content"] == "Lives in Oslo"
    await store.close()


async def test_a_killed_command_leaves_one_whole_memory_and_continues(folder: Backend) -> None:
    """Each run is killed after one more change of the engine than the last."""
    old, new = HashingEmbedder(), WordEmbedder()
    store = await folder.open(old.identity)
    await filled(store, old)
    before = await content(store)
    await store.close()
    seen: set[ChangePhase] = set()
    for allowed in range(1, 1000):
        store = await folder.open(old.identity)
        try:
            with_kill(store, allowed)
            await moved(store, new)
            killed = False
        except Killed:
            killed = True
        except ChangeRefused:  # the run before was killed after its switch
            killed = False
        await store.close()
        store = await folder.open(old.identity)
        seen.add(await phase(store))
        assert await usable(store) == (await phase(store) != "switched")
        if await phase(store) != "switched":
            assert await content(store) == before
        await store.close()
        if not killed:
            break
    assert seen == {"locked", "filling", "switched"}
    store = await folder.open(new.identity)
    assert await usable(store)
    after = await content(store)
    assert {name: set(points) for name, points in after.items()} == {
        name: set(points) for name, points in before.items()
    }
    assert all(
        set(vectors) == set(before[name][point][1])
        for name, points in after.items()
        for point, (_, vectors) in points.items()
    )
    await store.close()


@pytest.mark.parametrize("step", ["back", "drop_old"])
async def test_a_killed_end_of_the_change_is_repeated(step: str, folder: Backend) -> None:
    old, new = HashingEmbedder(), WordEmbedder()
    store = await folder.open(old.identity)
    await filled(store, old)
    before = await content(store)
    await moved(store, new)
    wanted = before if step == "back" else await content(store)
    await store.close()
    for allowed in range(1, 1000):
        store = await folder.open(old.identity)
        killed = False
        try:
            with_kill(store, allowed)
            await getattr(store.embedder_change(), step)()
        except Killed:
            killed = True
        await store.close()
        if not killed:
            break
    store = await folder.open(old.identity)
    assert allowed > 2
    assert await phase(store) == "locked"
    assert await content(store) == wanted
    await store.close()


def with_kill(store: PeriodStore, allowed: int) -> None:
    """End the command after `allowed` changes of the engine."""
    left = [allowed]

    def counted(method: Any) -> Any:
        async def call(*arguments: Any, **named: Any) -> Any:
            result = await method(*arguments, **named)
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return result

        return call

    for name in CHANGES:
        setattr(store._engine, name, counted(getattr(store._engine, name)))


async def test_a_later_run_copies_what_changed_and_removes_what_is_gone(folder: Backend) -> None:
    """A worker of an earlier version ran between two runs."""
    old, new = HashingEmbedder(), WordEmbedder()
    store = await folder.open(old.identity)
    await filled(store, old)
    change = store.embedder_change()
    filling = Reembedding(change=change, store=store, embedder=new, batch=2)
    state = await change.begin(new.identity)
    first = await filling.fill(state, silent)
    assert await filling.fill(state, silent) == ReembeddingReport(read=first.read, kept=first.read)
    kept, gone, changed = [each.id for each in await store.select(FACTS, tenant_id="acme")]
    await store.delete(FACTS, tenant_id="acme", ids=[gone])
    [row] = (await store.get(FACTS, tenant_id="acme", ids=[changed])).values()
    [vector] = await old.embed(["Lives in Bergen"], tenant_id="acme")
    payload = {**row.payload, "content": "Lives in Bergen", "version": 2}
    await store.put(FACTS, [Point(id=changed, payload=payload, dense=vector, text="Lives in Bergen")])
    again = await filling.fill(state, silent)
    assert (again.written, again.removed) == (1, 1)
    await change.switch()
    facts = (await content(store))[FACTS]
    assert gone not in facts
    assert kept in facts
    assert facts[changed][0]["content"] == "Lives in Bergen"
    [dense] = await new.embed(["Lives in Bergen"], tenant_id="acme")
    assert facts[changed][1]["dense"] == _plain({"dense": dense})["dense"]
    await store.close()


async def test_a_refused_text_is_still_found_by_its_words(folder: Backend) -> None:
    old, new = HashingEmbedder(), WordEmbedder()
    new.refuses = "green"
    store = await folder.open(old.identity)
    await filled(store, old)
    report = await moved(store, new, batch=100)
    assert report.not_embedded == 2
    [found] = await store.lexical(FACTS, tenant_id="acme", text="tea", limit=5)
    assert found.payload["content"] == "Likes green tea"
    await store.close()


async def test_steps_that_do_not_fit_are_refused_and_change_nothing(folder: Backend) -> None:
    old, new, third = HashingEmbedder(), WordEmbedder(), WordEmbedder("openai:third", dimension=16)
    store = await folder.open(old.identity)
    change = store.embedder_change()
    with pytest.raises(ChangeRefused, match="no memory"):
        await change.begin(new.identity)
    await filled(store, old)
    with pytest.raises(ChangeRefused, match="has the embedder hashing already"):
        await change.begin(old.identity)
    with pytest.raises(ChangeRefused, match="same name"):
        await change.begin(EmbedderIdentity("Hashing", 8))
    with pytest.raises(ChangeRefused, match="run the command again"):
        await change.switch()
    await change.drop_old()
    assert await phase(store) == "locked"
    await change.begin(new.identity)
    with pytest.raises(ChangeRefused, match="change to openai:words is under way"):
        await change.begin(third.identity)
    with pytest.raises(ChangeRefused, match="not switched yet"):
        await change.drop_old()
    await moved(store, new)
    with pytest.raises(ChangeRefused, match="--drop-old"):
        await change.begin(third.identity)
    assert await phase(store) == "switched"
    await store.close()


def test_aliases_alone_record_the_change() -> None:
    aliases = {"facts": "facts__a_v1", "turns": "turns__a_v1", "turns_2026q4": "turns__a_v1", "working": "working_v1"}
    state = ChangeState.of(aliases | {"next_turns": "turns__b_v1", "next_turns_2026q4": "turns__b_v1"})
    assert state.phase == "filling"
    assert [(pair.aliases, pair.used, pair.other) for pair in state.pairs] == [
        (("facts",), "facts__a_v1", None),
        (("turns", "turns_2026q4"), "turns__a_v1", "turns__b_v1"),
    ]
    assert ChangeState.of(aliases).phase == "locked"


async def test_a_process_with_the_old_embedder_reads_and_writes_nothing_after_the_switch(
    folder: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both embedders have the same dimension, so the engine would accept the vectors."""
    monkeypatch.setattr(sparse_form, "LOOK_SECONDS", 0.0)
    old, new = WordEmbedder("openai:old"), WordEmbedder("openai:new")
    store = await folder.open(old.identity)
    await filled(store, old)
    await moved(store, new)
    [vector] = await old.embed(["Lives in Oslo"], tenant_id="acme")
    with pytest.raises(Transient, match="vectors of openai:new now") as refused:
        await store.nearest(FACTS, tenant_id="acme", dense=vector, limit=1)
    assert "MEMSTREAM_EMBEDDER=openai:new" in refused.value.remedy
    with pytest.raises(Transient, match="vectors of openai:new now"):
        await store.put(FACTS, [make_point("late")])
    await store.close()
