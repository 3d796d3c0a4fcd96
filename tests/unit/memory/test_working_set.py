"""The working set: its rules one by one, then random turns against a model."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memstream.memory.decay import decay
from memstream.memory.policies import DecayPolicy, WorkingSetPolicy
from memstream.memory.working_set import entries as ws
from memstream.memory.working_set.entries import EntryCandidate, apply_turn
from memstream.schemas.working_set import WorkingSet
from tests.support.record_builders import observation

POLICY = WorkingSetPolicy()
HALF = 2**-0.5


def said(content: str, *, replaces: str | None = None, pinned: bool = False, **fields: object) -> EntryCandidate:
    return EntryCandidate(observation(content, **fields), replaces=replaces, pinned=pinned)


def entry_id(content: str, **fields: object) -> str:
    return observation(content, **fields).entry_id


def after(*turns: tuple[EntryCandidate, ...], policy: WorkingSetPolicy = POLICY) -> WorkingSet:
    working = WorkingSet()
    for candidates in turns:
        working = apply_turn(working, candidates, policy=policy).working
    return working


def contents(working: WorkingSet) -> list[str]:
    return [entry.content for entry in working.entries]


def test_after_its_own_turn_an_entry_stands_at_importance_times_decay_of_one() -> None:
    working = after((said("Likes tea", importance=0.6),))
    assert working.turn == 1
    assert working.entries[0].salience == pytest.approx(0.6 * HALF)


def test_a_turn_without_observations_ticks_too() -> None:
    working = after((said("Likes tea", importance=0.6),), (), ())
    assert working.turn == 3
    assert working.entries[0].salience == pytest.approx(0.6 * 0.5)


def test_the_least_salient_makes_room_and_is_reported_when_it_would_last() -> None:
    policy = WorkingSetPolicy(capacity=2, max_pinned=1)
    low, high = said("A", importance=0.3), said("B", importance=0.9)
    applied = apply_turn(after((low, high), policy=policy), (said("C", importance=0.1),), policy=policy)
    assert contents(applied.working) == ["B", "C"]
    assert [gone.entry_id for gone in applied.evicted] == [low.observation.entry_id]


def test_what_would_not_last_goes_silently() -> None:
    policy = WorkingSetPolicy(capacity=1, max_pinned=0)
    applied = apply_turn(after((said("A", durability="session"),), policy=policy), (said("B"),), policy=policy)
    assert applied.evicted == ()
    assert [gone.content for gone in applied.evicted_entries] == ["A"]


def test_among_equals_the_oldest_goes() -> None:
    policy = WorkingSetPolicy(capacity=2, max_pinned=0, decay=DecayPolicy("none"))
    working = after((said("A"),), (said("B"),), (said("C"),), policy=policy)
    assert contents(working) == ["B", "C"]


def test_a_pinned_entry_stays_and_a_third_pin_is_refused_but_kept() -> None:
    policy = WorkingSetPolicy(capacity=3, max_pinned=2)
    turn = tuple(said(text, pinned=True, importance=0.1) for text in "ABC")
    applied = apply_turn(WorkingSet(), turn, policy=policy)
    assert applied.pins_refused == 1
    later = apply_turn(applied.working, (said("D"), said("E")), policy=policy).working
    assert set(contents(later)) == {"A", "B", "E"}


def test_replaces_takes_the_old_entry_out_pinned_or_not_and_is_no_eviction() -> None:
    working = after((said("Works at Google", pinned=True),))
    applied = apply_turn(
        working, (said("Works at Stripe", turn="t2", replaces=entry_id("Works at Google")),), policy=POLICY
    )
    assert contents(applied.working) == ["Works at Stripe"]
    assert applied.evicted_entries == ()
    assert [(r.replaced_observation_id, r.present) for r in applied.replaced] == [(entry_id("Works at Google"), True)]


def test_replaces_is_done_before_anything_is_added() -> None:
    policy = WorkingSetPolicy(capacity=2, max_pinned=0)
    working = after((said("A"), said("B")), policy=policy)
    applied = apply_turn(working, (said("C"), said("D", replaces=entry_id("A"))), policy=policy)
    assert set(contents(applied.working)) == {"C", "D"}
    assert [gone.content for gone in applied.evicted_entries] == ["B"]


def test_replaces_with_the_same_statement_is_a_refresh() -> None:
    working = after((said("Likes tea"),), ())
    applied = apply_turn(working, (said("likes  TEA", turn="t3", replaces=entry_id("Likes tea")),), policy=POLICY)
    assert applied.replaced == ()
    assert contents(applied.working) == ["Likes tea"]
    assert applied.working.entries[0].salience == pytest.approx(0.8 * HALF)


def test_an_earlier_observation_of_the_same_turn_can_be_replaced() -> None:
    policy = WorkingSetPolicy(capacity=1, max_pinned=0)
    first, second = said("Lives in Rome"), said("Lives in Oslo", replaces=entry_id("Lives in Rome"))
    applied = apply_turn(WorkingSet(), (first, second), policy=policy)
    assert contents(applied.working) == ["Lives in Oslo"]
    assert applied.evicted_entries == ()
    assert applied.replaced[0].replaced_observation_id == first.observation.observation_id


def test_an_unknown_replaces_changes_nothing_else() -> None:
    applied = apply_turn(WorkingSet(), (said("A", replaces="nobody"),), policy=POLICY)
    assert contents(applied.working) == ["A"]
    assert [r.present for r in applied.replaced] == [False]


@pytest.mark.parametrize(
    ("old", "new", "keeps"),
    [
        ({"durability": "session"}, {"durability": "permanent"}, "t2"),
        ({"durability": "permanent"}, {"durability": "session", "importance": 1.0}, "t1"),
        ({"importance": 0.5}, {"importance": 0.9}, "t2"),
        ({"importance": 0.5}, {"importance": 0.5}, "t1"),
    ],
)
def test_a_refreshed_entry_keeps_the_id_of_the_weightier_observation(
    old: dict[str, object], new: dict[str, object], keeps: str
) -> None:
    applied = apply_turn(after((said("A", turn="t1", **old),)), (said("a", turn="t2", **new),), policy=POLICY)
    entry = applied.working.entries[0]
    assert entry.observation_id == entry.entry_id == observation("A", turn=keeps).observation_id
    assert applied.refreshed[0].entry_id == entry.entry_id


def test_same_text_about_someone_else_is_another_entry() -> None:
    assert len(after((said("Likes tea"), said("Likes tea", subject="jennifer"))).entries) == 2


def test_a_candidate_that_makes_no_entry_is_skipped_and_the_rest_goes_on() -> None:
    bad = EntryCandidate(observation("A"), metadata={"note": "x" * 5_000})
    applied = apply_turn(WorkingSet(), (bad, said("B")), policy=POLICY)
    assert contents(applied.working) == ["B"]
    assert applied.skipped == (observation("A").observation_id,)


def test_single_operations() -> None:
    working = after((said("A", importance=0.5), said("B", importance=0.6)), ())
    a = entry_id("A")
    assert contents(ws.refresh(working, a, POLICY.decay)) == ["A", "B"]
    pinned = ws.pin(working, a, POLICY)
    assert ws.find(pinned, a).pinned  # type: ignore[union-attr]
    assert not ws.find(ws.unpin(pinned, a), a).pinned  # type: ignore[union-attr]
    assert contents(ws.evict(pinned, a)) == ["B"]
    with pytest.raises(ws.UnknownEntryError):
        ws.evict(working, "nobody")
    with pytest.raises(ws.PinRefusedError):
        ws.pin(working, a, WorkingSetPolicy(max_pinned=0))


# ------------------------------------------------------------------------------------------- against a model
TEXTS = [f"text {n}" for n in range(6)]


@dataclass(frozen=True)
class Step:
    texts: tuple[tuple[str, float, bool], ...]
    replaces: str | None


STEPS = st.lists(
    st.builds(
        Step,
        texts=st.lists(
            st.tuples(st.sampled_from(TEXTS), st.sampled_from([0.1, 0.4, 0.4, 0.9]), st.booleans()), max_size=4
        ).map(tuple),
        replaces=st.sampled_from([None, *TEXTS]),
    ),
    max_size=12,
)
POLICIES = st.integers(1, 4).flatmap(
    lambda capacity: st.builds(
        WorkingSetPolicy,
        capacity=st.just(capacity),
        max_pinned=st.integers(0, capacity - 1),
        decay=st.builds(
            DecayPolicy, strategy=st.sampled_from(["power-law", "exponential", "none"]), rate=st.floats(0.1, 2)
        ),
    )
)


@dataclass
class Row:
    importance: float
    born: int
    seen: int
    pinned: bool
    stored: float
    """Salience at the last change or tick: eviction compares it."""


def in_order(model: dict[str, Row]) -> dict[str, Row]:
    """Sort rows by salience, then age. Rows of equal salience that one turn made keep their order, and the first of
    them is evicted first; so the model sorts wherever the set does, after each change and at each tick."""
    return dict(sorted(model.items(), key=lambda item: (-item[1].stored, item[1].born)))


@example(
    [
        Step((("text 0", 0.1, False), ("text 1", 0.4, False)), None),
        Step((("text 0", 0.4, False), ("text 1", 0.1, False), ("text 2", 0.1, False)), None),
    ],
    WorkingSetPolicy(capacity=2, max_pinned=0, decay=DecayPolicy("power-law", rate=1.0)),
)
@given(STEPS, POLICIES)
def test_against_a_plain_dictionary(steps: list[Step], policy: WorkingSetPolicy) -> None:
    model: dict[str, Row] = {}
    working = WorkingSet()
    for turn, step in enumerate(steps):
        candidates = [said(text, turn=f"t{turn}", importance=i, pinned=p) for text, i, p in step.texts]
        if step.replaces is not None and candidates:
            target = next((e.entry_id for e in working.entries if e.content == step.replaces), None)
            candidates[0] = EntryCandidate(candidates[0].observation, replaces=target, pinned=candidates[0].pinned)
            if target is not None and step.texts[0][0] != step.replaces:
                del model[step.replaces]
        for text, importance, wants_pin in step.texts:
            free = sum(row.pinned for row in model.values()) < policy.max_pinned
            if text in model:
                row = model[text]
                row.importance = max(row.importance, importance)
                row.seen, row.stored = turn, row.importance
                row.pinned = row.pinned or (wants_pin and free)
                model = in_order(model)
                continue
            if len(model) >= policy.capacity:
                loose = [t for t, row in model.items() if not row.pinned]
                del model[min(loose, key=lambda t: (model[t].stored, model[t].born))]
            model[text] = Row(importance, turn, turn, wants_pin and free, importance)
            model = in_order(model)
        working = apply_turn(working, candidates, policy=policy).working
        for row in model.values():
            row.stored = row.importance * decay(turn + 1 - row.seen, policy.decay)
        model = in_order(model)
        assert working.turn == turn + 1
        assert {e.content: (pytest.approx(e.salience), e.pinned) for e in working.entries} == {
            t: (row.stored, row.pinned) for t, row in model.items()
        }
        saliences = [e.salience for e in working.entries]
        assert saliences == sorted(saliences, reverse=True)
        assert len(working.entries) <= policy.capacity
        assert sum(e.pinned for e in working.entries) <= policy.max_pinned
        assert all(e.entry_id == e.observation_id for e in working.entries)
