"""Conflict cases: known statements told one by one, then a new one, and what must be believed afterwards.

A line has `id, kind, known, new, expect, active_after, why`. `expect` names the allowed outcomes: `pending_or_admit`
allows two. `or_active` are other allowed sets of active statements, `known_closed` are statements that must be over.
`replaces` is never set: the pipeline sees only texts and told times. tests/corpora/conflict/cases_tune.jsonl is for
writing rules, cases_test.jsonl only measures. A file of the same form may lie beside the repository (OUTSIDE).

`python -m tests.support.conflict_cases [dense] [FILE …]` shows what the pipeline gets wrong.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from memstream.adapters.embedders.factory import create_embedder
from memstream.memory.facts.conflict import Neighbours, carry_out, lookup_predicates, lookup_slots, resolve
from memstream.memory.facts.similarity import NearFact, cosine
from memstream.memory.facts.statements import Statement, statement_from_observation
from memstream.memory.facts.transitions import READABLE, Stamp, Transition, has_ended
from memstream.memory.policies import MemoryPolicy
from memstream.schemas.facts import StoredFact
from tests.support.completion_requests import Ledger
from tests.support.conflict_corpus import FOLDER, MERGES, Embedding, Outcome, outcome
from tests.support.record_builders import observation, observed
from tests.support.small_model import MINILM

TUNE, TEST = FOLDER / "cases_tune.jsonl", FOLDER / "cases_test.jsonl"
OUTSIDE = Path(__file__).resolve().parents[2].parent / "shared" / "corpora" / "pairs-tune.jsonl"
FIRST_TOLD = datetime(2026, 11, 1, 10, tzinfo=UTC)
_EXPECTED: Mapping[str, frozenset[str]] = {
    "pending_or_admit": frozenset(("pending", "admit")),
    "pending_or_supersede": frozenset(("pending", "supersede")),
    "retract": frozenset(("supersede",)),
}
"""Names in `expect` that are no outcome of their own."""


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    kind: str
    known: tuple[Mapping[str, Any], ...]
    new: Mapping[str, Any]
    expected: frozenset[str]
    active: tuple[frozenset[str], ...]
    """The allowed sets of active statements."""
    closed: frozenset[str]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Case:
        named = [row["expect"]] if isinstance(row["expect"], str) else row["expect"]
        return cls(
            id=row["id"],
            kind=row["kind"],
            known=tuple(row["known"]),
            new=row["new"],
            expected=frozenset(each for name in named for each in _EXPECTED.get(name, frozenset((name,)))),
            active=tuple(frozenset(each) for each in (row["active_after"], *row.get("or_active", ()))),
            closed=frozenset(row.get("known_closed", ())),
        )

    def __str__(self) -> str:
        known = " + ".join(repr(each["content"]) for each in self.known)
        return f"{self.id}: {known} / {self.new['content']!r}"

    @property
    def stays(self) -> frozenset[str]:
        """Statements that are active in every allowed end."""
        return frozenset.intersection(*self.active)


@dataclass(frozen=True, slots=True)
class Ending:
    """What the pipeline made of a case."""

    outcome: Outcome | Literal["nothing"]
    rows: tuple[StoredFact, ...]

    def active(self, subject: str) -> frozenset[str]:
        return frozenset(row.content for row in self.rows if row.state == "active" and row.subject == subject)

    def right(self, case: Case) -> bool:
        over = {row.content for row in self.rows if row.state not in READABLE}
        active = self.active(case.new["subject"])
        return self.outcome in case.expected and active in case.active and case.closed <= over

    def lost(self, case: Case) -> bool:
        """Whether a known statement closed that must stay, or the new one was merged away."""
        known = {each["content"] for each in case.known if each["subject"] == case.new["subject"]}
        closed = (known & case.stays) - self.active(case.new["subject"])
        return bool(closed) or (self.outcome in MERGES and not case.expected & MERGES)


@dataclass(frozen=True, slots=True)
class CaseReport:
    cases: int
    wrong: tuple[tuple[Case, Ending], ...]
    lost: tuple[Case, ...]
    kinds: Mapping[str, tuple[int, int]]
    """Kind → (right, all)."""

    @property
    def right(self) -> float:
        return 1 - len(self.wrong) / self.cases

    def __str__(self) -> str:
        lost = f"lost {len(self.lost)} ({len(self.lost) / self.cases:.1%})"
        return f"{self.cases} cases, right {self.right:.1%}, {lost}"

    def lines(self) -> list[str]:
        listed = [
            f"{case} → {ending.outcome} {sorted(ending.active(case.new['subject']))}, not {sorted(case.expected)}"
            + (" LOST" if case in self.lost else "")
            for case, ending in self.wrong
        ]
        return [*listed, *(f"{kind}: {right} of {every}" for kind, (right, every) in self.kinds.items()), str(self)]


def load(path: Path) -> tuple[Case, ...]:
    return tuple(Case.of(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines())


async def measure(path: Path, embedding: Embedding) -> CaseReport:
    chosen = load(path)
    texts = sorted({each["content"] for case in chosen for each in (*case.known, case.new)})
    name = "hashing" if embedding == "hashing" else f"fastembed:{MINILM}"
    model = create_embedder(name, api_key=None, base_url=None, timeout=60.0, sink=Ledger())
    try:
        vectors = dict(zip(texts, await model.embed(texts, tenant_id="acme"), strict=True))
    finally:
        await model.close()
    return report([(case, tell(case, vectors, embedding)) for case in chosen])


def report(ended: Sequence[tuple[Case, Ending]]) -> CaseReport:
    wrong = tuple((case, ending) for case, ending in ended if not ending.right(case))
    every, bad = Counter(case.kind for case, _ in ended), Counter(case.kind for case, _ in wrong)
    return CaseReport(
        cases=len(ended),
        wrong=wrong,
        lost=tuple(case for case, ending in ended if ending.lost(case)),
        kinds={kind: (every[kind] - bad[kind], every[kind]) for kind in sorted(every)},
    )


def tell(case: Case, vectors: Mapping[str, Sequence[float]], embedding: Embedding) -> Ending:
    """Tell the known statements in their order, a day apart, and then the new one."""
    standard = MemoryPolicy()
    policy = replace(standard, conflict=replace(standard.conflict, lexical=embedding == "hashing"))
    rows: dict[str, StoredFact] = {}
    made: tuple[Transition, ...] = ()
    for day, said in enumerate((*case.known, case.new)):
        told = FIRST_TOLD + timedelta(days=day)
        statement = _statement(said, f"t{day}", told, policy)
        stamp = Stamp(now=told + timedelta(minutes=1), cause=f"c{day}", embedder=embedding)
        found = neighbours(statement, tuple(rows.values()), vectors, policy)
        made = carry_out(resolve(statement, found, policy, now=stamp.now), statement, stamp, policy)
        rows |= {each.fact.fact_id: each.fact for each in made}
    return Ending(outcome(made) if made else "nothing", tuple(rows.values()))


def neighbours(
    statement: Statement, rows: Sequence[StoredFact], vectors: Mapping[str, Sequence[float]], policy: MemoryPolicy
) -> Neighbours:
    """Return the rows that the reflector would read for the statement."""
    mine = [row for row in rows if row.subject == statement.subject and row.state in READABLE]
    live = [row for row in mine if not has_ended(row, statement.begins)]
    equal = next((row for row in live if row.content_hash == statement.content_hash), None)
    if equal is not None:
        return Neighbours(equal=equal)
    said = vectors[statement.content]
    near = sorted((NearFact(row, cosine(said, vectors[row.content])) for row in mine), key=_nearness, reverse=True)
    near = near[: policy.conflict.neighbours]
    found = {each.fact.fact_id for each in near}
    predicates, slots = lookup_predicates(statement, policy), lookup_slots(statement, policy)
    named = (
        NearFact(row) for row in mine if (row.predicate in predicates or row.slot in slots) and row.fact_id not in found
    )
    return Neighbours(near=(*near, *named))


def _nearness(near: NearFact) -> float:
    return near.similarity or 0.0


def _statement(said: Mapping[str, Any], turn: str, told: datetime, policy: MemoryPolicy) -> Statement:
    times = {name: datetime.fromisoformat(said[name]) for name in ("valid_from", "valid_to") if said.get(name)}
    made = observation(
        said["content"],
        turn=turn,
        subject=said["subject"],
        category=said["category"],
        is_correction=said.get("is_correction", False),
        **{name: said[name] for name in ("slot", "value", "denied", "qualifier") if name in said},
        **times,
    )
    return statement_from_observation(observed(made, turn=turn, occurred_at=told), made, policy)


if __name__ == "__main__":
    chosen_embedding: Embedding = "dense" if "dense" in sys.argv[1:] else "hashing"
    files = [Path(each) for each in sys.argv[1:] if each != "dense"] or [OUTSIDE, TUNE]
    for file in files:
        print(*asyncio.run(measure(file, chosen_embedding)).lines(), sep="\n")
