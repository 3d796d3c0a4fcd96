"""The pure part of pruning: the facts that a call reviews, and the removals and merges that are proposed from the
answer of a model.

In doubt a fact is kept. A removal needs one of the four known reasons. A fact that the policy protects is kept,
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
from ..facts.trust_order import outranks
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
    """Return whether pruning is due: there are enough active facts, and enough new or changed facts since the last
    review."""
    return 0 < policy.facts <= active and changed >= policy.changed


def sort_key(fact: StoredFact) -> str:
    """Return the sort key of the review order: by subject, then oldest first."""
    return f"{fact.subject}/{fact.recorded_at.isoformat()}/{fact.fact_id}"


def select_next_facts(
    facts: Sequence[StoredFact], *, after: str, policy: PrunePolicy
) -> tuple[tuple[StoredFact, ...], str]:
    """Return the facts for the next call, and the sort key of the last of these facts, or "" when they end the list.

    `after`: the sort key that the previous call returned. The next call continues after this key. With "", or when no
    fact has a greater key, it begins with the first fact.
    """
    ordered = sorted(facts, key=sort_key)
    rest = [fact for fact in ordered if sort_key(fact) > after] or ordered
    shown = tuple(rest[: policy.max_facts])
    return shown, sort_key(shown[-1]) if len(rest) > len(shown) else ""


# ------------------------------------------------------------------------------------------- the model's answer
@dataclass(frozen=True, slots=True)
class Removal:
    """One removal of the model's answer, still with the short id of the prompt."""

    fact: str
    reason: str


@dataclass(frozen=True, slots=True)
class MergeProposal:
    """One merge of the model's answer, still with the short ids of the prompt."""

    sources: tuple[str, ...]
    content: str
    reason: str


@dataclass(frozen=True, slots=True)
class PruneProposals:
    """The usable changes. `dropped`: the number of items that are not proposed, by reason. The reason `protected`
    counts facts that stay by policy or by a pin."""

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
    """Convert a model's answer into changes.

    Merges come first, because a merge loses nothing. A fact that is merged is not removed. Each fact is changed at most
    once. Some removals need another fact: a newer fact, or a fact with the same content. This other fact stays, and it
    is not less trusted than the removed fact.
    """
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
        standing = [each for each in others if each.subject == fact.subject and not outranks(fact, each)]
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
    """Return the kind of a reason, or None when it is none of the four kinds."""
    return next((why for why, pattern in _WHY if pattern.search(reason)), None)


def find_required_facts(
    fact: StoredFact, why: PruneReason | None, standing: Sequence[StoredFact], policy: PrunePolicy
) -> tuple[StoredFact, ...] | None:
    """Return the facts of the same subject that must stay if this fact is removed; None when the fact is kept.

    - A pinned fact is kept.
    - contradicted: a newer fact of the subject is needed.
    - redundant: another fact must contain all words of this fact.
    - A fact that was reinforced often is removed only when it is contradicted.
    - A fact of high confidence is removed only when it is contradicted, or when another fact contains all words of it.
    """
    if fact.is_pinned:
        return None
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
    if any(fact.is_pinned for fact in sources):
        return "protected"
    content = one_line(merge.content)
    return "invalid" if not content or len(content) > CONTENT_MAX else None


def _merged(merge: MergeProposal, sources: Sequence[StoredFact]) -> Change:
    """Return the change that merges the facts. The first fact stays, so only its version is checked. The reflector adds
    the evidence of the other facts to the first fact."""
    return Change(
        action="merge",
        source_fact_ids=tuple(fact.fact_id for fact in sources),
        expected_version=sources[0].version,
        content=one_line(merge.content),
        reason=one_line(merge.reason)[:1_000],
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
