"""Links between records that were recalled together (memory-model §7, strengthen); pure.

Source: Hebb 1949, "cells that fire together wire together": each recall of two records together adds to the weight of
their link, up to 1.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from uuid import UUID

from pydantic import BaseModel, ConfigDict

_LINK = struct.Struct("<16s16sdI")
"""Two ids, the weight, seconds since 1970 of the last growth: 44 bytes."""
SECONDS_MAX = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Link:
    """Undirected: `one` is the smaller id. `weight` 0–1."""

    one: str
    other: str
    weight: float
    grown_at: datetime


class Links(BaseModel):
    """Of one owner, packed: a row of the table is written again at each recall."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    packed: str = ""

    def all(self) -> tuple[Link, ...]:
        raw = base64.b64decode(self.packed)
        return tuple(
            Link(str(UUID(bytes=one)), str(UUID(bytes=other)), weight, datetime.fromtimestamp(at, tz=UTC))
            for one, other, weight, at in _LINK.iter_unpack(raw)
        )

    def grown_since(self, moment: datetime | None) -> int:
        """How many have grown later than this; None: all of them."""
        return sum(moment is None or link.grown_at > moment for link in self.all())


def _packed(links: Sequence[Link]) -> Links:
    raw = b"".join(
        _LINK.pack(
            UUID(link.one).bytes,
            UUID(link.other).bytes,
            link.weight,
            min(SECONDS_MAX, max(0, int(link.grown_at.timestamp()))),
        )
        for link in links
    )
    return Links(packed=base64.b64encode(raw).decode())


def recalled_together(links: Links, ids: Sequence[str], *, at: datetime, step: float, keep: int) -> Links:
    """Each pair of `ids` (UUIDs) is linked, or its link grows by `step`, up to 1. Beyond `keep` the weakest go, of
    equal ones those that have not grown for longest."""
    pairs = [tuple(sorted(pair)) for pair in combinations(dict.fromkeys(ids), 2)] if keep and step else []
    if not pairs and len(links.packed) <= _packed_length(keep):
        return links
    known: dict[tuple[str, ...], Link] = {(link.one, link.other): link for link in links.all()}
    for pair in pairs:
        link = known.get(pair) or Link(pair[0], pair[1], 0.0, at)
        known[pair] = replace(link, weight=min(1.0, link.weight + step), grown_at=max(at, link.grown_at))
    return _packed(_strongest(known, keep))


def _strongest(known: Mapping[tuple[str, ...], Link], keep: int) -> list[Link]:
    ordered = sorted(known.values(), key=lambda link: (-link.weight, -link.grown_at.timestamp(), link.one, link.other))
    return ordered[:keep]


def _packed_length(links: int) -> int:
    return -(-links * _LINK.size // 3) * 4
