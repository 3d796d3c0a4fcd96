"""Which of the scored memories an answer has: the best, from all tiers, none said twice (recall-and-tools §1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..schemas.recalled import TIERS, Tier
from .policies import RecallPolicy
from .ranking import Score, overlap
from .zones import words

_RANKS = {tier: rank for rank, tier in enumerate(TIERS)}


class Scored(NamedTuple):
    """A candidate. Its text is needed for duplicates."""

    tier: Tier
    id: str
    content: str
    score: Score


def share(limit: int, *, tiers: int) -> int:
    """How many of an answer one tier may have when so many tiers were asked: half, at least one; all when alone."""
    return limit if tiers == 1 else max(1, limit // 2)


def best_first(candidates: Iterable[Scored]) -> list[Scored]:
    return sorted(candidates, key=lambda each: (-each.score.value, _RANKS[each.tier], each.id))


def choose(ordered: Sequence[Scored], *, limit: int, tiers: int, policy: RecallPolicy) -> tuple[Scored, ...]:
    """Of candidates in the order of `best_first`, and in that order. No item of the answer is contained in one of a
    higher tier: what goes for that makes room for the next. An item goes only for one that was good enough to be
    picked, so what is said by nothing better is not lost."""
    left = ordered
    seen: dict[str, frozenset[str]] = {}
    while True:
        picked = _best(left, limit=limit, most=share(limit, tiers=tiers))
        for each in picked:
            if each.content not in seen:
                seen[each.content] = words(each.content)
        double = _said_higher(picked, seen, more_than=policy.duplicate_overlap)
        if not double:
            return tuple(picked)
        left = [each for each in left if (each.tier, each.id) not in double]


def _said_higher(
    picked: Sequence[Scored], words_of: Mapping[str, frozenset[str]], *, more_than: float
) -> set[tuple[Tier, str]]:
    """Which of them stand, by more than this share of their words, in one of a higher tier that stays."""
    staying: list[tuple[int, frozenset[str]]] = []
    double: set[tuple[Tier, str]] = set()
    for each in sorted(picked, key=_rank):
        rank, its = _rank(each), words_of[each.content]
        if any(higher < rank and overlap(its, theirs) > more_than for higher, theirs in staying):
            double.add((each.tier, each.id))
        else:
            staying.append((rank, its))
    return double


def _rank(item: Scored) -> int:
    """Of its tier: semantic 0."""
    return _RANKS[item.tier]


def _best(ordered: Sequence[Scored], *, limit: int, most: int) -> list[Scored]:
    """The first `limit`, at most `most` of a tier."""
    picked: list[Scored] = []
    taken = dict.fromkeys(TIERS, 0)
    for each in ordered:
        if len(picked) == limit:
            break
        if taken[each.tier] < most:
            taken[each.tier] += 1
            picked.append(each)
    return picked
