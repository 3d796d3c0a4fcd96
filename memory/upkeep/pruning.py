"""Prune, the pure part: which facts are looked through, and what of a model's answer may go (memory-model §7).

In doubt a fact is kept: a reason has to be one that this policy knows, and what protects a fact is looked at again,
whatever the model says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import ValidationError

from ...schemas.base import CONTENT_MAX
from ...schemas.commands import Change
from ...schemas.facts import StoredFact
from ..language.text import one_line
from ..policies import PrunePolicy

PruneReason = Literal["redundant", "noise", "contradicted", "vague"]
SOURCES_MAX: Final = 64
_WHY: Final[tuple[tuple[PruneReason, re.Pattern[str]], ...]] = (
    ("contradicted", re.compile(r"contradict|supersede|outdated|replaced|no longer", re.IGNORECASE)),
    ("redundant", re.compile(r"redundan|duplicate|same as|already said|repeat", re.IGNORECASE)),
    (
        "noise",
        re.compile(r"noise|one[- ]off|transient|only (?:of|for|in) (?:a|one|that) session|trivial", re.IGNORECASE),
    ),
    ("vague", re.compile(r"vague|unclear|too general", re.IGNORECASE)),
)
_WORD: Final = re.compile(r"\w+")


def is_prune_due(active: int, changed: int, policy: PrunePolicy) -> bool:
    """Enough facts, enough of them new or changed since the last time."""
    return 0 < policy.facts <= active and changed >= policy.changed


def sort_key(fact: StoredFact) -> str:
    """Where a fact stands in the order in which facts are looked through: a subject's together, oldest first."""
    return f"{fact.subject}/{fact.recorded_at.isoformat()}/{fact.fact_id}"


def select_next_facts(
    facts: Sequence[StoredFact], *, after: str, policy: PrunePolicy
) -> tuple[tuple[StoredFact, ...], str]:
    """At most as many as one call takes, going on after the slot where the last call stopped, from the start when that
    was the end; and the slot where this one stops, "" at the end."""
    ordered = sorted(facts, key=sort_key)
    rest = [fact for fact in ordered if sort_key(fact) > after] or ordered
    shown = tuple(rest[: policy.max_facts])
    return shown, sort_key(shown[-1]) if len(rest) > len(shown) else ""


# ------------------------------------------------------------------------------------------- the model's answer
@dataclass(frozen=True, slots=True)
class Removal:
    """One removal, its id still the prompt's short one."""

    fact: str
    reason: str


@dataclass(frozen=True, slots=True)
class MergeProposal:
    sources: tuple[str, ...]
    content: str
    reason: str


@dataclass(frozen=True, slots=True)
class PruneProposals:
    """`dropped` counts, by reason, what of the answer is not proposed; `protected` are facts that stay by policy."""

    changes: tuple[Change, ...]
    dropped: Mapping[str, int]

    @property
    def removals(self) -> int:
        return sum(change.action == "prune" for change in self.changes)

    @property
    def merges(self) -> int:
        return sum(change.action == "merge" for change in self.changes)


def prune_proposals(
    removals: Sequence[Removal],
    merges: Sequence[MergeProposal],
    *,
    facts: Mapping[str, StoredFact],
    policy: PrunePolicy,
) -> PruneProposals:
    """Merges first: what goes into one is not removed, since nothing of it is lost. Each fact is touched once. A fact
    that a removal leans on (the newer one, the one that says the same) is not itself removed."""
    changes: list[Change] = []
    dropped: dict[str, int] = {}
    touched: set[str] = set()

    def drop(reason: str) -> None:
        dropped[reason] = dropped.get(reason, 0) + 1

    for merge in merges:
        sources = [facts[each] for each in dict.fromkeys(merge.sources) if each in facts]
        problem = _unmergeable(merge, sources, touched)
        if problem is not None:
            drop(problem)
            continue
        try:
            changes.append(_merged(merge, sources))
        except ValidationError:
            drop("invalid")
            continue
        touched.update(fact.fact_id for fact in sources)
    for removal in removals:
        fact = facts.get(removal.fact)
        if fact is None:
            drop("unknown_fact")
            continue
        if fact.fact_id in touched:
            drop("twice")
            continue
        others = [each for each in facts.values() if each.fact_id not in touched and each.fact_id != fact.fact_id]
        standing = [each for each in others if each.subject == fact.subject]
        leans_on = find_required_facts(fact, classify_reason(removal.reason), standing, policy)
        if leans_on is None:
            drop("protected")
            continue
        touched.add(fact.fact_id)
        touched.update(each.fact_id for each in leans_on)
        changes.append(
            Change(
                action="prune",
                target_fact_id=fact.fact_id,
                expected_version=fact.version,
                reason=one_line(removal.reason)[:1_000],
            )
        )
    return PruneProposals(tuple(changes), dropped)


def classify_reason(reason: str) -> PruneReason | None:
    """Which of the four reasons it is; None for another one."""
    return next((why for why, pattern in _WHY if pattern.search(reason)), None)


def find_required_facts(
    fact: StoredFact, why: PruneReason | None, standing: Sequence[StoredFact], policy: PrunePolicy
) -> tuple[StoredFact, ...] | None:
    """None: it is kept. Else the facts of its subject that have to stay because of it.

    contradicted: by a newer fact of the subject. redundant: another one says all of its words. Often reinforced: only
    contradicted. Sure: contradicted, or word for word in another.
    """
    newer = tuple(each for each in standing if each.recorded_at > fact.recorded_at)
    if why == "contradicted":
        return newer[-1:] if newer else None
    if why is None or fact.reinforcement_count >= policy.protected_reinforcements:
        return None
    if why == "redundant":
        same = tuple(each for each in standing if _words(fact.content) <= _words(each.content))
        return same[:1] if same else None
    return () if fact.confidence < policy.protected_confidence else None


def _unmergeable(merge: MergeProposal, sources: Sequence[StoredFact], touched: set[str]) -> str | None:
    if len(sources) < len(dict.fromkeys(merge.sources)):
        return "unknown_fact"
    if not 2 <= len(sources) <= SOURCES_MAX:
        return "too_few_sources"
    if len({fact.subject for fact in sources}) > 1:
        return "other_subjects"
    if any(fact.fact_id in touched for fact in sources):
        return "twice"
    content = one_line(merge.content)
    return "invalid" if not content or len(content) > CONTENT_MAX else None


def _merged(merge: MergeProposal, sources: Sequence[StoredFact]) -> Change:
    """The first id survives; the reflector unions what proves them. Its version alone can be named."""
    return Change(
        action="merge",
        source_fact_ids=tuple(fact.fact_id for fact in sources),
        expected_version=sources[0].version,
        content=one_line(merge.content),
        reason=one_line(merge.reason)[:1_000],
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
