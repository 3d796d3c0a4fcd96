"""Random lives of facts: statements arrive late, twice or again after a crash, from the observer or from a proposal.

There are two writers: turns, and commands that were made from rows as they were a while ago. The store is a dictionary
that applies outcomes like the real one: by compare and set, each outcome once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memstream.memory.facts.conflict import Neighbours, carry_out, resolve
from memstream.memory.facts.pending import judge_without_model
from memstream.memory.facts.proposals import settle
from memstream.memory.facts.similarity import NearFact
from memstream.memory.facts.statements import Statement, statement_from_change
from memstream.memory.facts.transitions import CLOSED, READABLE, Stamp, Transition
from memstream.memory.language.claims import asserts
from memstream.memory.language.locales import locale
from memstream.memory.language.parsing import read
from memstream.memory.policies import MemoryPolicy
from memstream.schemas.commands import Change
from memstream.schemas.facts import StoredFact
from tests.support.record_builders import NOW, OWNER, episode, observation, statement

TEXTS = (
    "Works at Google",
    "Is employed by Google",
    "Works at Google in Zurich",
    "Joined Stripe",
    "No longer works at Google",
    "Might join Adobe",
    "Lives in Oslo",
    "Moved to Bergen",
    "Is 34 years old",
    "Turned 35",
    "Likes tea",
    "No longer likes tea",
    "Speaks French",
    "Prefers aisle seats",
    "Prefers window seats",
)
POLICY = MemoryPolicy()
POLICY = replace(POLICY, conflict=replace(POLICY.conflict, lexical=True))
PACK = locale(POLICY.conflict.locale)
texts = st.sampled_from(TEXTS)
places = st.integers(0, 30)
subjects = st.sampled_from(("user", "user", "user", "jennifer"))


class Lives(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, StoredFact] = {}
        self.told: dict[str, list[Transition]] = defaultdict(list)
        self.heard: set[tuple[str, str]] = set()
        """(turn, text) that went in."""
        self.spoken: list[Statement] = []
        self.last: tuple[str, tuple[Transition, ...]] | None = None
        self.clock = NOW + timedelta(days=100)
        self.turns = 0
        self.commands = 0

    # ------------------------------------------------------------------------------------------- what happens
    @rule(text=texts, age=places, ahead=st.sampled_from((None, None, None, 1, -60)), about=subjects)
    def says(self, text: str, age: int, ahead: int | None, about: str) -> None:
        """A turn; older ones arrive late. Some say when the statement begins, in days from now."""
        self.turns += 1
        valid_from = None if ahead is None else self.clock + timedelta(days=ahead)
        self._tell(self._said(text, f"t{self.turns}", age, valid_from, subject=about))

    @rule(which=places)
    @precondition(lambda self: self.spoken)
    def comes_again(self, which: int) -> None:
        """A turn that a fact already has as evidence, from a restored log: it changes nothing."""
        said = self.spoken[which % len(self.spoken)]
        known = self._neighbours(said, None)
        if known.equal is None or not {each.turn_id for each in said.evidence} <= _turns(known.equal):
            return
        resolution = resolve(said, known, POLICY, now=self.clock)
        assert carry_out(resolution, said, self._stamp("again"), POLICY) == ()

    @rule(text=texts, which=places, age=places, correction=st.booleans())
    @precondition(lambda self: self._active())
    def replaces(self, text: str, which: int, age: int, correction: bool) -> None:
        self.turns += 1
        replaced = self._one(self._active(), which)
        said = self._said(text, f"t{self.turns}", age, None, is_correction=correction, subject=replaced.subject)
        self._tell(said, replaced=replaced)

    @rule(which=places)
    @precondition(lambda self: self.last is not None)
    def crashes(self, which: int) -> None:
        """The last outcome is applied again, from its first transition or from a later one."""
        assert self.last is not None
        cause, transitions = self.last
        self._store(cause, transitions[which % (len(transitions) + 1) :])

    @rule(
        action=st.sampled_from(("new", "reinforce", "update", "invalidate", "prune", "merge")),
        text=texts,
        which=places,
        other=places,
        behind=st.booleans(),
    )
    @precondition(lambda self: self.rows)
    def proposes(self, action: str, text: str, which: int, other: int, behind: bool) -> None:
        """A command that may be made from an older version of a row; the row may be closed since."""
        target, second = (self._one(list(self.rows.values()), place) for place in (which, other))
        named: dict[str, object] = {"target_fact_id": target.fact_id}
        if action == "merge":
            named = {"source_fact_ids": (target.fact_id, second.fact_id)}
        elif action == "new":
            named = {}
        version = max(1, target.version - behind)
        self._propose(
            Change(
                action=action,  # type: ignore[arg-type]
                subject=target.subject,
                content=text,
                category="profession",
                expected_version=version,
                **named,  # type: ignore[arg-type]
            ),
            (target, second) if action == "merge" else () if action == "new" else (target,),
        )

    @rule(which=places, judgement=st.sampled_from(("supersede", "duplicate", None)))
    @precondition(lambda self: any(row.state == "pending" for row in self.rows.values()))
    def judges(self, which: int, judgement: str | None) -> None:
        """A judgement by a model, or (None) one that needs no model."""
        pending = self._one([row for row in self.rows.values() if row.state == "pending"], which)
        known = self.rows.get(pending.waits_for or "")
        judged = judgement or judge_without_model(pending, known, self.clock)
        if judged is None or (known is None and judged != "coexist"):
            return
        named = () if known is None else (known.fact_id,)
        change = Change(action="judge", target_fact_id=pending.fact_id, source_fact_ids=named, judgement=judged)  # type: ignore[arg-type]
        self._propose(change, (pending,) if known is None else (pending, known))

    @rule(days=st.integers(1, 3))
    def time_passes(self, days: int) -> None:
        self.clock += timedelta(days=days)

    # ------------------------------------------------------------------------------------------- what must hold
    @invariant()
    def versions_rise_by_one(self) -> None:
        for fact_id, changes in self.told.items():
            assert [each.fact.version for each in changes] == list(range(1, len(changes) + 1))
            assert changes[0].before is None
            for before, after in pairwise(changes):
                assert after.before == before.fact
            assert self.rows[fact_id] == changes[-1].fact

    @invariant()
    def no_evidence_is_lost(self) -> None:
        for changes in self.told.values():
            kept: set[str] = set()
            for each in changes:
                now = _turns(each.fact)
                assert kept <= now
                kept = now
        spoken = {piece.turn_id for row in self.rows.values() for piece in row.evidence}
        assert {turn for turn, _ in self.heard} <= spoken

    @invariant()
    def the_count_is_that_of_distinct_evidence(self) -> None:
        for row in self.rows.values():
            turns = [(piece.session_id, piece.turn_id) for piece in row.evidence]
            assert len(set(turns)) == len(turns)
            assert row.reinforcement_count == max(0, len(turns) - 1)

    @invariant()
    def a_predicate_of_one_value_has_at_most_one_active(self) -> None:
        values: dict[tuple[str, str], set[str]] = defaultdict(set)
        for row in self._active():
            for claim in read(row.content, PACK):
                if asserts(claim) and claim.valued == "single" and claim.predicate is not None:
                    values[row.subject, claim.predicate].add(row.fact_id)
        for predicate, rows in values.items():
            assert len(rows) <= 1, (predicate, [self.rows[each].content for each in rows])

    @invariant()
    def what_closed_says_until_when_and_links_lead_somewhere(self) -> None:
        for row in self.rows.values():
            if row.state == "superseded":
                assert row.valid_to is not None
                assert row.valid_to >= row.valid_from
            if row.superseded_by is not None:
                assert row.state in CLOSED
                assert row.superseded_by in self.rows
            if row.supersedes is not None:
                assert self.rows[row.supersedes].state in CLOSED
            assert (row.waits_for is None) or row.state == "pending"

    # ------------------------------------------------------------------------------------------- within
    def _said(self, text: str, turn: str, age: int, valid_from: datetime | None, **fields: object) -> Statement:
        said = statement(text, turn=turn, valid_from=valid_from, **fields)
        heard = self.clock - timedelta(days=age)
        evidence = tuple(each.model_copy(update={"occurred_at": heard}) for each in said.evidence)
        return replace(said, occurred_at=heard, evidence=evidence)

    def _tell(self, said: Statement, replaced: StoredFact | None = None) -> None:
        stamp = self._stamp(f"turn-{self.turns}")
        resolution = resolve(said, self._neighbours(said, replaced), POLICY, now=self.clock)
        self.heard.add((said.evidence[0].turn_id, said.content))
        self.spoken.append(said)
        self._store(stamp.cause, carry_out(resolution, said, stamp, POLICY))

    def _propose(self, change: Change, targets: Sequence[StoredFact]) -> None:
        self.commands += 1
        stamp = self._stamp(f"command-{self.commands}")
        news = episode(change.content or "x", turn=f"c{self.commands}", occurred_at=self.clock)
        said = statement_from_change(
            change,
            cause=f"command-{self.commands}/0",
            tenant_id="acme",
            owner=OWNER,
            issued_at=self.clock,
            episodes=(news,) if change.content else (),
            target=targets[0] if targets else None,
            policy=POLICY,
        )
        settled = settle(
            change, said, targets=targets, neighbours=self._compared_with(change, said), stamp=stamp, policy=POLICY
        )
        self._store(stamp.cause, settled.transitions)

    def _neighbours(self, said: Statement, replaced: StoredFact | None) -> Neighbours:
        """Return the neighbours of a turn's statement as the reflector reads them: with an equal row it reads no
        others."""
        equal = self._equal(said)
        return Neighbours(replaced=replaced, equal=equal, near=() if equal is not None else self._near(said))

    def _compared_with(self, change: Change, said: Statement) -> Neighbours:
        """Return the neighbours of a proposal as the reflector reads them. A judgement has no equal row, since that
        would be its own row."""
        if change.action == "judge":
            return Neighbours(near=self._near(said))
        if change.action in ("new", "update", "merge"):
            return Neighbours(equal=self._equal(said), near=self._near(said))
        return Neighbours()

    def _equal(self, said: Statement) -> StoredFact | None:
        same = [each.fact for each in self._near(said) if each.fact.content_hash == said.content_hash]
        return min(same, key=lambda row: (row.state != "active", row.recorded_at, row.fact_id), default=None)

    def _near(self, said: Statement) -> tuple[NearFact, ...]:
        rows = self.rows.values()
        return tuple(NearFact(row) for row in rows if row.state in READABLE and row.subject == said.subject)

    def _store(self, cause: str, transitions: Sequence[Transition]) -> None:
        """Apply transitions like the store: a row that already carries the cause is skipped."""
        for each in transitions:
            stands = self.rows.get(each.fact.fact_id)
            if stands is not None and stands.version >= each.fact.version:
                assert cause in stands.applied
                continue
            assert (stands.version if stands else None) == (each.before.version if each.before else None)
            self.rows[each.fact.fact_id] = each.fact
            self.told[each.fact.fact_id].append(each)
        if transitions:
            self.last = cause, tuple(transitions)

    def _stamp(self, cause: str) -> Stamp:
        self.clock += timedelta(seconds=1)
        return Stamp(now=self.clock, cause=cause, embedder="hashing")

    def _active(self) -> list[StoredFact]:
        return [row for row in self.rows.values() if row.state == "active"]

    def _one(self, rows: Sequence[StoredFact], place: int) -> StoredFact:
        return rows[place % len(rows)]


def _turns(fact: StoredFact) -> set[str]:
    return {piece.turn_id for piece in fact.evidence}


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_the_texts_are_told_apart_by_turns() -> None:
    """The machine relies on this: an observation's id depends on its turn."""
    assert observation(TEXTS[0], turn="t1").observation_id != observation(TEXTS[0], turn="t2").observation_id


def test_a_fact_that_was_said_ahead_closes_another_value_that_was_said_meanwhile() -> None:
    lives = Lives()
    lives.says(text="Turned 35", age=0, ahead=1, about="user")
    lives.time_passes(days=3)
    lives.says(text="Is 34 years old", age=28, ahead=None, about="user")
    lives.judges(which=0, judgement=None)
    assert [row.content for row in lives._active()] == ["Turned 35"]


def test_a_fact_that_was_said_ahead_is_a_duplicate_of_one_that_was_reworded_meanwhile() -> None:
    lives = Lives()
    lives.says(text="Prefers window seats", age=0, ahead=None, about="user")
    lives.says(text="Works at Google in Zurich", age=0, ahead=1, about="user")
    lives.time_passes(days=2)
    lives.proposes(action="update", text="Is employed by Google", which=0, other=0, behind=False)
    lives.judges(which=0, judgement=None)
    assert [row.content for row in lives._active()] == ["Is employed by Google"]
