"""Measures of a ranked answer against the evidence, each 0 to 1. Reports show the mean over questions."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quality:
    """Measures of one answer, or means over many."""

    recall_at_5: float
    recall_at_10: float
    mrr: float
    """Mean reciprocal rank within the first 10 lines."""
    ndcg_at_10: float


def quality(ranked: Sequence[str], evidence: Collection[str]) -> Quality:
    """Return the quality of one answer (best first, each id once). `evidence` has at least one id."""
    return Quality(
        recall(ranked, evidence, at=5),
        recall(ranked, evidence, at=10),
        reciprocal_rank(ranked, evidence, at=10),
        ndcg(ranked, evidence, at=10),
    )


def mean(qualities: Sequence[Quality]) -> Quality:
    """Return the means of at least one quality."""
    count = len(qualities)
    return Quality(
        sum(each.recall_at_5 for each in qualities) / count,
        sum(each.recall_at_10 for each in qualities) / count,
        sum(each.mrr for each in qualities) / count,
        sum(each.ndcg_at_10 for each in qualities) / count,
    )


def recall(ranked: Sequence[str], evidence: Collection[str], *, at: int) -> float:
    """Return the share of the evidence that is among the first `at` lines."""
    return len(set(ranked[:at]) & set(evidence)) / len(evidence)


def reciprocal_rank(ranked: Sequence[str], evidence: Collection[str], *, at: int) -> float:
    """Return 1 ÷ the rank (from 1) of the first evidence; 0 if none is among the first `at` lines."""
    return next((1 / place for place, each in enumerate(ranked[:at], start=1) if each in evidence), 0.0)


def ndcg(ranked: Sequence[str], evidence: Collection[str], *, at: int) -> float:
    """Return the discounted gain (Järvelin, Kekäläinen 2002) ÷ the maximum gain. Evidence counts 1, other lines 0."""
    gained = sum(1 / math.log2(place + 1) for place, each in enumerate(ranked[:at], start=1) if each in evidence)
    possible = sum(1 / math.log2(place + 1) for place in range(1, min(len(evidence), at) + 1))
    return gained / possible
