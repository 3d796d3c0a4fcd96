"""Fusion of ranked lists into one match per record, 0 to 1, by Reciprocal Rank Fusion (docs/design/recall.md).

Qdrant's own weighted fusion is not used: its formula 1 / ((rank + 1) / w + k - 1) gives a different order and a
different maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from ..policies import FusionPolicy

ListName = Literal["dense", "windowed", "lexical"]


@dataclass(frozen=True, slots=True)
class RankedList:
    """The result of one search: ids, best first. A repeated id counts at its first position."""

    name: ListName
    ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class Rank:
    """The position of a record in a list. The first record has position 0."""

    list: ListName
    rank: int


def fuse(
    lists: Sequence[RankedList], *, policy: FusionPolicy, pool: int, preferred: AbstractSet[str] = frozenset()
) -> dict[str, float]:
    """Return the best `pool` records with their match, best first.

    `lists` has one list for each search that answered; the list may be empty. A search that failed has no list.
    `preferred` are the records of the speaker whom the cue names. Each of them gets a bonus: `policy.speaker` times the
    greatest sum of reciprocal ranks. A record that is first in every list has the match 1; if there are preferred
    records, it must be one of them. Equal matches are ordered by id, so that a repeated read gives the same answer.
    """
    rrf: dict[str, float] = {}
    k = policy.k
    for each in lists:
        weight = _weight(policy, each.name)
        for rank, identity in enumerate(dict.fromkeys(each.ids)):
            rrf[identity] = rrf.get(identity, 0.0) + weight / (k + rank)
    bonus = policy.speaker * max(rrf.values(), default=0.0) if preferred else 0.0
    greatest = sum(_weight(policy, each.name) / policy.k for each in lists) + bonus
    for identity in preferred & rrf.keys():
        rrf[identity] += bonus
    best = sorted(sorted(rrf), key=rrf.__getitem__, reverse=True)[:pool]  # stable: keeps equal matches in id order
    return {identity: min(1.0, rrf[identity] / greatest) for identity in best}


def ranks_in(lists: Sequence[RankedList], identity: str) -> tuple[Rank, ...]:
    """Return the position of a record in each list that contains it."""
    return tuple(
        Rank(each.name, len(frozenset(each.ids[: each.ids.index(identity)]))) for each in lists if identity in each.ids
    )


def _weight(policy: FusionPolicy, name: ListName) -> float:
    match name:
        case "dense":
            return policy.dense
        case "windowed":
            return policy.windowed
        case "lexical":
            return policy.lexical
