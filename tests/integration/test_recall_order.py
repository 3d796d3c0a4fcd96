"""The last order of an answer: what a reranker makes of it, and which episodes do not stand any more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast

import pytest

from memstream.adapters.ports import RerankCandidate, StoredPoint, VectorStore
from memstream.memory.policies import RecallPolicy
from memstream.schemas.errors import Poison, Transient
from memstream.schemas.facts import Evidence
from memstream.schemas.recall import TIERS
from tests.support.recall_service import NOW, SHORT, TEAM, Faulty, World


# ------------------------------------------------------------------------------------------------ episodes of facts
class Counting:
    """A store that counts how often facts are looked up."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def select(self, collection: str, **asked: Any) -> list[StoredPoint]:
        self.looks += collection == "facts"
        return await self._store.select(collection, **asked)


class TestAnEpisodeFollowsItsFact:
    """The same observation, as what was said and as what holds (ADR 0011)."""

    def test_what_was_replaced_is_no_answer_about_now_in_any_tier_but_the_verbatim(self, remembering: World) -> None:
        async def remembered() -> None:
            await remembering.memory.episode("Works at Google", importance=0.95)
            await remembering.memory.episode("Works at Stripe", importance=0.95)
            await remembering.memory.episode("Went to the Google party", importance=0.3)
            await self._fact_of(remembering, "Works at Google", state="superseded", valid_to=NOW - timedelta(days=1))
            await self._fact_of(remembering, "Works at Stripe")

        remembering.do(remembered())
        for cue in ("where does she work", "works at Google", None):
            told = remembering.told(cue=cue)
            assert told[0] == ("semantic", "Works at Stripe"), cue
            assert ("episodic", "Works at Google") not in told, cue
            assert ("episodic", "Went to the Google party") in told, "another observation"

    def test_of_the_past_it_stands_as_long_as_its_fact_was_believed(self, remembering: World) -> None:
        def ago(days: float) -> Any:
            return NOW - timedelta(days=days)

        async def remembered() -> None:
            old = {"recorded_at": ago(9)}
            await remembering.memory.episode("Works at Google", valid_from=ago(10), **old)
            await remembering.memory.episode("Works at Apple", valid_from=ago(10), **old)
            await self._fact_of(remembering, "Works at Google", state="superseded", valid_to=ago(2), **old)
            await self._fact_of(remembering, "Works at Apple", state="invalidated", expired_at=ago(2), **old)

        def told(**asked: Any) -> set[str]:
            return {content for _, content in remembering.told(tiers=("episodic",), **asked)}

        remembering.do(remembered())
        assert told() == set()
        assert told(as_of=ago(3)) == {"Works at Google"}, "what was denied since was never true"
        assert told(as_of=ago(1)) == set()
        assert told(known_at=ago(3)) == {"Works at Google", "Works at Apple"}
        assert told(known_at=ago(1), as_of=ago(3)) == {"Works at Google"}

    def test_what_ended_before_it_was_learnt_stands_in_what_was_known_between(self, remembering: World) -> None:
        """Told two days ago, that it has been over for eight."""

        def ago(days: float) -> Any:
            return NOW - timedelta(days=days)

        async def remembered() -> None:
            old = {"recorded_at": ago(9)}
            ended = {"state": "superseded", "valid_to": ago(8), "closed_at": ago(2)}
            await remembering.memory.episode("Works at Google", valid_from=ago(10), **old)
            await self._fact_of(remembering, "Works at Google", **ended, **old)

        def told(**asked: Any) -> list[tuple[str, str]]:
            return remembering.told(cue="works at Google", tiers=("semantic", "episodic"), **asked)

        remembering.do(remembered())
        assert told(known_at=ago(1)) == []
        assert told(known_at=ago(3)) == [("semantic", "Works at Google")], "the fact speaks for both"
        assert remembering.told(tiers=("episodic",), known_at=ago(3)) == [("episodic", "Works at Google")]

    @pytest.mark.parametrize(
        ("state", "fields", "stands"),
        [
            ("active", {}, True),
            ("pending", {}, True),
            ("expired", {"expired_at": NOW}, True),
            ("superseded", {"valid_to": NOW - timedelta(days=1)}, False),
            ("superseded", {"valid_to": NOW + timedelta(days=1)}, True),
            ("invalidated", {"expired_at": NOW}, False),
            ("forgotten", {}, False),
            ("quarantined", {}, False),
        ],
        ids=lambda each: str(each)[:40],
    )
    def test_states(self, remembering: World, state: str, fields: dict[str, Any], stands: bool) -> None:
        async def remembered() -> None:
            await remembering.memory.episode("Works at Google")
            await self._fact_of(remembering, "Works at Google", state=state, **fields)

        remembering.do(remembered())
        assert (("episodic", "Works at Google") in remembering.told(tiers=("episodic",), cue="Google")) == stands

    def test_a_conclusion_from_several_episodes_says_none_of_them(self, remembering: World) -> None:
        async def remembered() -> None:
            await remembering.memory.episode("Ran five kilometres on Monday")
            await self._fact_of(
                remembering, "Runs regularly", of="Ran five kilometres on Monday", state="superseded", valid_to=NOW
            )

        remembering.do(remembered())
        assert remembering.told(cue="ran") == [("episodic", "Ran five kilometres on Monday")]

    def test_what_an_active_fact_says_too_stands(self, remembering: World) -> None:
        async def remembered() -> None:
            await remembering.memory.episode("Works at Stripe")
            await self._fact_of(remembering, "Works at Stripe", state="superseded", valid_to=NOW)
            await self._fact_of(remembering, "Works at Stripe as an engineer", of="Works at Stripe")

        remembering.do(remembered())
        assert remembering.told(tiers=("episodic",)) == [("episodic", "Works at Stripe")]

    def test_another_owners_facts_do_not_count(self, remembering: World) -> None:
        async def remembered() -> None:
            await remembering.memory.episode("Works at Stripe")
            await self._fact_of(remembering, "Works at Stripe", owner=TEAM, state="superseded", valid_to=NOW)

        remembering.do(remembered())
        assert remembering.told(cue="works") == [("episodic", "Works at Stripe")]

    def test_many_that_fell_make_room_for_those_behind(self, remembering: World) -> None:
        async def remembered() -> None:
            for number in range(30):
                text = f"Lived in town{number}"
                await remembering.memory.episode(text, importance=0.9)
                await self._fact_of(remembering, text, state="superseded", valid_to=NOW)
            await remembering.memory.episode("Born in Bergen", importance=0.1)

        remembering.do(remembered())
        store = Counting(remembering.store)
        recalled = remembering.recall(limit=2, tiers=("episodic",), store=cast(VectorStore, store))
        assert [each.item.content for each in recalled.items] == ["Born in Bergen"]
        assert store.looks == 2, "the answer's, then those behind it together"

    @pytest.mark.parametrize("fault", [Transient("store", "away"), None], ids=["away", "silent"])
    def test_without_the_look_they_stay_and_it_is_said(self, remembering: World, fault: Exception | None) -> None:
        async def remembered() -> None:
            await remembering.memory.episode("Works at Google")
            await self._fact_of(remembering, "Works at Google", state="superseded", valid_to=NOW)

        remembering.do(remembered())
        store = cast(VectorStore, Faulty(remembering.store, of=["facts.select"], fault=fault))
        recalled = remembering.recall(cue="Google", store=store, policy=SHORT)
        assert [each.item.content for each in recalled.items] == ["Works at Google"]
        assert [each.part for each in recalled.missing] == ["episodic.standing", "names"]

    @staticmethod
    async def _fact_of(remembering: World, content: str, *, of: str | None = None, **fields: Any) -> None:
        """The fact that the episode's observation became."""
        [episode] = [
            each
            for each in await remembering.store.select("episodes", tenant_id="acme")
            if each.payload["content"] == (of or content)
        ]
        evidence = Evidence(
            turn_id="t1",
            session_id="s1",
            observation_id=str(episode.payload["observation_id"]),
            occurred_at=NOW,
            quote="so it was said",
        )
        begins = {"valid_from": NOW - timedelta(days=10)}
        await remembering.memory.fact(content, **({"evidence": (evidence,)} | begins | fields))


# ------------------------------------------------------------------------------------------------ reranked
class Turned:
    """`Reranker` that names what contains a word, and keeps what it was shown; or a fault."""

    def __init__(self, word: str = "", *, fault: Exception | None = None, silent: bool = False) -> None:
        self.shown: list[RerankCandidate] = []
        self._word, self._fault, self._silent = word, fault, silent

    async def rerank(
        self, cue: str, candidates: Sequence[RerankCandidate], *, tenant_id: str, as_speaker: str | None = None
    ) -> list[int]:
        self.shown = list(candidates)
        if self._silent:
            await asyncio.Event().wait()
        if self._fault is not None:
            raise self._fault
        return [place for place, each in enumerate(candidates) if self._word in each.text]

    async def close(self) -> None:
        return None


class TestReranked:
    def test_its_order_is_the_match(self, stripe: World) -> None:
        before = stripe.recall(cue="Stripe")
        assert {each.reranked for each in before.items} == {None}
        reranker = Turned("coffee")
        recalled = stripe.recall(cue="Stripe", reranker=reranker)
        first = next(each for each in recalled.items if each.reranked == 0)
        assert (first.item.tier, first.match) == ("turns", 1.0)
        others = [each for each in recalled.items if each.reranked != 0]
        assert sorted(each.reranked or 0 for each in others) == [1, 2, 3], "who is not named follows"
        assert all(each.match == pytest.approx(10 / (10 + (each.reranked or 0))) for each in others)
        assert {each.tier for each in reranker.shown} == set(TIERS)
        assert {(each.tier, each.subject) for each in reranker.shown} >= {("turns", None), ("semantic", "user")}
        held = {"turns": 1.0, "semantic": 0.4, "episodic": 0.3, "working": 0.2}
        for each in others:
            assert each.item.parts["match"] == pytest.approx(held[each.item.tier] * each.match)

    def test_it_is_shown_the_best_few(self, stripe: World) -> None:
        reranker = Turned()
        recalled = stripe.recall(cue="Stripe", reranker=reranker, policy=RecallPolicy(rerank_pool=2))
        assert len(reranker.shown) == 2
        assert len(recalled.items) == 4

    @pytest.mark.parametrize(
        "reranker",
        [
            Turned(fault=Transient("reranker", "away")),
            Turned(fault=Poison("refused_by_model", "no")),
            Turned(silent=True),
        ],
        ids=["away", "refuses", "silent"],
    )
    def test_one_that_does_not_answer_is_named_and_the_fused_order_stands(
        self, stripe: World, reranker: Turned
    ) -> None:
        before = stripe.recall(cue="Stripe")
        recalled = stripe.recall(cue="Stripe", reranker=reranker, policy=SHORT)
        assert recalled.items == before.items
        assert [each.part for each in recalled.missing] == ["reranker"]

    def test_without_a_cue_nobody_is_asked(self, stripe: World) -> None:
        reranker = Turned(fault=AssertionError())
        assert stripe.recall(reranker=reranker).missing == ()
        assert reranker.shown == []
