"""How turns are found: what the recorder indexed, asked by recall, over the real engine."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from memstream.adapters.ports import Embedder, EmbedderIdentity, Point, RerankCandidate, StoredPoint, VectorStore
from memstream.memory.policies import FusionPolicy, RecallPolicy
from memstream.recall.request import RecallRequest
from memstream.recall.service import RecallResult, RecallService
from memstream.recall.stated_turns import statements_of
from memstream.schemas.collections import FACTS
from memstream.schemas.errors import Fatal, Transient
from memstream.schemas.facts import Evidence, StoredFact
from tests.support.recall_service import TEAM, U1, Faulty, World
from tests.support.stored_memory import NOW

NOBODY = RecallPolicy(fusion=FusionPolicy(speaker=0))
TURNS = RecallRequest(tenant_id="acme", owner=U1, tiers=("turns",))


class Embedded:
    """The embedder of the tests, with the texts that it was asked for."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.asked: list[list[str]] = []

    @property
    def identity(self) -> EmbedderIdentity:
        return self._inner.identity

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        self.asked.append(list(texts))
        return await self._inner.embed(texts, tenant_id=tenant_id)

    async def close(self) -> None:
        return None


class Requests:
    """A store that tells what it was asked."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self.asked: list[str] = []
        self.read = Counter[str]()
        """How many records came back."""

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)

        async def asked(collection: str, **arguments: Any) -> list[StoredPoint]:
            self.asked.append(f"{collection}.{name}")
            found = cast(list[StoredPoint], await real(collection, **arguments))
            if name == "select":
                self.read[f"{collection}.{name}"] += len(found)
            return found

        return asked


class NoChange:
    """A reranker that keeps the order, with what it was shown."""

    shown: Sequence[RerankCandidate] = ()
    as_speaker: str | None = None

    async def rerank(
        self, cue: str, candidates: Sequence[RerankCandidate], *, tenant_id: str, as_speaker: str | None = None
    ) -> list[int]:
        self.shown, self.as_speaker = candidates, as_speaker
        return list(range(len(candidates)))

    async def close(self) -> None:
        return None


@pytest.fixture
def talk(remembering: World) -> World:
    """Three who talk, and a fourth who is talked of."""

    async def said() -> None:
        message = remembering.memory.message
        await message("Ann, will you go to Oslo in May?", name="Bob", session="s1")
        await message("My plans are to hike in May", name="Ann", session="s1")
        await message("My plans are to swim in May", name="Bob", session="s2")
        await message("Carla has plans in May", name="Dan", session="s2")

    remembering.do(said())
    return remembering


def found(recalled: RecallResult) -> list[str]:
    return [each.item.content for each in recalled.items]


@pytest.mark.parametrize(("name", "best"), [("Ann", "hike"), ("Bob", "swim")])
def test_what_the_named_speaker_said_comes_first(talk: World, name: str, best: str) -> None:
    cue = f"What are the plans of {name} in May?"
    recalled = talk.recall(TURNS, cue=cue)
    assert recalled.missing == ()
    assert best in found(recalled)[0]
    spoken = {"hike": "Ann", "swim": "Bob"}
    plain = talk.recall(TURNS, cue=f"What are the plans of {name.lower()} in May?", policy=NOBODY)
    assert {each.item.id for each in recalled.items} == {each.item.id for each in plain.items}
    for word, whose in spoken.items():
        [match] = [each.match for each in recalled.items if word in each.item.content]
        assert (match > 1 / 1.3 + 1e-6) is (whose == name)  # engines differ in the last digit


def test_the_question_is_put_in_the_first_person_where_meanings_are_compared(talk: World) -> None:
    embedder = Embedded(talk.memory.embedder)
    request = replace(TURNS, tiers=("turns", "semantic"))
    talk.recall(request, cue="What are Ann's plans?", embedder=embedder)
    assert embedder.asked == [["What are Ann's plans?", "What are my plans?"]]
    talk.recall(TURNS, cue="What are Ann's plans?", embedder=embedder)
    assert embedder.asked[1:] == [["What are my plans?"]]


@pytest.mark.parametrize("cue", ["What are Ann's and Bob's plans?", "What are Carla's plans?", "What are the plans?"])
def test_of_several_or_of_nobody_who_speaks_nothing_is_preferred(talk: World, cue: str) -> None:
    embedder = Embedded(talk.memory.embedder)
    assert talk.recall(TURNS, cue=cue, embedder=embedder) == talk.recall(TURNS, cue=cue, policy=NOBODY)
    assert embedder.asked == [[cue]]


def test_nobody_is_preferred_when_it_is_not_known_whether_another_is_named(talk: World) -> None:
    """Ann is found, and then the store does not answer whether Bob speaks too."""
    embedder = Embedded(talk.memory.embedder)
    away = Transient("store", "Qdrant does not answer")

    class SecondLook(Requests):
        def __getattr__(self, name: str) -> Any:
            if Counter(self.asked)["turns.select"] == 1 and name == "select":
                return getattr(Faulty(self._store, of=["turns.select"], fault=away), name)
            return super().__getattr__(name)

    store = cast(VectorStore, SecondLook(talk.store))
    talk.recall(TURNS, cue="What are Ann's and Bob's plans?", embedder=embedder, store=store)
    assert embedder.asked == [["What are Ann's and Bob's plans?"]]


def test_an_assistant_of_one_user_is_read_as_ever(remembering: World) -> None:
    async def said() -> None:
        for n, text in enumerate(["User and Assistant went to Oslo", "Oslo is fine", "Assistant, where is Oslo?"]):
            await remembering.memory.message(text, role="user" if n % 2 else "assistant", session=f"s{n}")

    remembering.do(said())
    for cue in ("What did the Assistant say of Oslo?", "User", "Where was the User?"):
        assert remembering.recall(TURNS, cue=cue) == remembering.recall(TURNS, cue=cue, policy=NOBODY)


def test_only_speakers_that_the_reader_may_hear_are_known(remembering: World) -> None:
    async def said() -> None:
        await remembering.memory.message("plans", name="Ann", session="s1", sensitivity="secret")
        await remembering.memory.message("plans", name="Ann", tenant="rival")
        await remembering.memory.message("plans of mine", name="Bob")

    remembering.do(said())
    embedder = Embedded(remembering.memory.embedder)
    remembering.recall(TURNS, cue="What are Ann's plans?", embedder=embedder)
    assert embedder.asked == [["What are Ann's plans?"]]
    remembering.recall(replace(TURNS, ceiling="secret"), cue="What are Ann's plans?", embedder=embedder)
    assert embedder.asked[1:] == [["What are my plans?"]]


@pytest.mark.parametrize(
    ("cue", "asked"),
    [
        ("what are my plans?", []),
        ("Where is Oslo?", ["whether Oslo speaks"]),
        ("What are Ann's plans?", ["whether Ann speaks", "what of it Ann said"]),
        ("What are Ann's plans in Oslo?", ["whether Ann speaks", "whether Oslo does", "what of it Ann said"]),
    ],
)
def test_a_cue_costs_a_search_and_a_read_a_collection_and_a_look_at_names(
    talk: World, cue: str, asked: list[str]
) -> None:
    store = Requests(talk.store)
    talk.recall(replace(TURNS, tiers=("turns", "semantic", "episodic")), cue=cue, store=cast(VectorStore, store))
    assert Counter(each for each in store.asked if not each.endswith(".exists")) == Counter(
        {
            **dict.fromkeys(("episodes.search", "facts.search", "turns.search"), 1),
            "turns.select": 1 + len(asked),  # the other tiers hold nothing
            "facts.select": 2,  # what the owner has forgotten, and other names of subjects
        }
    )


def test_however_much_was_forgotten_each_forgotten_fact_counts(remembering: World) -> None:
    """The ids of the many facts are lower, and each has a turn of the same id in another session."""
    quote = "I collect stamps"

    async def stored() -> Mapping[tuple[str, str], Sequence[str]]:
        memory = remembering.memory
        await memory.message(quote, turn="t1")
        await memory.episode("The user spoke of a hobby", turn_ids=["t1"], observation_id=str(uuid.UUID(int=1)))
        identity = await memory.fact(quote, state="forgotten", fact_id=str(uuid.UUID(int=2**127)))
        rows = await memory.store.get(FACTS, tenant_id="acme", ids=[identity])
        row = StoredFact.from_payload(rows[identity].payload)
        [dense] = await memory.embedder.embed(["x"], tenant_id="acme")
        points = []
        for n in range(1, 1_002):
            evidence = row.evidence[0].model_copy(update={"session_id": f"x{n}", "quote": "other"})
            other = row.model_copy(update={"fact_id": str(uuid.UUID(int=n)), "evidence": (evidence,), "content": "x"})
            points.append(Point(other.fact_id, other.to_payload(), dense=dense, text="x"))
        await memory.store.put(FACTS, points)
        return await statements_of(memory.store, "acme", [U1.key("acme")], {("s1", "t1")})

    stated = remembering.do(stored())
    assert quote in stated["s1", "t1"]
    recalled = remembering.recall(TURNS, cue="stamps", tiers=("turns", "episodic"))
    assert found(recalled) == [], "neither the message nor the summary of the turn"


def test_a_forgotten_fact_of_a_group_hides_no_message_of_another_user(remembering: World) -> None:
    async def stored() -> None:
        await remembering.memory.message("I collect stamps", turn="t1")
        said = Evidence(
            turn_id="t1", session_id="s1", observation_id=str(uuid.UUID(int=1)), occurred_at=NOW, quote="stamps",
            user_id="u2",
        )  # fmt: skip
        await remembering.memory.fact("Likes stamps", owner=TEAM, state="forgotten", evidence=(said,))

    remembering.do(stored())
    assert found(remembering.recall(TURNS, cue="stamps", groups=("team",))) == ["I collect stamps"]


def test_a_list_of_no_weight_is_not_asked_for(talk: World) -> None:
    words = RecallPolicy(fusion=FusionPolicy(dense=0, windowed=0))
    embedder = Embedded(talk.memory.embedder)
    recalled = talk.recall(TURNS, cue="hike", policy=words, embedder=embedder)
    assert found(recalled) == ["My plans are to hike in May"]
    assert embedder.asked == []
    meaning = RecallPolicy(fusion=FusionPolicy(windowed=0, lexical=0))
    recalled = talk.recall(TURNS, cue="hike", policy=meaning)
    assert {rank.list for each in recalled.items for rank in each.ranks} == {"dense"}


class Named(Embedded):
    """The embedder of the tests under another name."""

    @property
    def identity(self) -> EmbedderIdentity:
        return replace(self._inner.identity, name="fastembed:some-model")


def test_windows_are_searched_where_the_embedder_compares_meanings(talk: World) -> None:
    def lists(embedder: Embedder) -> set[str]:
        found = talk.recall(TURNS, cue="plans in May", embedder=embedder)
        return {rank.list for each in found.items for rank in each.ranks}

    assert lists(talk.memory.embedder) == {"dense", "lexical"}
    assert lists(Named(talk.memory.embedder)) == {"dense", "windowed", "lexical"}


def test_what_the_assistant_said_ranks_behind_what_the_user_said(remembering: World) -> None:
    async def said() -> None:
        for n, role in enumerate(["assistant", "user", "assistant", "tool"]):
            await remembering.memory.message("The flat in Oslo is rented until May.", role=role, session=f"s{n}")

    remembering.do(said())
    first, *others = remembering.recall(TURNS, cue="How long is the flat in Oslo rented?").items
    assert (first.role, "replies" in first.item.parts) == ("user", False)
    for each in others:
        parts = each.item.parts
        assert parts["replies"] == pytest.approx(-0.2 * (parts["match"] + parts["recency"]))


def test_a_broken_invariant_in_one_search_is_told_as_it_is(talk: World) -> None:
    class Foreign(Requests):
        async def search(self, *_: Any, **__: Any) -> Any:
            raise Fatal("of another tenant")

    with pytest.raises(Fatal, match="of another tenant"):
        talk.recall(TURNS, cue="plans", store=cast(VectorStore, Foreign(talk.store)))


def test_the_best_messages_are_read_and_as_many_as_an_answer_may_need(remembering: World) -> None:
    async def said() -> None:
        for n in range(70):
            await remembering.memory.message(f"tea of kind {n}", session=f"s{n % 5}")

    remembering.do(said())
    store, asked = Requests(remembering.store), {"cue": "tea", "policy": NOBODY}
    for limit, read in ((1, 30), (10, 30), (20, 60), (100, 70)):
        store.read.clear()
        found = remembering.recall(TURNS, limit=limit, store=cast(VectorStore, store), **asked)
        assert +store.read == {"turns.select": read}
        assert found.items == remembering.recall(TURNS, limit=100, **asked).items[:limit]

    reranker = NoChange()
    remembering.recall(TURNS, cue="tea", reranker=reranker, policy=replace(NOBODY, rerank_pool=50))
    assert len(reranker.shown) == 50


def test_a_reranker_is_told_whom_the_cue_names(talk: World) -> None:
    reranker = NoChange()
    talk.recall(TURNS, cue="What are Ann's plans?", reranker=reranker)
    assert reranker.as_speaker == "What are my plans?"
    assert {each.text for each in reranker.shown if each.by_speaker} == {"My plans are to hike in May"}
    assert not all(each.by_speaker for each in reranker.shown)
    talk.recall(TURNS, cue="what are the plans?", reranker=reranker)
    assert reranker.as_speaker is None
    assert not any(each.by_speaker for each in reranker.shown)


def test_who_chooses_from_the_candidates_has_all_messages(remembering: World) -> None:
    async def said() -> None:
        for n in range(40):
            await remembering.memory.message(f"tea of kind {n}")

    remembering.do(said())
    service = RecallService(store=remembering.store, embedder=remembering.memory.embedder, policy=NOBODY)
    found = remembering.do(service.shortlist(replace(TURNS, cue="tea", limit=1), tuple, now=NOW))
    assert len(found.items) == 40
