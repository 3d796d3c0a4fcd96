"""Several ranked lists become one: Reciprocal Rank Fusion, told as a match of 0 to 1 (docs/design/recall.md).

Not the engine's: Qdrant's weighted fusion is 1 / ((rank + 1) / w + k - 1), another order with another greatest value.
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
    """What one search answered: ids, best first. An id that comes twice counts where it stands first."""

    name: ListName
    ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class Rank:
    """Where a record stood in a list, from 0."""

    list: ListName
    rank: int


def fuse(
    lists: Sequence[RankedList], *, policy: FusionPolicy, pool: int, preferred: AbstractSet[str] = frozenset()
) -> dict[str, float]:
    """The best `pool` records, best first, each with its match: 1 for what all lists have first. Equal ones stand in
    the order of their ids, so that an answer is the same twice.

    `lists` are those that answered, empty ones too: they say that nothing fits. A search that did not answer is left
    out, and the others carry the match alone. One list a name. `preferred` are the records of the speaker whom the cue
    names, if it names one: they get `policy.speaker` of the greatest rrf besides, and the others count the less.
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
    best = sorted(sorted(rrf), key=rrf.__getitem__, reverse=True)[:pool]  # stable: equal ones stay by id
    return {identity: min(1.0, rrf[identity] / greatest) for identity in best}


def ranks_in(lists: Sequence[RankedList], identity: str) -> tuple[Rank, ...]:
    """Where a record stands in each list that has it. Hundreds are found and few are told: asked for those alone."""
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
