"""How good a ranked answer is against the evidence, each 0 to 1; the mean over questions is what is reported."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quality:
    """Of one answer or, as means, of many."""

    recall_at_5: float
    recall_at_10: float
    mrr: float
    """Within the first 10."""
    ndcg_at_10: float


def quality(ranked: Sequence[str], evidence: Collection[str]) -> Quality:
    """Of one answer, best first, each id once. `evidence` holds at least one id."""
    return Quality(
        recall(ranked, evidence, at=5),
        recall(ranked, evidence, at=10),
        reciprocal_rank(ranked, evidence, at=10),
        ndcg(ranked, evidence, at=10),
    )


def mean(qualities: Sequence[Quality]) -> Quality:
    """Of at least one."""
    count = len(qualities)
    return Quality(
        sum(each.recall_at_5 for each in qualities) / count,
        sum(each.recall_at_10 for each in qualities) / count,
        sum(each.mrr for each in qualities) / count,
        sum(each.ndcg_at_10 for each in qualities) / count,
    )


def recall(ranked: Sequence[str], evidence: Collection[str], *, at: int) -> float:
    """The share of the evidence that stands among the first `at`."""
    return len(set(ranked[:at]) & set(evidence)) / len(evidence)


def reciprocal_rank(ranked: Sequence[str], evidence: Collection[str], *, at: int) -> float:
    """1 ÷ the place, from 1, of the first that is evidence; 0 when none is among the first `at`."""
    return next((1 / place for place, each in enumerate(ranked[:at], start=1) if each in evidence), 0.0)


def ndcg(ranked: Sequence[str], evidence: Collection[str], *, at: int) -> float:
    """Discounted gain (Järvelin, Kekäläinen 2002), evidence counting 1 and the rest 0, ÷ the greatest possible."""
    gained = sum(1 / math.log2(place + 1) for place, each in enumerate(ranked[:at], start=1) if each in evidence)
    possible = sum(1 / math.log2(place + 1) for place in range(1, min(len(evidence), at) + 1))
    return gained / possible
