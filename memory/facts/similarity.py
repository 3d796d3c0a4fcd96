"""Similarity of two statements, and the zone that follows from the similarity. The zone limits depend on the
embedder."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from operator import mul

from ...schemas import ids
from ...schemas.facts import StoredFact, Zone
from ..language.plain_words import is_spaceless
from ..policies import ConflictPolicy
from .relations import SAME_STATEMENT, ClaimRelation, Relation

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class NearFact:
    """A known fact with its cosine similarity to the statement, -1 to 1; None when a lookup by predicate found it."""

    fact: StoredFact
    similarity: float | None = None


def words(text: str) -> frozenset[str]:
    """Return the distinct words of the canonical text."""
    return frozenset(part for run in _WORD.findall(ids.canonical(text)) for part in _parts(run))


def _parts(run: str) -> Iterator[str]:
    """Yield the word itself. In a script without spaces between words, yield each pair of adjacent letters instead."""
    if len(run) > 2 and not run[0].isascii() and is_spaceless(run[0]):
        yield from (run[place : place + 2] for place in range(len(run) - 1))
    else:
        yield run


def jaccard(one: str, other: str) -> float:
    """Return the number of words that both texts contain, divided by the number of all their words: 0 to 1."""
    mine, theirs = words(one), words(other)
    return len(mine & theirs) / len(mine | theirs) if mine | theirs else 0.0


def overlap(of: AbstractSet[str], within: AbstractSet[str]) -> float:
    """Return the share of the words `of` that are in `within`, 0 to 1. For no words the share is 0."""
    return len(of & within) / len(of) if of else 0.0


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine similarity; 0 when a vector is zero.

    Raises ValueError when the lengths differ.
    """
    if len(one) != len(other):
        raise ValueError(f"vectors of {len(one)} and {len(other)} numbers have no similarity")
    norm = math.sqrt(sum(map(mul, one, one))) * math.sqrt(sum(map(mul, other, other)))
    return sum(map(mul, one, other)) / norm if norm else 0.0


def similarity_of(content: str, near: NearFact, policy: ConflictPolicy) -> float | None:
    """Return the similarity that decides the zone; None when it is unknown.

    With a lexical embedder it is the Jaccard index of the words, otherwise the cosine.
    """
    if policy.lexical:
        return round(jaccard(content, near.fact.content), 6)
    return None if near.similarity is None else round(min(1.0, max(-1.0, near.similarity)), 6)


def zone_of(similarity: float | None, related: ClaimRelation, policy: ConflictPolicy) -> Zone:
    """Return the zone of a pair of texts. The similarity decides, with two exceptions.

    The same words in another order are always CONFLICT-CHECK. A restatement in other words is at least NEAR-DUP, even
    when the texts share few words. With a lexical embedder no pair is HOT, and only pairs with the same predicate are
    CONFLICT-CHECK.
    """
    if related.relation is Relation.REORDERED:
        return "CONFLICT-CHECK"
    measured = _lexical(similarity, related, policy) if policy.lexical else _dense(similarity, policy)
    if related.relation in SAME_STATEMENT and measured != "HOT":
        return "NEAR-DUP"
    return measured


def _lexical(similarity: float | None, related: ClaimRelation, policy: ConflictPolicy) -> Zone:
    if similarity is not None and similarity >= policy.jaccard_near_dup:
        return "NEAR-DUP"
    return "CONFLICT-CHECK" if related.same_predicate else "COLD"


def _dense(similarity: float | None, policy: ConflictPolicy) -> Zone:
    if similarity is None:
        return "COLD"
    if policy.hot is not None and similarity >= policy.hot:
        return "HOT"
    if similarity >= policy.near_dup:
        return "NEAR-DUP"
    return "CONFLICT-CHECK" if similarity > policy.conflict_check else "COLD"
