"""facts.apply, one change at a time: the verdicts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from memstream.memory.facts.conflict import Neighbours
from memstream.memory.facts.proposals import ProposalOutcome, settle
from memstream.memory.facts.similarity import NearFact
from memstream.memory.facts.statements import statement_from_change
from memstream.memory.facts.transitions import Stamp
from memstream.memory.policies import MemoryPolicy
from memstream.schemas.commands import Change
from memstream.schemas.episodes import StoredEpisode
from memstream.schemas.facts import StoredFact
from tests.support.record_builders import NOW, OWNER, episode, stored_fact

STAMP = Stamp(now=NOW + timedelta(days=1), cause="command-1", embedder="hashing")
POLICY = MemoryPolicy()
FACT = stored_fact("Works at Google")
NEWS = episode("Moved teams at Google", turn="t7")


def apply(
    action: str,
    *targets: StoredFact,
    equal: StoredFact | None = None,
    near: tuple[StoredFact, ...] = (),
    closed: tuple[StoredFact, ...] = (),
    episodes: tuple[StoredEpisode, ...] = (NEWS,),
    **fields: Any,
) -> ProposalOutcome:
    named: dict[str, Any] = {}
    if action == "merge":
        named["source_fact_ids"] = tuple(target.fact_id for target in targets)
    elif targets:
        named["target_fact_id"] = targets[0].fact_id
    change = Change(action=action, source_episode_ids=tuple(e.episode_id for e in episodes), **named, **fields)  # type: ignore[arg-type]
    said = statement_from_change(
        change,
        cause="command-1/0",
        tenant_id="acme",
        owner=OWNER,
        issued_at=NOW,
        episodes=episodes,
        target=targets[0] if targets else None,
        policy=POLICY,
    )
    neighbours = Neighbours(equal=equal, near=tuple(NearFact(fact, None) for fact in near), closed=closed)
    return settle(change, said, targets=targets, neighbours=neighbours, stamp=STAMP, policy=POLICY)


def actions(settled: ProposalOutcome) -> list[str]:
    return [change.action for change in settled.transitions]


def test_new_takes_its_evidence_from_its_episodes() -> None:
    settled = apply("new", subject="user", content="Leads a team", category="profession", confidence=0.55)
    (made,) = settled.transitions
    assert (settled.verdict, made.action, settled.fact_id) == ("applied", "new", made.fact.fact_id)
    assert (made.fact.confidence, made.fact.source_episode_ids) == (0.55, (NEWS.episode_id,))
    assert [(each.turn_id, each.quote) for each in made.fact.evidence] == [("t7", NEWS.evidence)]


def test_new_that_is_known_reinforces_or_is_a_duplicate() -> None:
    settled = apply("new", subject="user", content="Works at Google", category="profession", equal=FACT)
    assert (settled.verdict, settled.fact_id, actions(settled)) == ("applied", FACT.fact_id, ["reinforced"])
    known = settled.transitions[0].fact
    settled = apply("new", subject="user", content="Works at Google", category="profession", equal=known)
    assert (settled.verdict, actions(settled)) == ("duplicate", [])


@pytest.mark.parametrize("action", ["reinforce", "update", "invalidate", "prune", "merge"])
@pytest.mark.parametrize("state", ["superseded", "invalidated", "expired", "pending"])
def test_a_target_that_is_not_active_is_stale_whatever_the_action(action: str, state: str) -> None:
    gone = stored_fact("Works at Google", changes={"state": state})
    targets = (FACT, gone) if action == "merge" else (gone,)
    settled = apply(action, *targets, content="Works at Google still")
    assert (settled.verdict, actions(settled)) == ("stale", [])


def test_reinforce_and_invalidate_act_on_the_row_as_it_is() -> None:
    moved = stored_fact("Works at Google", changes={"version": 5})
    for action, done in (("reinforce", "reinforced"), ("invalidate", "invalidated")):
        settled = apply(action, moved, expected_version=2)
        assert (settled.verdict, actions(settled)) == ("applied", [done])
        assert settled.transitions[0].fact.version == 6


def test_reinforce_without_a_new_turn_is_a_duplicate() -> None:
    assert apply("reinforce", FACT, episodes=(episode("Works at Google", turn="t1"),)).verdict == "duplicate"
    assert apply("reinforce", FACT, episodes=()).verdict == "duplicate"


def test_update_rewords_the_version_that_was_looked_at() -> None:
    settled = apply("update", FACT, content="Leads a team at Google", expected_version=1)
    (done,) = settled.transitions
    assert (done.action, done.fact.content, done.fact.version) == ("updated", "Leads a team at Google", 2)


@pytest.mark.parametrize(
    ("content", "verdict", "done"),
    [
        ("Works at Google in Zurich", "applied", ["updated"]),
        ("Works", "applied", ["reinforced"]),
        ("Leads a team", "applied", ["new"]),
        ("Works at Google", "applied", ["reinforced"]),
    ],
)
def test_update_of_another_version_is_a_candidate_against_it(content: str, verdict: str, done: list[str]) -> None:
    moved = stored_fact("Works at Google", changes={"version": 5})
    equal = moved if content == moved.content else None
    settled = apply("update", moved, content=content, expected_version=2, equal=equal)
    assert (settled.verdict, actions(settled)) == (verdict, done)


def test_update_to_what_another_row_says_gives_way_to_it() -> None:
    other = stored_fact("Leads a team", turn="t3", number=3)
    settled = apply("update", FACT, content="Leads a team", expected_version=1, equal=other)
    closed, again = settled.transitions
    assert (closed.fact.state, closed.fact.superseded_by) == ("superseded", other.fact_id)
    assert (again.action, again.fact.fact_id) == ("reinforced", other.fact_id)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("Is employed by Google", "says so already"),
        ("Works at Google in Zurich", "says so already"),
        ("Works at Stripe", "contradicts"),
    ],
)
def test_a_rewording_to_what_another_active_fact_says_or_rules_out_is_refused(other: str, why: str) -> None:
    beside = stored_fact(other)
    target = stored_fact("Lives in Oslo")
    settled = apply("update", target, near=(target, beside), content="Works at Google", expected_version=1)
    assert settled.verdict == "refused"
    assert why in settled.reason
    assert beside.fact_id in settled.reason
    closed = beside.model_copy(update={"state": "superseded"})
    assert apply("update", target, near=(target, closed), content="Works at Google", expected_version=1).transitions


def test_prune_and_merge_are_refused_when_in_doubt() -> None:
    moved = stored_fact("Works at Google", changes={"version": 5})
    assert apply("prune", moved, expected_version=2).verdict == "refused"
    assert actions(apply("prune", moved, expected_version=5)) == ["pruned"]
    assert apply("merge", moved, moved, content="x").verdict == "refused"
    other = stored_fact("Likes tea", subject="jennifer")
    assert apply("merge", FACT, other, content="x").verdict == "refused"
    third = stored_fact("x", turn="t9")
    assert apply("merge", FACT, stored_fact("Is at Google"), content="x", equal=third).verdict == "refused"
    assert actions(apply("merge", FACT, stored_fact("Is at Google"), content="x")) == ["merged", "merged"]


def test_sources_make_it_as_secret_and_as_trusted_as_the_worst_of_them() -> None:
    settled = apply(
        "new",
        subject="user",
        content="Leads a team",
        category="profession",
        episodes=(NEWS, episode("B", turn="t8", sensitivity="secret", trust="assistant")),
    )
    fact = settled.transitions[0].fact
    assert (fact.sensitivity, fact.trust, fact.reinforcement_count) == ("secret", "assistant", 0)


@pytest.mark.parametrize("state", ["superseded", "invalidated", "expired"])
def test_new_does_not_bring_back_what_was_closed_since_from_the_same_turns(state: str) -> None:
    gone = stored_fact("Works at Google", changes={"state": state})
    old = episode("Works at Google", turn="t1")
    proposed = {"subject": "user", "content": "Works at Google", "category": "profession"}
    settled = apply("new", closed=(gone,), episodes=(old,), **proposed)
    assert (settled.verdict, settled.fact_id, actions(settled)) == ("stale", gone.fact_id, [])
    assert actions(apply("new", closed=(gone,), episodes=(old, NEWS), **proposed)) == ["new"]  # said again since
    assert actions(apply("new", closed=(gone,), episodes=(), **proposed)) == ["new"]


@pytest.mark.parametrize("place", [0, 1])
def test_a_pinned_fact_is_neither_pruned_nor_merged_away(place: int) -> None:
    rows = [FACT, stored_fact("Is employed by Google", turn="t2")]
    rows[place] = pinned = rows[place].model_copy(update={"pinned_at": NOW})
    merge = {"content": "Works at Google", "expected_version": 1, "confidence": 0.8}
    for action, targets, fields in (("prune", [pinned], {}), ("merge", rows, merge)):
        settled = apply(action, *targets, **fields)
        assert (settled.verdict, settled.fact_id, settled.transitions) == ("refused", pinned.fact_id, ())
        assert "is pinned" in settled.reason


def test_an_update_that_another_fact_states_closes_no_pinned_fact() -> None:
    pinned, other = FACT.model_copy(update={"pinned_at": NOW}), stored_fact("Works at Google in Zurich", turn="t2")
    settled = apply("update", pinned, equal=other, content=other.content)
    assert (settled.verdict, settled.fact_id, settled.transitions) == ("refused", pinned.fact_id, ())


def test_a_pin_changes_no_decision_about_what_is_true() -> None:
    pinned = FACT.model_copy(update={"pinned_at": NOW})
    assert actions(apply("invalidate", pinned)) == ["invalidated"]
    (updated,) = apply("update", pinned, content="Works at Google in Zurich", expected_version=1).transitions
    assert (updated.action, updated.fact.is_pinned) == ("updated", True)
