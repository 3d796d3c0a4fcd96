"""The recall service over the real engine: what is found and how it is told, what is missing, and who sees what."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.folders import FolderLock
from memstream.adapters.ports import Embedder, Found, VectorStore
from memstream.adapters.vectors.factory import open_store
from memstream.memory.policies import RecallPolicy
from memstream.recall.request import LIMIT_MAX, RecallRequest, SessionRef
from memstream.recall.service import Recall, Recalled
from memstream.schemas.collections import COLLECTIONS
from memstream.schemas.errors import Fatal, Poison, Transient
from memstream.schemas.recalled import TIERS, Tier
from memstream.schemas.turns import Owner
from tests.support.remembered import NOW, Remembered

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, Any]], Any]
EVERY = tuple(spec.name for spec in COLLECTIONS)
U1 = Owner(scope="user", id="u1")
TEAM = Owner(scope="group", id="team")
PLAIN = RecallRequest(tenant_id="acme", owner=U1, session=SessionRef("u1", "s1"))
POLICY = RecallPolicy()


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """One loop for the module: the store lives as long."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(scope="module")
def store(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VectorStore]:
    folder: Path = tmp_path_factory.mktemp("recall")
    with FolderLock(folder=folder) as lock:
        assert lock.try_acquire()
        opened = run(open_store(f"embedded://{folder}", embedder=HashingEmbedder().identity, holds_folder=True))
        run(opened.ensure())
        yield opened
        run(opened.close())


class World:
    """A memory of its own for each test: tenants are emptied before."""

    def __init__(self, store: VectorStore, run: Run) -> None:
        self.store = store
        self.memory = Remembered(store)
        self._run = run

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return cast(T, self._run(work))

    def recall(
        self,
        request: RecallRequest = PLAIN,
        *,
        store: VectorStore | None = None,
        embedder: Embedder | None = None,
        policy: RecallPolicy = POLICY,
        collections: Sequence[str] = EVERY,
        **asked: Any,
    ) -> Recalled:
        service = Recall(
            store=store or self.store,
            embedder=embedder or self.memory.embedder,
            collections=collections,
            policy=policy,
        )
        return self.do(service.recall(replace(request, **asked), now=NOW))

    def told(self, request: RecallRequest = PLAIN, **asked: Any) -> list[tuple[Tier, str]]:
        return [(each.item.tier, each.item.content) for each in self.recall(request, **asked).items]


@pytest.fixture
def world(store: VectorStore, run: Run) -> World:
    async def emptied() -> None:
        for collection in EVERY:
            for tenant in ("acme", "rival"):
                gone = [each.id for each in await store.select(collection, tenant_id=tenant)]
                await store.delete(collection, tenant_id=tenant, ids=gone)

    run(emptied())
    return World(store, run)


class TestFound:
    def test_each_tier_is_found_and_explained(self, world: World) -> None:
        async def remembered() -> list[str]:
            return [
                await world.memory.fact("Works at Stripe"),
                await world.memory.entry("Prepares a talk on Stripe webhooks"),
                await world.memory.episode("Signed the contract with Stripe in May"),
                await world.memory.message("My new badge says Stripe, and the coffee is good", session="s7"),
            ]

        fact, entry, episode, message = world.do(remembered())
        recalled = world.recall(cue="Stripe")
        assert recalled.missing == ()
        by_tier = {each.item.tier: each for each in recalled.items}
        assert {tier: each.item.id for tier, each in by_tier.items()} == {
            "semantic": fact,
            "working": entry,
            "episodic": episode,
            "turns": message,
        }
        for each in recalled.items:
            assert each.item.score == pytest.approx(min(1.0, sum(each.item.parts.values())))
            assert each.match == pytest.approx(1.0), "the only one of its tier, and the cue's only word"
        assert by_tier["semantic"].item.parts == {
            "confidence": pytest.approx(0.4),
            "reinforcement": 0.0,
            "match": pytest.approx(0.4),
        }
        assert {(rank.list, rank.rank) for rank in by_tier["turns"].ranks} == {("dense", 0), ("lexical", 0)}
        assert by_tier["turns"].sources[0].session_id == "s7", "over all sessions"
        assert by_tier["semantic"].sources[0].quote == "Works at Stripe"
        assert (by_tier["semantic"].item.subject, by_tier["semantic"].item.category) == ("user", "profession")
        assert by_tier["turns"].item.subject is None

    def test_without_a_cue_what_counts_most_and_no_turns(self, world: World) -> None:
        async def remembered() -> None:
            await world.memory.fact("Likes tea", confidence=0.6)
            await world.memory.fact("Works at Stripe", confidence=0.6, reinforcement_count=10)
            await world.memory.fact("Owns an old car", confidence=0.6, recorded_at=NOW - timedelta(days=360))
            await world.memory.message("Likes chess")

        world.do(remembered())
        assert world.told(tiers=("semantic", "turns")) == [
            ("semantic", "Works at Stripe"),
            ("semantic", "Likes tea"),
            ("semantic", "Owns an old car"),
        ]

    def test_the_working_set_is_that_of_the_session(self, world: World) -> None:
        async def remembered() -> None:
            await world.memory.entry("Plans a trip to Rome")
            await world.memory.entry("Repairs a bicycle", session="s2")
            await world.memory.entry("Learns the cello", user="u2")

        world.do(remembered())
        assert world.told() == [("working", "Plans a trip to Rome")]
        assert world.told(session=None) == []
        assert world.told(session=SessionRef("u1", "s2")) == [("working", "Repairs a bicycle")]

    def test_a_tier_that_repeats_a_higher_one_is_left_out(self, world: World) -> None:
        async def remembered() -> None:
            for put in (world.memory.fact, world.memory.episode, world.memory.entry, world.memory.message):
                await put("Works at Stripe")

        world.do(remembered())
        assert world.told(cue="Stripe") == [("semantic", "Works at Stripe")]

    def test_half_of_the_limit_is_one_tiers(self, world: World) -> None:
        async def remembered() -> None:
            for number in range(8):
                await world.memory.fact(f"Knows person{number}")
            for number in range(8):
                await world.memory.message(f"Yesterday I met person{number} on the train")

        world.do(remembered())
        tiers = [tier for tier, _ in world.told(cue="person1 person2 person3", limit=4)]
        assert sorted(tiers) == ["semantic", "semantic", "turns", "turns"]
        assert len(world.told(cue="person1", limit=4, tiers=("semantic",))) == 4

    def test_a_collection_that_was_never_made_holds_nothing_and_is_not_missing(self, world: World) -> None:
        world.do(world.memory.fact("Works at Stripe"))
        recalled = world.recall(cue="Stripe", collections=("working",))
        assert (recalled.items, recalled.missing) == ((), ())

    @pytest.mark.parametrize("profile", ["memstream", "classic", "composite"])
    def test_every_profile_reads_every_tier(self, world: World, profile: Any) -> None:
        async def remembered() -> None:
            await world.memory.fact("Works at Stripe")
            await world.memory.entry("Prepares a talk on Stripe webhooks")
            await world.memory.episode("Signed the contract with Stripe in May", emotion={"valence": 1, "arousal": 0})
            await world.memory.message("My new badge says Stripe, and the coffee is good")

        world.do(remembered())
        recalled = world.recall(cue="Stripe", mood=1.0, policy=RecallPolicy(profile=profile))
        assert {each.item.tier for each in recalled.items} == set(TIERS)
        emotions = {each.item.tier: each.item.parts.get("emotion") for each in recalled.items}
        if profile == "composite":
            assert emotions == {"episodic": 0.15, "semantic": 0.075, "working": 0.075, "turns": 0.075}


class TestSeen:
    def test_only_what_is_believed_and_not_over(self, world: World) -> None:
        async def remembered() -> None:
            for state in ("active", "pending", "superseded", "invalidated", "expired", "forgotten", "quarantined"):
                await world.memory.fact(f"Is {state}", state=state)
            await world.memory.fact("Was away", valid_to=NOW - timedelta(days=1))
            await world.memory.fact("Is away", valid_to=NOW + timedelta(days=1))
            await world.memory.episode("Deleted thing", deleted_at=NOW)
            await world.memory.episode("Archived thing", archived_at=NOW)
            await world.memory.episode("Was on holiday", valid_to=NOW - timedelta(days=1))

        world.do(remembered())
        for cue in (None, "is away was deleted archived thing holiday active pending superseded forgotten"):
            told = {content for _, content in world.told(cue=cue)}
            assert told == {"Is active", "Is away", "Was on holiday"}, cue

    def test_as_of_is_what_was_valid_then(self, world: World) -> None:
        def ago(days: int) -> Any:
            return NOW - timedelta(days=days)

        async def remembered() -> None:
            await world.memory.fact("Works at Google", state="superseded", valid_from=ago(30), valid_to=ago(10))
            await world.memory.fact("Works at Stripe", valid_from=ago(10))
            await world.memory.fact("Works at Apple", state="invalidated", valid_from=ago(30))
            await world.memory.entry("Works on webhooks")
            await world.memory.message("Works like a charm, this old machine", occurred_at=ago(25))
            await world.memory.message("Works again after the repair of May", occurred_at=ago(5))

        world.do(remembered())
        then = {content for _, content in world.told(cue="works", as_of=ago(20))}
        assert then == {"Works at Google", "Works like a charm, this old machine"}
        assert world.told(as_of=ago(10), tiers=("semantic",)) == [("semantic", "Works at Stripe")], "half-open"

    def test_known_at_is_what_was_believed_then(self, world: World) -> None:
        def ago(days: int) -> Any:
            return NOW - timedelta(days=days)

        async def remembered() -> None:
            old: Any = {"valid_from": ago(40), "recorded_at": ago(40)}
            await world.memory.fact("Works at Google", state="superseded", valid_to=ago(10), **old)
            await world.memory.fact("Works at Stripe", valid_from=ago(10), recorded_at=ago(10))
            await world.memory.fact("Works at Apple", state="invalidated", expired_at=ago(20), **old)
            await world.memory.fact("Works on Sundays", state="expired", expired_at=ago(20), **old)
            await world.memory.fact("Works in secret", state="forgotten", **old)
            await world.memory.fact("Works till late", valid_to=ago(25), **old)
            await world.memory.fact("Works since always", valid_from=ago(900), recorded_at=ago(10))
            await world.memory.episode("Works day told late", valid_from=ago(40), recorded_at=ago(10))
            await world.memory.entry("Works on webhooks")
            await world.memory.message("Works like a charm, this old machine", occurred_at=ago(35))
            await world.memory.message("Works again after the repair of May", occurred_at=ago(5))

        def told(**asked: Any) -> set[str]:
            return {content for _, content in world.told(cue="works", limit=40, **asked)}

        world.do(remembered())
        charm, late = "Works like a charm, this old machine", "Works till late"
        then = {"Works at Google", "Works at Apple", "Works on Sundays", charm}
        assert told(known_at=ago(30)) == then | {late}, "of the world as it was then"
        assert told(known_at=ago(30), as_of=NOW) == then, "that it would end so soon was not known, or was told then"
        assert told(known_at=ago(15)) == {"Works at Google", charm}, "what was given up before is not believed"
        assert told(known_at=NOW, as_of=ago(30)) == {"Works at Google", "Works since always", late, charm} | {
            "Works day told late"
        }
        assert told(known_at=ago(50)) == set()

    def test_secrets_only_up_to_the_ceiling(self, world: World) -> None:
        async def remembered() -> None:
            for level in ("public", "internal", "secret"):
                await world.memory.fact(f"Fact is {level}", sensitivity=level)
                await world.memory.episode(f"Episode was {level} yesterday", sensitivity=level)
                await world.memory.entry(f"Entry about {level} things", sensitivity=level)
                await world.memory.message(f"Words that are {level} for a while", sensitivity=level)

        world.do(remembered())
        for cue in (None, "fact episode entry words"):
            for ceiling, shown in (("public", 1), ("internal", 2), ("secret", 3)):
                found = world.recall(cue=cue, ceiling=ceiling, limit=40).items
                assert len(found) == shown * (4 if cue else 3)
                assert ("secret" in {each.sensitivity for each in found}) == (ceiling == "secret")

    def test_subject_and_category(self, world: World) -> None:
        async def remembered() -> None:
            await world.memory.fact("Lives in Vienna", subject="tom", category="attribute")
            await world.memory.fact("Works in Vienna")
            await world.memory.message("Tom told me a lot about the old Vienna")

        world.do(remembered())
        assert world.told(cue="Vienna", subject="tom") == [("semantic", "Lives in Vienna")]
        assert world.told(cue="Vienna", category="profession") == [("semantic", "Works in Vienna")]

    def test_groups_are_read_only_when_they_are_named(self, world: World) -> None:
        world.do(world.memory.fact("Deploys on Fridays", owner=TEAM))
        assert world.told(cue="deploys") == []
        assert world.told(cue="deploys", groups=("team",)) == [("semantic", "Deploys on Fridays")]


# ------------------------------------------------------------------------------------------------ slow or down
class Faulty:
    """A store of which some reads are away, refused, or never come; the rest is the real one's."""

    def __init__(self, store: VectorStore, *, of: Sequence[str], fault: Exception | None) -> None:
        self._store = store
        self._of = frozenset(of)
        self._fault = fault
        """None: it never answers."""

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)

        async def asked(collection: str, **arguments: Any) -> list[Found]:
            if f"{collection}.{name}" in self._of or name in self._of:
                if self._fault is not None:
                    raise self._fault
                await asyncio.Event().wait()
            return cast(list[Found], await real(collection, **arguments))

        return asked


class AwayEmbedder:
    def __init__(self, fault: Exception | None) -> None:
        self._fault = fault

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        if self._fault is None:
            await asyncio.Event().wait()
        raise self._fault or AssertionError


AWAY = Transient("store", "Qdrant does not answer")
REFUSED = Poison("refused_by_model", "the cue is too long")
SHORT = RecallPolicy(patience=0.2)


@pytest.fixture
def stripe(world: World) -> World:
    async def remembered() -> None:
        await world.memory.fact("Works at Stripe")
        await world.memory.episode("Signed the contract with Stripe in May")
        await world.memory.message("My new badge says Stripe, and the coffee is good")
        await world.memory.entry("Prepares a talk on Stripe webhooks")

    world.do(remembered())
    return world


class TestMissing:
    @pytest.mark.parametrize("fault", [AWAY, None], ids=["away", "silent"])
    def test_one_search_is_named_and_the_rest_is_there(self, stripe: World, fault: Exception | None) -> None:
        store = cast(VectorStore, Faulty(stripe.store, of=["facts.lexical"], fault=fault))
        recalled = stripe.recall(cue="Stripe", store=store, policy=SHORT)
        assert [each.part for each in recalled.missing] == ["semantic.lexical"]
        assert len(recalled.items) == 4, "the fact is found by meaning"
        fact = next(each for each in recalled.items if each.item.tier == "semantic")
        assert [rank.list for rank in fact.ranks] == ["dense"]
        assert fact.match == 1.0

    @pytest.mark.parametrize(
        "fault", [AWAY, Poison("refused_by_model", "too long"), None], ids=["away", "refuses", "silent"]
    )
    def test_without_an_embedder_words_are_found(self, stripe: World, fault: Exception | None) -> None:
        recalled = stripe.recall(cue="Stripe", embedder=cast(Embedder, AwayEmbedder(fault)), policy=SHORT)
        assert [each.part for each in recalled.missing] == ["embedder"]
        assert {each.item.tier for each in recalled.items} == set(TIERS)
        assert {rank.list for each in recalled.items for rank in each.ranks} == {"lexical"}

    @pytest.mark.parametrize("cue", ["Stripe", None])
    def test_the_store_away_is_every_part_and_no_item(self, stripe: World, cue: str | None) -> None:
        store = cast(VectorStore, Faulty(stripe.store, of=["select", "nearest", "lexical"], fault=AWAY))
        recalled = stripe.recall(cue=cue, store=store)
        assert recalled.items == ()
        lists = (
            {f"{tier}.{name}" for tier in ("semantic", "episodic", "turns") for name in ("dense", "lexical")}
            if cue
            else {"semantic.reinforcement_count", "semantic.recorded_at", "episodic.importance", "episodic.occurred_at"}
        )
        assert {each.part for each in recalled.missing} == lists | {"working.all"}

    def test_a_broken_invariant_fails_the_whole_read(self, stripe: World) -> None:
        fault = Fatal("a payload of another tenant")
        store = cast(VectorStore, Faulty(stripe.store, of=["turns.lexical"], fault=fault))
        with pytest.raises(Fatal, match="another tenant"):
            stripe.recall(cue="Stripe", store=store)


# ------------------------------------------------------------------------------------------------ who sees what
TEXTS = ("Works at Stripe", "Likes green tea", "Moved to Oslo in May", "Plays chess with Tom")
TENANTS, USERS, SESSIONS = ("acme", "rival"), ("u1", "u2"), ("s1", "s2")
REQUESTS = st.builds(
    RecallRequest,
    tenant_id=st.sampled_from((*TENANTS, "stranger")),
    owner=st.sampled_from((U1, Owner(scope="user", id="u2"), TEAM, Owner(scope="user", id="acme/user/u1"))),
    session=st.none() | st.builds(SessionRef, user_id=st.sampled_from(USERS), session_id=st.sampled_from(SESSIONS)),
    groups=st.sampled_from(((), ("team",), ("u1",))),
    cue=st.none() | st.sampled_from((*TEXTS, "tenant acme rival", "acme/user/u1", "tea chess Oslo Stripe")),
    limit=st.integers(1, 100),
    tiers=st.sets(st.sampled_from(TIERS), min_size=1).map(tuple),
    subject=st.none() | st.just("user"),
    ceiling=st.sampled_from(("public", "internal", "secret")),
    as_of=st.none() | st.just(NOW),
    known_at=st.none() | st.just(NOW),
)


@pytest.fixture
def twins(world: World) -> World:
    """Two tenants with the same users, sessions, a group, and the same words; each user says something alone, too."""

    async def remembered() -> None:
        for tenant in TENANTS:
            for user in USERS:
                owner = Owner(scope="user", id=user)
                for text in (*TEXTS, f"Only {user} says so"):
                    await world.memory.fact(text, tenant=tenant, owner=owner)
                    await world.memory.episode(f"{text}, it was said", tenant=tenant, owner=owner)
                    for session in SESSIONS:
                        await world.memory.entry(text, tenant=tenant, user=user, session=session)
                        await world.memory.message(f"Hello, {text}!", tenant=tenant, user=user, session=session)
            for text in TEXTS:
                await world.memory.fact(text, tenant=tenant, owner=TEAM)

    world.do(remembered())
    return world


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(request=REQUESTS)
def test_no_read_shows_what_is_anothers_though_the_words_are_the_same(twins: World, request: RecallRequest) -> None:
    recalled = twins.recall(request)
    assert recalled.missing == ()
    mine = set(request.owner_keys)
    if request.session is not None:
        mine.add(Owner(scope="user", id=request.session.user_id).key(request.tenant_id))
    for each in recalled.items:
        tenant, owner_key = twins.memory.whose[each.item.id]
        assert tenant == request.tenant_id
        assert owner_key in mine
    if request.tenant_id in TENANTS:
        other = "rival" if request.tenant_id == "acme" else "acme"
        whole = replace(request, limit=LIMIT_MAX)
        assert _said(twins.recall(replace(whole, tenant_id=other))) == _said(twins.recall(whole))


def _said(recalled: Recalled) -> list[tuple[Tier, str]]:
    """Without the order: of a tie's members it is that of the ids, which differ."""
    return sorted((each.item.tier, each.item.content) for each in recalled.items)
