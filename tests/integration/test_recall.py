"""The recall service over the real engine: what is found and how it is told, what is missing, and who sees what."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstream.adapters.ports import Embedder, VectorStore
from memstream.memory.policies import RecallPolicy
from memstream.recall.request import LIMIT_MAX, ReadSession, RecallRequest
from memstream.recall.service import RecallResult
from memstream.schemas.errors import Fatal, Poison, Transient
from memstream.schemas.recall import TIERS, Tier
from memstream.schemas.turns import Owner
from tests.support.recall_service import SHORT, TEAM, U1, AwayEmbedder, Faulty, World
from tests.support.stored_memory import NOW


class TestMinimumScore:
    def test_a_cue_that_meets_nothing_returns_nothing(self, remembering: World) -> None:
        remembering.do(remembering.memory.fact("Works at Stripe"))
        remembering.do(remembering.memory.episode("Signed the contract with Stripe in May"))
        remembering.do(remembering.memory.message("My new badge says Stripe", session="s7"))
        assert remembering.recall(cue="quantum physics").items
        assert remembering.recall(cue="quantum physics", min_score=0.15).items == ()
        found = remembering.recall(cue="Stripe", min_score=0.15).items
        assert {each.item.tier for each in found} == {"semantic", "episodic", "turns"}

    def test_scores_have_the_order_of_the_answer_and_decide(self, remembering: World) -> None:
        for number, text in enumerate(("Works at Stripe", "Works in Rome", "Lives in Rome", "Likes tea")):
            remembering.do(remembering.memory.fact(text, confidence=0.5 + number / 10))
        scores = [each.item.score for each in remembering.recall(cue="Where do I work, at Stripe?").items]
        assert scores == sorted(scores, reverse=True)
        assert len(set(scores)) == 4, "no cap hides a difference"
        least = remembering.recall(cue="Where do I work, at Stripe?", min_score=scores[1]).items
        assert [each.item.score for each in least] == scores[:2]


class TestFound:
    def test_each_tier_is_found_and_explained(self, remembering: World) -> None:
        async def remembered() -> list[str]:
            return [
                await remembering.memory.fact("Works at Stripe"),
                await remembering.memory.entry("Prepares a talk on Stripe webhooks"),
                await remembering.memory.episode("Signed the contract with Stripe in May"),
                await remembering.memory.message("My new badge says Stripe, and the coffee is good", session="s7"),
            ]

        fact, entry, episode, message = remembering.do(remembered())
        recalled = remembering.recall(cue="Stripe")
        assert recalled.missing == ()
        by_tier = {each.item.tier: each for each in recalled.items}
        assert {tier: each.item.id for tier, each in by_tier.items()} == {
            "semantic": fact,
            "working": entry,
            "episodic": episode,
            "turns": message,
        }
        for each in recalled.items:
            assert each.item.score == pytest.approx(sum(each.item.parts.values()) / 3.0), "a fact may reach 3"
            assert each.match == pytest.approx(1.0), "the only one of its tier, and the cue's only word"
        assert by_tier["semantic"].item.parts == {
            "confidence": pytest.approx(0.4),
            "reinforcement": 0.0,
            "match": pytest.approx(0.4),
            "fit": pytest.approx(1.6),
        }
        assert by_tier["turns"].item.parts == {"match": pytest.approx(0.7), "recency": pytest.approx(0.3)}
        lists = {tier: {(rank.list, rank.rank) for rank in each.ranks} for tier, each in by_tier.items()}
        assert lists == {
            "semantic": {("dense", 0), ("lexical", 0)},
            "working": set(),
            "episodic": {("dense", 0), ("lexical", 0)},
            "turns": {("dense", 0), ("lexical", 0)},
        }
        assert by_tier["turns"].sources[0].session_id == "s7", "over all sessions"
        assert by_tier["semantic"].sources[0].quote == "Works at Stripe"
        assert (by_tier["semantic"].item.subject, by_tier["semantic"].item.category) == ("user", "profession")
        assert by_tier["turns"].item.subject is None

    def test_without_a_cue_what_counts_most_and_no_turns(self, remembering: World) -> None:
        async def remembered() -> None:
            await remembering.memory.fact("Likes tea", confidence=0.6)
            await remembering.memory.fact("Works at Stripe", confidence=0.6, reinforcement_count=10)
            await remembering.memory.fact("Owns an old car", confidence=0.6, recorded_at=NOW - timedelta(days=360))
            await remembering.memory.message("Likes chess")

        remembering.do(remembered())
        assert remembering.told(tiers=("semantic", "turns")) == [
            ("semantic", "Works at Stripe"),
            ("semantic", "Likes tea"),
            ("semantic", "Owns an old car"),
        ]

    def test_the_working_set_is_that_of_the_session(self, remembering: World) -> None:
        async def remembered() -> None:
            await remembering.memory.entry("Plans a trip to Rome")
            await remembering.memory.entry("Repairs a bicycle", session="s2")
            await remembering.memory.entry("Learns the cello", user="u2")

        remembering.do(remembered())
        assert remembering.told() == [("working", "Plans a trip to Rome")]
        assert remembering.told(session=None) == []
        assert remembering.told(session=ReadSession("u1", "s2")) == [("working", "Repairs a bicycle")]

    def test_a_tier_that_repeats_a_higher_one_is_left_out(self, remembering: World) -> None:
        async def remembered() -> None:
            for put in (
                remembering.memory.fact,
                remembering.memory.episode,
                remembering.memory.entry,
                remembering.memory.message,
            ):
                await put("Works at Stripe")

        remembering.do(remembered())
        assert remembering.told(cue="Stripe") == [("semantic", "Works at Stripe")]

    def test_half_of_the_limit_is_one_tiers(self, remembering: World) -> None:
        async def remembered() -> None:
            for number in range(8):
                await remembering.memory.fact(f"Knows person{number}")
            for number in range(8):
                await remembering.memory.message(f"Yesterday I met person{number} on the train")

        remembering.do(remembered())
        tiers = [tier for tier, _ in remembering.told(cue="person1 person2 person3", limit=4)]
        assert sorted(tiers) == ["semantic", "semantic", "turns", "turns"]
        assert len(remembering.told(cue="person1", limit=4, tiers=("semantic",))) == 4

    def test_a_collection_that_was_never_made_holds_nothing_and_is_not_missing(self, remembering: World) -> None:
        class Young(Faulty):
            """Nothing but the working set was ever made, and nothing else may be asked for."""

            async def exists(self, collection: str) -> bool:
                return collection == "working"

        remembering.do(remembering.memory.fact("Works at Stripe"))
        store = cast(VectorStore, Young(remembering.store, of=["search"], fault=Fatal("there is no such collection")))
        recalled = remembering.recall(cue="Stripe", store=store)
        assert (recalled.items, recalled.missing) == ((), ())

    @pytest.mark.parametrize("profile", ["memstream", "classic", "composite"])
    def test_every_profile_reads_every_tier(self, remembering: World, profile: Any) -> None:
        async def remembered() -> None:
            await remembering.memory.fact("Works at Stripe")
            await remembering.memory.entry("Prepares a talk on Stripe webhooks")
            await remembering.memory.episode(
                "Signed the contract with Stripe in May", emotion={"valence": 1, "arousal": 0}
            )
            await remembering.memory.message("My new badge says Stripe, and the coffee is good")

        remembering.do(remembered())
        recalled = remembering.recall(cue="Stripe", mood=1.0, policy=RecallPolicy(profile=profile))
        assert {each.item.tier for each in recalled.items} == set(TIERS)
        emotions = {each.item.tier: each.item.parts.get("emotion") for each in recalled.items}
        if profile == "composite":
            assert emotions == {"episodic": 0.15, "semantic": 0.075, "working": 0.075, "turns": 0.075}


class TestSeen:
    def test_only_what_is_believed_and_not_over(self, remembering: World) -> None:
        async def remembered() -> None:
            for state in ("active", "pending", "superseded", "invalidated", "expired", "forgotten", "quarantined"):
                await remembering.memory.fact(f"Is {state}", state=state)
            await remembering.memory.fact("Was away", valid_to=NOW - timedelta(days=1))
            await remembering.memory.fact("Is away", valid_to=NOW + timedelta(days=1))
            await remembering.memory.episode("Deleted thing", deleted_at=NOW)
            await remembering.memory.episode("Gist of a thing", archived_at=NOW)
            await remembering.memory.episode("Was on holiday", valid_to=NOW - timedelta(days=1))

        remembering.do(remembered())
        for cue in (None, "is away was deleted gist thing holiday active pending superseded forgotten"):
            told = {content for _, content in remembering.told(cue=cue)}
            assert told == {"Is active", "Is away", "Was on holiday", "Gist of a thing"}, cue
        gists = {each.item.content: each.archived_at for each in remembering.recall(cue=None).items if each.archived_at}
        assert gists == {"Gist of a thing": NOW}, "and that it is one"

    def test_as_of_is_what_was_valid_then(self, remembering: World) -> None:
        def ago(days: int) -> Any:
            return NOW - timedelta(days=days)

        async def remembered() -> None:
            await remembering.memory.fact("Works at Google", state="superseded", valid_from=ago(30), valid_to=ago(10))
            await remembering.memory.fact("Works at Stripe", valid_from=ago(10))
            await remembering.memory.fact("Works at Apple", state="invalidated", valid_from=ago(30))
            await remembering.memory.entry("Works on webhooks")
            await remembering.memory.message("Works like a charm, this old machine", occurred_at=ago(25))
            await remembering.memory.message("Works again after the repair of May", occurred_at=ago(5))

        remembering.do(remembered())
        then = {content for _, content in remembering.told(cue="works", as_of=ago(20))}
        assert then == {"Works at Google", "Works like a charm, this old machine"}
        assert remembering.told(as_of=ago(10), tiers=("semantic",)) == [("semantic", "Works at Stripe")], "half-open"

    def test_known_at_is_what_was_believed_then(self, remembering: World) -> None:
        def ago(days: int) -> Any:
            return NOW - timedelta(days=days)

        async def remembered() -> None:
            old: Any = {"valid_from": ago(40), "recorded_at": ago(40)}
            await remembering.memory.fact("Works at Google", state="superseded", valid_to=ago(10), **old)
            await remembering.memory.fact("Works at Stripe", valid_from=ago(10), recorded_at=ago(10))
            await remembering.memory.fact("Works at Apple", state="invalidated", expired_at=ago(20), **old)
            await remembering.memory.fact("Works on Sundays", state="expired", expired_at=ago(20), **old)
            await remembering.memory.fact("Works in secret", state="forgotten", **old)
            await remembering.memory.fact("Works till late", valid_to=ago(25), **old)
            await remembering.memory.fact("Works since always", valid_from=ago(900), recorded_at=ago(10))
            await remembering.memory.episode("Works day told late", valid_from=ago(40), recorded_at=ago(10))
            await remembering.memory.entry("Works on webhooks")
            await remembering.memory.message("Works like a charm, this old machine", occurred_at=ago(35))
            await remembering.memory.message("Works again after the repair of May", occurred_at=ago(5))

        def told(**asked: Any) -> set[str]:
            return {content for _, content in remembering.told(cue="works", limit=40, **asked)}

        remembering.do(remembered())
        charm, late = "Works like a charm, this old machine", "Works till late"
        then = {"Works at Google", "Works at Apple", "Works on Sundays", charm}
        assert told(known_at=ago(30)) == then | {late}, "of the world as it was then"
        assert told(known_at=ago(30), as_of=NOW) == then, "that it would end so soon was not known, or was told then"
        assert told(known_at=ago(15)) == {"Works at Google", charm}, "what was given up before is not believed"
        assert told(known_at=NOW, as_of=ago(30)) == {"Works at Google", "Works since always", late, charm} | {
            "Works day told late"
        }
        assert told(known_at=ago(50)) == set()

    def test_secrets_only_up_to_the_ceiling(self, remembering: World) -> None:
        async def remembered() -> None:
            for level in ("public", "internal", "secret"):
                await remembering.memory.fact(f"Fact is {level}", sensitivity=level)
                await remembering.memory.episode(f"Episode was {level} yesterday", sensitivity=level)
                await remembering.memory.entry(f"Entry about {level} things", sensitivity=level)
                await remembering.memory.message(f"Words that are {level} for a while", sensitivity=level)

        remembering.do(remembered())
        for cue in (None, "fact episode entry words"):
            for ceiling, shown in (("public", 1), ("internal", 2), ("secret", 3)):
                found = remembering.recall(cue=cue, ceiling=ceiling, limit=40).items
                assert len(found) == shown * (4 if cue else 3)
                assert ("secret" in {each.sensitivity for each in found}) == (ceiling == "secret")

    def test_subject_and_category(self, remembering: World) -> None:
        async def remembered() -> None:
            await remembering.memory.fact("Lives in Vienna", subject="tom", category="attribute")
            await remembering.memory.fact("Works in Vienna")
            await remembering.memory.message("Tom told me a lot about the old Vienna")

        remembering.do(remembered())
        assert remembering.told(cue="Vienna", subject="tom") == [("semantic", "Lives in Vienna")]
        assert remembering.told(cue="Vienna", category="profession") == [("semantic", "Works in Vienna")]

    def test_groups_are_read_only_when_they_are_named(self, remembering: World) -> None:
        remembering.do(remembering.memory.fact("Deploys on Fridays", owner=TEAM))
        assert remembering.told(cue="deploys") == []
        assert remembering.told(cue="deploys", groups=("team",)) == [("semantic", "Deploys on Fridays")]


# ------------------------------------------------------------------------------------------------ slow or down
AWAY = Transient("store", "Qdrant does not answer")
REFUSED = Poison("refused_by_model", "the cue is too long")


class TestMissing:
    @pytest.mark.parametrize("fault", [AWAY, None], ids=["away", "silent"])
    def test_a_tiers_searches_are_named_together_and_the_rest_is_there(
        self, stripe: World, fault: Exception | None
    ) -> None:
        store = cast(VectorStore, Faulty(stripe.store, of=["facts.search"], fault=fault))
        recalled = stripe.recall(cue="Stripe", store=store, policy=SHORT)
        assert [each.part for each in recalled.missing] == ["semantic.dense", "semantic.lexical"]
        assert [each.item.tier for each in recalled.items if each.item.tier == "semantic"] == []
        assert len(recalled.items) == 3

    @pytest.mark.parametrize("fault", [AWAY, None], ids=["away", "silent"])
    def test_a_preference_that_cannot_be_looked_up_is_named_and_all_is_there(
        self, stripe: World, fault: Exception | None
    ) -> None:
        store = cast(VectorStore, Faulty(stripe.store, of=["turns.select"], fault=fault, times=1))
        recalled = stripe.recall(cue="Stripe", store=store, policy=SHORT)
        assert [each.part for each in recalled.missing] == ["turns.speaker"]
        assert len(recalled.items) == 4

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
        store = cast(VectorStore, Faulty(stripe.store, of=["select", "search"], fault=AWAY))
        recalled = stripe.recall(cue=cue, store=store)
        assert recalled.items == ()
        lists = (
            {f"{tier}.{name}" for tier in ("semantic", "episodic", "turns") for name in ("dense", "lexical")}
            | {"turns.speaker", "names"}
            if cue
            else {"semantic.reinforcement_count", "semantic.recorded_at", "episodic.importance", "episodic.occurred_at"}
        )
        assert {each.part for each in recalled.missing} == lists | {"working.all"}
        assert recalled.silent

    def test_parts_that_answer_with_nothing_have_answered(self, remembering: World) -> None:
        store = cast(VectorStore, Faulty(remembering.store, of=["facts.search"], fault=AWAY))
        recalled = remembering.recall(cue="Stripe", store=store)
        assert (recalled.items, recalled.silent) == ((), False)
        assert [each.part for each in recalled.missing] == ["semantic.dense", "semantic.lexical"]

    def test_a_broken_invariant_fails_the_whole_read(self, stripe: World) -> None:
        fault = Fatal("a payload of another tenant")
        store = cast(VectorStore, Faulty(stripe.store, of=["turns.search"], fault=fault))
        with pytest.raises(Fatal, match="another tenant"):
            stripe.recall(cue="Stripe", store=store)


# ------------------------------------------------------------------------------------------------ who sees what
TEXTS = ("Works at Stripe", "Likes green tea", "Moved to Oslo in May", "Plays chess with Tom")
TENANTS, USERS, SESSIONS = ("acme", "rival"), ("u1", "u2"), ("s1", "s2")
REQUESTS = st.builds(
    RecallRequest,
    tenant_id=st.sampled_from((*TENANTS, "stranger")),
    owner=st.sampled_from((U1, Owner(scope="user", id="u2"), TEAM, Owner(scope="user", id="acme/user/u1"))),
    session=st.none() | st.builds(ReadSession, user_id=st.sampled_from(USERS), session_id=st.sampled_from(SESSIONS)),
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
def twins(remembering: World) -> World:
    """Two tenants with the same users, sessions, a group, and the same words; each user says something alone, too."""

    async def remembered() -> None:
        for tenant in TENANTS:
            for user in USERS:
                owner = Owner(scope="user", id=user)
                for text in (*TEXTS, f"Only {user} says so"):
                    await remembering.memory.fact(text, tenant=tenant, owner=owner)
                    await remembering.memory.episode(f"{text}, it was said", tenant=tenant, owner=owner)
                    for session in SESSIONS:
                        await remembering.memory.entry(text, tenant=tenant, user=user, session=session)
                        await remembering.memory.message(f"Hello, {text}!", tenant=tenant, user=user, session=session)
            for text in TEXTS:
                await remembering.memory.fact(text, tenant=tenant, owner=TEAM)

    remembering.do(remembered())
    return remembering


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


def _said(recalled: RecallResult) -> list[tuple[Tier, str]]:
    """Without the order: of a tie's members it is that of the ids, which differ."""
    return sorted((each.item.tier, each.item.content) for each in recalled.items)
