"""The conflict corpus: pairs of statements with the right decision of each, and the score of decisions.

Rules may be tuned on tests/corpora/conflict/tune.jsonl and tune_more.jsonl (idioms of changed jobs, moves, ties and
ended habits, written later). test.jsonl measures and was committed before the first rule.

A line has `id, kind, old, new, expect, why`. Where two outcomes are acceptable it has `also_accept`; `expect_hashing`
or `expect_dense` replaces `expect` where the similarity zone decides. `old` and `new` have subject, content, category
and, where it matters, valid_from. `new` also has occurred_at, `late` (its turn is older than the old one's) and
`is_correction`. `replaces` is never set: the pipeline sees only the two texts. `supersede` means that the old row
closes, superseded or (a correction) invalidated.

`python -m tests.support.conflict_corpus [dense]` shows what the pipeline gets wrong on the tuning files, with hashing
or with the small model.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from memstream.adapters.embedders.factory import create_embedder
from memstream.memory.facts.conflict import Neighbours, carry_out, resolve
from memstream.memory.facts.similarity import NearFact, cosine
from memstream.memory.facts.statements import Statement, statement_from_observation
from memstream.memory.facts.transitions import Stamp, Transition, create
from memstream.memory.policies import MemoryPolicy
from memstream.schemas.facts import Decision, StoredFact
from tests.support.completion_requests import Ledger
from tests.support.record_builders import observation, observed
from tests.support.small_model import MINILM

FOLDER = Path(__file__).resolve().parent.parent / "corpora" / "conflict"
Outcome = Literal["admit", "reinforce", "updated", "supersede", "pending", "history"]
Half = Literal["tune", "tune_more", "test"]
Embedding = Literal["hashing", "dense"]
TUNED_ON: tuple[Half, ...] = ("tune", "tune_more")
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
MERGES: frozenset[Outcome] = frozenset({"reinforce", "updated"})
"""Outcomes after which the new statement has no row of its own."""

OLD_TOLD = datetime(2026, 5, 1, 10, tzinfo=UTC)
NEW_TOLD = datetime(2026, 6, 1, 10, tzinfo=UTC)
LATE_TOLD = datetime(2026, 4, 1, 10, tzinfo=UTC)
NOW = datetime(2026, 6, 1, 10, 1, tzinfo=UTC)
"""The time of the decision on the new statement, late or not."""


@dataclass(frozen=True, slots=True)
class Side:
    subject: str
    content: str
    category: str
    told: datetime
    valid_from: datetime | None
    is_correction: bool


@dataclass(frozen=True, slots=True)
class Pair:
    id: str
    kind: str
    old: Side
    new: Side
    accepted: dict[Embedding, frozenset[Outcome]]
    why: str

    def __str__(self) -> str:
        return f"{self.id}: {_shown(self.old)} / {_shown(self.new)}"

    def known(self) -> StoredFact:
        """Return the old statement as an active row."""
        made = create(
            _statement(self.old, turn="t1"),
            Stamp(now=self.old.told, cause="old", embedder="hashing"),
            reason="",
            decision=Decision(stage="admit"),
        )
        return made.fact

    def said(self) -> Statement:
        """The new statement, on its way into the facts of the same owner."""
        return _statement(self.new, turn="t2")


@dataclass(frozen=True, slots=True)
class Report:
    """The right decisions of one half of the corpus, and the wrong ones."""

    pairs: int
    wrong: tuple[tuple[Pair, Outcome], ...]
    false_merges: tuple[tuple[Pair, Outcome], ...]
    """Two different statements became one row."""
    false_supersedes: tuple[tuple[Pair, Outcome], ...]
    """A row was closed that still holds."""
    kinds: tuple[tuple[str, int, int], ...]
    """kind, right decisions, all decisions"""

    @property
    def right(self) -> float:
        return 1 - len(self.wrong) / self.pairs

    @property
    def false_merged(self) -> float:
        return len(self.false_merges) / self.pairs

    @property
    def false_superseded(self) -> float:
        return len(self.false_supersedes) / self.pairs

    def __str__(self) -> str:
        return (
            f"{self.pairs} pairs, right {self.right:.1%}, false merges {self.false_merged:.1%} "
            f"({len(self.false_merges)}), false supersedes {self.false_superseded:.1%} ({len(self.false_supersedes)})"
        )

    def lines(self) -> list[str]:
        """Return one line for each wrong decision, and the figures of each kind."""
        listed = [
            f"{pair} → {got}, not {' or '.join(sorted(pair.accepted['hashing'] | pair.accepted['dense']))} ({pair.why})"
            for pair, got in self.wrong
        ]
        return [*listed, *(f"{kind}: {right} of {every}" for kind, right, every in self.kinds), str(self)]


@cache
def pairs(half: Half) -> tuple[Pair, ...]:
    return tuple(_pair(row) for row in rows(half))


def pairs_of(file: Path) -> tuple[Pair, ...]:
    """Return the pairs of a corpus in another language."""
    return tuple(_pair(json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines())


def rows(half: Half) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{half}.jsonl").read_text(encoding="utf-8").splitlines()]


def score(
    decide: Callable[[Pair], Outcome], chosen: Sequence[Pair] | None = None, *, embedding: Embedding = "hashing"
) -> Report:
    """Score `decide` on the pairs (default: the tuning half)."""
    chosen = pairs("tune") if chosen is None else chosen
    decided = [(pair, decide(pair)) for pair in chosen]
    wrong = tuple((pair, got) for pair, got in decided if got not in pair.accepted[embedding])
    every, bad = Counter(pair.kind for pair in chosen), Counter(pair.kind for pair, _ in wrong)
    return Report(
        pairs=len(chosen),
        wrong=wrong,
        false_merges=tuple((p, got) for p, got in wrong if got in MERGES and not p.accepted[embedding] & MERGES),
        false_supersedes=tuple((p, got) for p, got in wrong if got == "supersede"),
        kinds=tuple((kind, every[kind] - bad[kind], every[kind]) for kind in every),
    )


async def similarities(chosen: Sequence[Pair], embedder: str) -> dict[str, float]:
    """Return the similarity (-1 to 1) of the two statements of each pair. `embedder` is a value of
    MEMSTREAM_EMBEDDER.
    """
    model = create_embedder(embedder, api_key=None, base_url=None, timeout=60.0, sink=Ledger())
    try:
        texts = sorted({side.content for pair in chosen for side in (pair.old, pair.new)})
        vectors = dict(zip(texts, await model.embed(texts, tenant_id="acme"), strict=True))
    finally:
        await model.close()
    return {pair.id: cosine(vectors[pair.old.content], vectors[pair.new.content]) for pair in chosen}


def by_pipeline(similar: Mapping[str, float], *, embedding: Embedding, locale: str = "en") -> Callable[[Pair], Outcome]:
    """Return the conflict pipeline's decision on two statements of one owner, with no other facts."""
    standard = MemoryPolicy()
    policy = replace(standard, conflict=replace(standard.conflict, lexical=embedding == "hashing", locale=locale))

    def decide(pair: Pair) -> Outcome:
        known, said = pair.known(), pair.said()
        found = Neighbours()
        if known.subject == said.subject:
            equal = known if known.content_hash == said.content_hash else None
            found = Neighbours(equal=equal, near=(NearFact(known, similar[pair.id]),))
        stamp = Stamp(now=NOW, cause="new", embedder=embedding)
        return outcome(carry_out(resolve(said, found, policy, now=NOW), said, stamp, policy))

    return decide


async def measured(half: Half, *, embedding: Embedding) -> Report:
    chosen = pairs(half)
    name = "hashing" if embedding == "hashing" else f"fastembed:{MINILM}"
    decide = by_pipeline(await similarities(chosen, name), embedding=embedding)
    return score(decide, chosen, embedding=embedding)


def outcome(transitions: Iterable[Transition]) -> Outcome:
    """The outcome that the transitions of one decision amount to."""
    made = list(transitions)
    if any(each.before is not None and each.action in ("superseded", "invalidated") for each in made):
        return "supersede"
    (only,) = made
    if only.action == "updated":
        return "updated"
    if only.before is not None:
        return "reinforce"
    if only.action == "superseded":
        return "history"
    return "pending" if only.fact.state == "pending" else "admit"


def _pair(row: dict[str, Any]) -> Pair:
    accepted: dict[Embedding, frozenset[Outcome]] = {
        embedding: frozenset({row.get(f"expect_{embedding}") or row["expect"], *row.get("also_accept", [])})
        for embedding in get_args(Embedding)
    }
    new = row["new"]
    told = LATE_TOLD if new.get("late") else NEW_TOLD
    return Pair(row["id"], row["kind"], _side(row["old"], OLD_TOLD), _side(new, told), accepted, row["why"])


def _side(row: dict[str, Any], told: datetime) -> Side:
    return Side(
        subject=row["subject"],
        content=row["content"],
        category=row["category"],
        told=_time(row.get("occurred_at")) or told,
        valid_from=_time(row.get("valid_from")),
        is_correction=row.get("is_correction", False),
    )


def _statement(side: Side, *, turn: str) -> Statement:
    said = observation(
        side.content,
        turn=turn,
        subject=side.subject,
        category=side.category,
        valid_from=side.valid_from,
        is_correction=side.is_correction,
    )
    return statement_from_observation(observed(said, turn=turn, occurred_at=side.told), said, MemoryPolicy())


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _shown(side: Side) -> str:
    return repr(side.content) if side.subject == "user" else f"{side.subject}: {side.content!r}"


if __name__ == "__main__":
    chosen_embedding: Embedding = "dense" if "dense" in sys.argv[1:] else "hashing"
    for tuned_on in TUNED_ON:
        print(*asyncio.run(measured(tuned_on, embedding=chosen_embedding)).lines(), sep="\n")
