"""How near two statements are, in the terms of the embedder that measured it (memory-model §6, conflict pipeline 2).

This version computes the zone and writes it into every decision; it acts from the next one on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..schemas import ids
from ..schemas.facts import StoredFact, Zone
from .policies import ConflictPolicy

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Near:
    """A neighbour and its cosine similarity, -1 to 1."""

    fact: StoredFact
    similarity: float


@dataclass(frozen=True, slots=True)
class Measured:
    zone: Zone
    similarity: float | None
    fact: StoredFact | None


def words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(ids.canonical(text)))


def jaccard(one: str, other: str) -> float:
    """Shared words over all words, 0–1."""
    mine, theirs = words(one), words(other)
    return len(mine & theirs) / len(mine | theirs) if mine | theirs else 0.0


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    norm = math.sqrt(sum(x * x for x in one)) * math.sqrt(sum(x * x for x in other))
    return sum(x * y for x, y in zip(one, other, strict=True)) / norm if norm else 0.0


def measure(content: str, neighbours: Sequence[Near], policy: ConflictPolicy) -> Measured:
    """The zone of the nearest neighbour. Under a lexical embedder nearness is the share of common words, and
    CONFLICT-CHECK needs the same known predicate, which this version does not know."""
    if not neighbours:
        return Measured("COLD", None, None)
    if policy.lexical:
        best = max(neighbours, key=lambda near: jaccard(content, near.fact.content))
        shared = jaccard(content, best.fact.content)
        return Measured("NEAR-DUP" if shared >= policy.jaccard_near_dup else "COLD", round(shared, 6), best.fact)
    best = max(neighbours, key=lambda near: near.similarity)
    similarity = round(min(1.0, max(-1.0, best.similarity)), 6)
    return Measured(_zone(similarity, policy), similarity, best.fact)


def _zone(similarity: float, policy: ConflictPolicy) -> Zone:
    if policy.hot is not None and similarity >= policy.hot:
        return "HOT"
    if similarity >= policy.near_dup:
        return "NEAR-DUP"
    return "CONFLICT-CHECK" if similarity > policy.conflict_check else "COLD"
