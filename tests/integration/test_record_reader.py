"""Stored records read page by page, over the real engine: what is seen, in what order, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.folder_lock import FolderLock
from memstream.adapters.ports import VectorStore
from memstream.adapters.vectors.factory import open_store
from memstream.recall.paging import PAGE_MAX, Page, Place
from memstream.recall.record_filters import RecordSelection
from memstream.recall.record_reader import TURNS_MAX, RecordReader
from memstream.schemas.collections import COLLECTIONS
from memstream.schemas.facts import Fact
from memstream.schemas.turns import Owner
from tests.support.api_server import app_over, called
from tests.support.stored_memory import NOW, StoredMemory

T = TypeVar("T")
ACME = RecordSelection("acme")
U1 = Owner(scope="user", id="u1")
U2 = Owner(scope="user", id="u2")


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """One loop for the module: the store lives as long."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(scope="module")
def store(run: Callable[[Coroutine[Any, Any, Any]], Any], tmp_path_factory: Any) -> Iterator[VectorStore]:
    folder: Path = tmp_path_factory.mktemp("reading")
    with FolderLock(folder=folder) as lock:
        assert lock.try_acquire()
        opened = run(open_store(f"embedded://{folder}", embedder=HashingEmbedder().identity, holds_folder=True))
        run(opened.ensure())
        yield opened
        run(opened.close())


class World:
    def __init__(self, store: VectorStore, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self.store = store
        self.memory = StoredMemory(store)
        self.reading = RecordReader(store=store)
        self.do = run
        self.empty()

    def empty(self) -> None:
        async def emptied() -> None:
            for spec in COLLECTIONS:
                for tenant in ("acme", "rival"):
                    gone = [each.id for each in await self.store.select(spec.name, tenant_id=tenant)]
                    await self.store.delete(spec.name, tenant_id=tenant, ids=gone)

        self.do(emptied())

    def facts(self, wanted: RecordSelection = ACME, *, limit: int = 50) -> list[str]:
        return [each.content for each in self.do(self.reading.facts(wanted, limit=limit)).items]

    def pages(self, read: Callable[..., Coroutine[Any, Any, Page[T]]], *, limit: int, **asked: Any) -> list[Page[T]]:
        pages = [self.do(read(limit=limit, **asked))]
        while pages[-1].next is not None:
            pages.append(self.do(read(limit=limit, cursor=pages[-1].next, **asked)))
        return pages


@pytest.fixture
def world(store: VectorStore, run: Any) -> World:
    return World(store, run)


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


class TestPages:
    @settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    @given(times=st.lists(st.integers(0, 3), max_size=14), limit=st.integers(1, 6))
    def test_each_record_once_in_the_order_of_time_and_id(self, world: World, times: list[int], limit: int) -> None:
        async def remembered() -> list[tuple[int, str]]:
            return [
                (minutes, await world.memory.fact(f"Fact {n}", recorded_at=at(minutes)))
                for n, minutes in enumerate(times)
            ]

        world.empty()
        put = sorted(world.do(remembered()), key=lambda each: (-each[0], each[1]))
        pages = world.pages(lambda **asked: world.reading.facts(ACME, **asked), limit=limit)
        assert [each.fact_id for page in pages for each in page.items] == [fact_id for _, fact_id in put]
        assert all(len(page.items) == limit for page in pages[:-1])
        assert len(pages) == max(1, -(-len(times) // limit)), "no empty page at the end"

    def test_what_comes_or_goes_meanwhile_moves_nothing(self, world: World) -> None:
        async def remembered() -> list[str]:
            return [await world.memory.fact(f"Fact {n}", recorded_at=at(n)) for n in range(6)]

        ids = world.do(remembered())
        first: Page[Fact] = world.do(world.reading.facts(ACME, limit=2))
        world.do(world.memory.fact("Newer", recorded_at=at(9)))
        world.do(world.store.delete("facts", tenant_id="acme", ids=[ids[3]]))  # where the next page begins
        rest = world.do(world.reading.facts(ACME, limit=10, cursor=first.next))
        assert [each.content for each in first.items + rest.items] == ["Fact 5", "Fact 4", "Fact 2", "Fact 1", "Fact 0"]
        assert rest.next is None

    def test_times_with_fractions_of_a_second_are_told_apart(self, world: World) -> None:
        async def remembered() -> None:
            for n in range(4):
                await world.memory.fact(f"Fact {n}", recorded_at=NOW + timedelta(microseconds=n))

        world.do(remembered())
        pages = world.pages(lambda **asked: world.reading.facts(ACME, **asked), limit=1)
        assert [page.items[0].content for page in pages] == ["Fact 3", "Fact 2", "Fact 1", "Fact 0"]

    def test_the_ends_of_time_have_their_place(self, world: World) -> None:
        first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
        times = {"First": first, "Then": datetime(1969, 12, 31, tzinfo=UTC), "Last": last}

        async def remembered() -> None:
            for content, when in times.items():
                for n in (1, 2):
                    await world.memory.episode(f"{content} {n}", occurred_at=when)

        world.do(remembered())
        pages = world.pages(lambda **asked: world.reading.episodes(ACME, **asked), limit=1)
        told = [page.items[0].content for page in pages]
        assert [content[:-2] for content in told] == ["Last", "Last", "Then", "Then", "First", "First"]
        assert len(set(told)) == 6

    def test_working_entries_by_id(self, world: World) -> None:
        async def remembered() -> None:
            for n in range(64):
                await world.memory.entry(f"Entry {n}", salience=n / 64)

        world.do(remembered())
        pages = world.pages(lambda **asked: world.reading.working(ACME, **asked), limit=30)
        assert {each.content for page in pages for each in page.items} == {f"Entry {n}" for n in range(64)}
        assert [len(page.items) for page in pages] == [30, 30, 4]
        whole = world.do(world.reading.working(RecordSelection("acme", user_id="u1", session_id="s1")))
        assert [each.content for each in whole.items] == [f"Entry {n}" for n in range(63, -1, -1)]

    def test_turns_are_never_cut(self, world: World) -> None:
        async def remembered() -> None:
            for user in ("u1", "u2"):
                for n in range(5):
                    for index in (1, 0, 2):
                        await world.memory.message(
                            f"{user} {n} {index}", user=user, turn=f"t{n}", message_index=index, occurred_at=at(n // 2)
                        )

        world.do(remembered())
        pages = world.pages(lambda **asked: world.reading.log(RecordSelection("acme", user_id="u1"), **asked), limit=2)
        turns = [turn for page in pages for turn in page.items]
        assert [[each.content for each in turn.messages] for turn in turns] == [
            [f"u1 {turn.turn_id[1:]} {index}" for index in range(3)] for turn in turns
        ]
        assert sorted(turn.turn_id for turn in turns) == [f"t{n}" for n in range(5)]
        assert [turn.occurred_at for turn in turns] == sorted((turn.occurred_at for turn in turns), reverse=True)

    def test_turns_of_an_agent(self, world: World) -> None:
        async def remembered() -> None:
            for n, agent in enumerate(("coach", None, "cook", "coach")):
                for index in (0, 1):
                    await world.memory.message(
                        f"{agent} {index}", turn=f"t{n}", message_index=index, agent_id=agent, occurred_at=at(n)
                    )

        world.do(remembered())
        for agent, expected in (
            ("coach", ["t3", "t0"]),
            ("cook", ["t2"]),
            ("other", []),
            (None, ["t3", "t2", "t1", "t0"]),
        ):
            selection = RecordSelection("acme", user_id="u1", session_id="s1", agent_id=agent)
            found = world.do(world.reading.log(selection)).items
            assert [turn.turn_id for turn in found] == expected
            assert all(len(turn.messages) == 2 for turn in found)

    @pytest.mark.parametrize("limit", [0, -1, PAGE_MAX + 1])
    def test_a_limit_out_of_bounds_is_refused(self, world: World, limit: int) -> None:
        for read in (world.reading.facts, world.reading.episodes, world.reading.working, world.reading.log):
            with pytest.raises(ValueError, match="limit must be 1 to"):
                world.do(read(ACME, limit=limit))
        with pytest.raises(ValueError, match=f"1 to {TURNS_MAX} turns"):
            world.do(world.reading.log(ACME, limit=TURNS_MAX + 1))

    def test_a_cursor_of_something_else_is_refused(self, world: World) -> None:
        other = Place("episodes", "0c96a090-a211-564a-a764-a4b400c046ae", NOW).cursor()
        no_id = Place("facts", "x", NOW).cursor()
        no_time = Place("facts", "0c96a090-a211-564a-a764-a4b400c046ae", None).cursor()
        naive = Place("facts", "0c96a090-a211-564a-a764-a4b400c046ae", NOW).cursor()[:-4]
        for cursor in (other, no_id, no_time, naive, "", "x", "é", "W10", "bnVsbA", "A" * 1_000, "//8"):
            with pytest.raises(ValueError, match="cursor"):
                world.do(world.reading.facts(ACME, cursor=cursor))


class TestSeen:
    def test_facts_by_owner_state_subject_category_session(self, world: World) -> None:
        async def remembered() -> None:
            await world.memory.fact("Works at Stripe")
            await world.memory.fact("Was at Google", state="superseded")
            await world.memory.fact("Likes tea", category="preference", subject="tom")
            await world.memory.fact("Works at Apple", owner=U2)
            await world.memory.fact("Works at Rival", tenant="rival")

        world.do(remembered())
        assert set(world.facts()) == {"Works at Stripe", "Likes tea", "Works at Apple"}
        assert set(world.facts(RecordSelection("acme", owner=U1))) == {"Works at Stripe", "Likes tea"}
        assert world.facts(RecordSelection("acme", state="superseded")) == ["Was at Google"]
        assert len(world.facts(RecordSelection("acme", state="all"))) == 4
        assert world.facts(RecordSelection("acme", subject="tom")) == ["Likes tea"]
        assert world.facts(RecordSelection("acme", category="preference")) == ["Likes tea"]
        assert len(world.facts(RecordSelection("acme", session_id="s1"))) == 3
        assert world.facts(RecordSelection("acme", session_id="s2")) == []

    def test_as_of_and_known_at(self, world: World) -> None:
        def ago(days: int) -> datetime:
            return NOW - timedelta(days=days)

        async def remembered() -> None:
            await world.memory.fact(
                "Works at Google", state="superseded", valid_from=ago(30), valid_to=ago(10), recorded_at=ago(30)
            )
            await world.memory.fact("Works at Stripe", valid_from=ago(10), recorded_at=ago(10))
            await world.memory.fact(
                "Works at Apple", state="invalidated", valid_from=ago(30), recorded_at=ago(30), expired_at=ago(15)
            )
            await world.memory.fact("Born in Oslo", valid_from=ago(9_000), recorded_at=ago(5))

        world.do(remembered())
        assert set(world.facts(RecordSelection("acme", as_of=ago(20)))) == {"Works at Google", "Born in Oslo"}
        assert set(world.facts(RecordSelection("acme", known_at=ago(20)))) == {"Works at Google", "Works at Apple"}
        assert set(world.facts(RecordSelection("acme", known_at=ago(12)))) == {"Works at Google"}
        assert set(world.facts(RecordSelection("acme", known_at=ago(7)))) == {"Works at Stripe"}
        assert set(world.facts(RecordSelection("acme", as_of=ago(20), known_at=ago(7)))) == {"Works at Google"}

    def test_secrets_only_up_to_the_ceiling(self, world: World) -> None:
        async def remembered() -> list[str]:
            secret: dict[str, Any] = {"sensitivity": "secret"}
            await world.memory.episode("Told the pin", **secret)
            await world.memory.entry("Looks for the pin", **secret)
            await world.memory.message("My pin is 1234", **secret)
            return [await world.memory.fact("Has a pin of 1234", **secret)]

        [fact_id] = world.do(remembered())
        for read in (world.reading.facts, world.reading.episodes, world.reading.working, world.reading.log):
            assert world.do(read(ACME)).items == ()
            assert len(world.do(read(RecordSelection("acme", ceiling="secret"))).items) == 1
        assert world.do(world.reading.fact("acme", fact_id)) is None
        assert world.do(world.reading.fact("acme", fact_id, ceiling="secret")) is not None

    def test_one_fact_is_its_tenants_and_its_owners(self, world: World) -> None:
        fact_id = world.do(world.memory.fact("Works at Stripe"))
        assert world.do(world.reading.fact("acme", fact_id)).content == "Works at Stripe"
        assert world.do(world.reading.fact("acme", fact_id, sees=lambda owner: owner == U1)) is not None
        assert world.do(world.reading.fact("acme", fact_id, sees=lambda owner: owner == U2)) is None
        assert world.do(world.reading.fact("rival", fact_id)) is None
        assert world.do(world.reading.fact("acme", "no-such-fact")) is None

    def test_deleted_episodes_only_with_all_and_gists_like_any(self, world: World) -> None:
        async def remembered() -> None:
            await world.memory.episode("Kept thing")
            await world.memory.episode("Deleted thing", deleted_at=NOW)
            await world.memory.episode("A gist of a thing", archived_at=NOW)

        world.do(remembered())
        told = {each.content: each.archived_at for each in world.do(world.reading.episodes(ACME)).items}
        assert told == {"Kept thing": None, "A gist of a thing": NOW}
        assert len(world.do(world.reading.episodes(RecordSelection("acme", state="all"))).items) == 3


def test_collections_that_were_never_made_hold_nothing(run: Any, tmp_path: Path) -> None:
    async def read() -> list[Page[Any]]:
        store = await open_store(f"embedded://{tmp_path}", embedder=HashingEmbedder().identity, holds_folder=True)
        reading = RecordReader(store=store)
        pages = [await read(ACME) for read in (reading.facts, reading.episodes, reading.working, reading.log)]
        assert await reading.fact("acme", "0c96a090-a211-564a-a764-a4b400c046ae") is None
        await store.close()
        return pages

    with FolderLock(folder=tmp_path) as lock:
        assert lock.try_acquire()
        assert run(read()) == [Page(())] * 4


# ------------------------------------------------------------------------------------------------ what facts say
def test_facts_are_asked_for_by_confidence_tags_metadata_and_times(world: World) -> None:
    day = timedelta(days=1)
    rows: list[tuple[str, dict[str, Any]]] = [
        ("Works at Stripe", {"confidence": 0.9, "tags": ("work", "crm"), "metadata": {"source": "crm", "row": 7}}),
        ("Likes tea", {"confidence": 0.5, "tags": ("work",), "recorded_at": NOW - day}),
        ("Lives in Rome", {"confidence": 0.7, "recorded_at": NOW + day}),
    ]
    for content, fields in rows:
        world.do(world.memory.fact(content, **fields))

    def found(**asked: Any) -> set[str]:
        return set(world.facts(RecordSelection("acme", **asked)))

    assert found(min_confidence=0.7) == {"Works at Stripe", "Lives in Rome"}
    assert found(tags=("work",)) == {"Works at Stripe", "Likes tea"}
    assert found(tags=("work", "crm")) == {"Works at Stripe"}
    assert found(metadata={"source": "crm"}) == found(metadata={"row": 7}) == {"Works at Stripe"}
    assert found(metadata={"source": "mail"}) == set()
    assert found(recorded_from=NOW) == {"Works at Stripe", "Lives in Rome"}
    assert found(recorded_from=NOW - day, recorded_to=NOW) == {"Works at Stripe", "Likes tea"}
    with pytest.raises(ValueError, match="cannot be compared"):
        world.facts(RecordSelection("acme", metadata={"source": None}))
    with pytest.raises(ValueError, match="recorded_to needs a time zone"):
        RecordSelection("acme", recorded_to=NOW.replace(tzinfo=None))


def test_over_http_the_same_is_asked_by_parameters(world: World) -> None:
    world.do(world.memory.fact("Works at Stripe", confidence=0.9, tags=("work", "crm"), metadata={"source": "crm:eu"}))
    world.do(world.memory.fact("Likes tea", confidence=0.5, tags=("work",)))

    async def asked(query: str) -> Any:
        async with called(app_over(store=world.store)) as client:
            answer = await client.get(f"/v1/facts?tenant_id=acme&{query}")
        if answer.status_code != 200:
            return answer.json()["errors"][0]["field"]
        return [each["content"] for each in answer.json()["items"]]

    assert world.do(asked("tags=work&tags=crm&min_confidence=0.6")) == ["Works at Stripe"]
    assert world.do(asked("metadata=source:crm:eu&recorded_to=2099-01-01T00:00:00Z")) == ["Works at Stripe"]
    assert sorted(world.do(asked("tags=work"))) == ["Likes tea", "Works at Stripe"]
    assert world.do(asked("min_confidence=2")) == "min_confidence"
    assert world.do(asked("metadata=nothing")).startswith("metadata")
    assert world.do(asked("recorded_from=yesterday")) == "recorded_from"
