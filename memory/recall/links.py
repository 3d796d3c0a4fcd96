"""Links between records that were recalled together, and activation over links; pure (ADR 0014).

Each recall of two records together strengthens their link, up to the weight 1 (Hebb 1949, "cells that fire together
wire together"). A recalled record activates the records that are linked to it, in proportion to the weight of the link
(Collins and Loftus 1975, A spreading-activation theory of semantic processing). Only direct links count: an activated
record does not activate further records.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from ..decay import DAY

_LINK = struct.Struct("<16s16sdI")
"""One packed link of 44 bytes: two ids, the weight, and the time of the last growth in seconds since 1970."""
SECONDS_MAX = 2**32 - 1
REST_SECONDS = 30 * DAY
"""Half-life, in seconds, of the weight of a link that no longer grows. The decayed weight only decides which links are
dropped when there are too many; reads use the full weight. Without the decay, strong links of facts that are no longer
believed would never be dropped."""
Pair = tuple[bytes, bytes]
"""Two packed ids, the smaller id first. Packed ids save time, because a recall handles hundreds of pairs."""


@dataclass(frozen=True, slots=True)
class Link:
    """An undirected link between two records. `one` is the smaller id. `weight` is 0 to 1."""

    one: str
    other: str
    weight: float


class Links(BaseModel):
    """All links of one owner. They are packed into one string, because every recall rewrites the table row with
    them."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    packed: str = ""

    def unpacked(self) -> Iterator[tuple[bytes, bytes, float, int]]:
        """Yield each link as two packed ids, the weight, and the second of the last growth."""
        return _LINK.iter_unpack(base64.b64decode(self.packed))

    def among(self, ids: Collection[str]) -> Iterator[Link]:
        """Yield the links between two of these UUIDs. No other link is decoded."""
        known = {UUID(each).bytes: each for each in ids} if self.packed else {}
        for one, other, weight, _ in self.unpacked():
            if one in known and other in known:
                yield Link(known[one], known[other], weight)

    def weighs_as(self, other: Links) -> bool:
        """Return whether both objects have the same links with the same weights. The times of growth may differ,
        because reads do not use them."""
        return self.packed == other.packed or self._weights() == other._weights()

    def _weights(self) -> frozenset[tuple[bytes, bytes, float]]:
        return frozenset((one, other, weight) for one, other, weight, _ in self.unpacked())

    def grown_since(self, moment: datetime | None) -> int:
        """Return the number of links that have grown since `moment`. None counts all links."""
        since = -1.0 if moment is None else moment.timestamp()
        return sum(grown > since for _, _, _, grown in self.unpacked())


def packed_links(links: Iterable[tuple[str, str, float, datetime]]) -> Links:
    """Pack links in this order: two UUIDs, the weight, and the time of the last growth. Raises ValueError for ids that
    are not UUIDs, and for the same pair twice."""
    packed = [
        (UUID(one).bytes, UUID(other).bytes, weight, min(SECONDS_MAX, max(0, int(at.timestamp()))))
        for one, other, weight, at in links
    ]
    if len({frozenset(each[:2]) for each in packed}) < len(packed) or any(one >= other for one, other, *_ in packed):
        raise ValueError("a link needs two different ids, the smaller one first, and occurs once")
    return Links(packed=base64.b64encode(b"".join(_LINK.pack(*each) for each in packed)).decode())


def strengthen_links(links: Links, ids: Sequence[str], *, at: datetime, step: float, keep: int) -> Links:
    """Strengthen the link of each pair of `ids` (UUIDs) by `step`, up to 1. A pair without a link gets one.

    If there are more than `keep` links, the weakest links are dropped. The links of this recall are dropped last. A new
    link has the lowest weight and would otherwise be dropped before a second recall can strengthen it.
    """
    named = dict.fromkeys(UUID(each).bytes for each in ids) if keep and step else {}
    pairs = [(min(pair), max(pair)) for pair in combinations(named, 2)]
    if not pairs and len(links.packed) <= _packed_length(keep):
        return links
    now = min(SECONDS_MAX, max(0, int(at.timestamp())))
    known = {(one, other): (weight, grown) for one, other, weight, grown in links.unpacked()}
    for pair in pairs:
        weight, grown = known.get(pair, (0.0, now))
        known[pair] = (min(1.0, weight + step), max(now, grown))
    kept: Sequence[Pair] = [*known]
    if len(known) > keep:
        kept = _strongest(known, frozenset(pairs), now=now)[:keep]
    return Links(packed=base64.b64encode(b"".join(_LINK.pack(*pair, *known[pair]) for pair in kept)).decode())


def _strongest(known: Mapping[Pair, tuple[float, int]], recalled: Collection[Pair], *, now: int) -> list[Pair]:
    def order(pair: Pair) -> tuple[bool, float, Pair]:
        weight, grown = known[pair]
        return pair not in recalled, -weight * 0.5 ** (max(0, now - grown) / REST_SECONDS), pair

    return sorted(known, key=order)


def _packed_length(links: int) -> int:
    return -(-links * _LINK.size // 3) * 4


# ------------------------------------------------------------------------------------------------ activation
def activation(links: Iterable[Links], match: Mapping[str, float]) -> dict[str, float]:
    """Return the activation of each candidate: the sum of weight x match over the candidates linked to it, at most 1.

    `match` has the match of each candidate, 0 to 1. Records outside `match` neither give nor receive activation. A
    candidate without activation is not in the result.
    """
    reached: dict[str, float] = {}
    for of_owner in links:
        for link in of_owner.among(match):
            for to, source in ((link.one, link.other), (link.other, link.one)):
                reached[to] = min(1.0, reached.get(to, 0.0) + link.weight * match[source])
    return reached
