"""Links in a read, over the real engine: who is lifted, by how much, when they are read, and what is told without."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest

from memstream.adapters.ports import VectorStore
from memstream.memory.policies import RecallPolicy
from memstream.memory.policies.recall import CompositePolicy
from memstream.recall.service import RecallResult
from memstream.schemas.errors import Fatal, Transient
from tests.support.recall_service import TEAM, Faulty, World
from tests.support.stored_memory import NOW

COMPOSITE = RecallPolicy(profile="composite")
SHORT = RecallPolicy(profile="composite", patience=0.2)
WITHOUT = RecallPolicy(profile="composite", composite=CompositePolicy(similarity=0.45, links=0.0))
TEA, KETTLE, CHESS = "Likes green tea", "Bought a kettle in Kyoto", "Lost a game of chess"


@pytest.fixture
def kyoto(remembering: World) -> World:
    """A fact of which the cue tells, and two episodes of which it does not; one was recalled together with the fact."""

    async def remembered() -> None:
        tea, kettle = await remembering.memory.fact(TEA), await remembering.memory.episode(KETTLE)
        await remembering.memory.episode(CHESS)
        await remembering.memory.links([tea, kettle], weight=0.5)

    remembering.do(remembered())
    return remembering


def links(recalled: RecallResult) -> dict[str, float]:
    return {each.item.content: each.item.parts["links"] for each in recalled.items}


def test_each_lifts_the_other_by_how_well_it_fits_and_how_strong_the_link_is(kyoto: World) -> None:
    recalled = kyoto.recall(cue="green tea", policy=COMPOSITE)
    match = {each.item.content: each.match for each in recalled.items}
    assert match[TEA] == pytest.approx(1.0), "first in every list"
    assert links(recalled) == {
        TEA: pytest.approx(0.10 * 0.5 * match[KETTLE]),
        KETTLE: pytest.approx(0.10 * 0.5),
        CHESS: 0.0,
    }
    for each in recalled.items:
        assert each.item.score == pytest.approx(min(1.0, sum(each.item.parts.values())))


def test_what_is_linked_with_what_was_asked_for_goes_before_what_is_not(kyoto: World) -> None:
    def order(policy: RecallPolicy) -> list[str]:
        items = kyoto.recall(cue="green tea chess", policy=policy, tiers=("semantic", "episodic")).items
        return [each.item.content for each in items if each.item.tier == "episodic"]

    weightier = RecallPolicy(profile="composite", composite=CompositePolicy(similarity=0.05, links=0.40))
    assert order(WITHOUT) == [CHESS, KETTLE]
    assert order(weightier) == [KETTLE, CHESS]


def test_a_link_to_what_is_no_candidate_lifts_nobody(kyoto: World) -> None:
    assert links(kyoto.recall(cue="green tea", policy=COMPOSITE, tiers=("semantic",))) == {TEA: 0.0}


def test_links_of_a_group_lift_what_is_read_of_the_group(kyoto: World) -> None:
    async def remembered() -> None:
        together = [await kyoto.memory.fact(text, owner=TEAM) for text in ("Deploys on Fridays", "Tests on Mondays")]
        await kyoto.memory.links(together, owner=TEAM)

    kyoto.do(remembered())
    told = links(kyoto.recall(cue="green tea", policy=COMPOSITE, groups=("team",)))
    assert {content for content, part in told.items() if part} == {
        TEA,
        KETTLE,
        "Deploys on Fridays",
        "Tests on Mondays",
    }


@pytest.mark.parametrize(
    ("policy", "asked"),
    [
        (RecallPolicy(), {}),
        (RecallPolicy(profile="classic"), {}),
        (WITHOUT, {}),
        (COMPOSITE, {"cue": None}),
        (COMPOSITE, {"known_at": NOW}),
    ],
    ids=["memstream", "classic", "without-weight", "without-cue", "known-at"],
)
def test_links_are_not_looked_at_where_they_would_lift_nobody(
    kyoto: World, policy: RecallPolicy, asked: dict[str, Any]
) -> None:
    fault = Fatal("links were looked at")
    store = cast(VectorStore, Faulty(kyoto.store, of=["links.exists", "links.get"], fault=fault))
    recalled = kyoto.recall(store=store, policy=policy, **{"cue": "green tea", **asked})
    assert recalled.missing == ()
    assert not any(each.item.parts.get("links") for each in recalled.items)


def test_a_read_of_the_world_as_it_was_is_made_now_and_counts_links(kyoto: World) -> None:
    assert links(kyoto.recall(cue="green tea", policy=COMPOSITE, as_of=NOW + timedelta(days=1)))[KETTLE] > 0


@pytest.mark.parametrize("fault", [Transient("store", "away"), None], ids=["away", "slow"])
def test_links_that_do_not_answer_are_named_and_the_rest_is_told(kyoto: World, fault: Exception | None) -> None:
    store = cast(VectorStore, Faulty(kyoto.store, of=["links.get"], fault=fault))
    recalled = kyoto.recall(cue="green tea", store=store, policy=SHORT)
    assert [each.part for each in recalled.missing] == ["links"]
    assert links(recalled) == {TEA: 0.0, KETTLE: 0.0, CHESS: 0.0}
    assert not recalled.silent


def test_memory_that_is_away_is_silent_though_links_answer(kyoto: World) -> None:
    away = Faulty(kyoto.store, of=["search", "select"], fault=Transient("store", "away"))
    recalled = kyoto.recall(cue="green tea", store=cast(VectorStore, away), policy=SHORT, session=None)
    assert recalled.silent
    assert "links" not in {each.part for each in recalled.missing}


def test_a_deployment_without_links_reads_as_ever(kyoto: World) -> None:
    class Young(Faulty):
        async def exists(self, collection: str) -> bool:
            return collection != "links"

    store = cast(VectorStore, Young(kyoto.store, of=["links.get"], fault=Fatal("there is no such collection")))
    recalled = kyoto.recall(cue="green tea", store=store, policy=COMPOSITE)
    assert recalled.missing == ()
    assert links(recalled) == {TEA: 0.0, KETTLE: 0.0, CHESS: 0.0}
