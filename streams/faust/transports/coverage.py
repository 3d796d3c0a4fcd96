"""Offsets without a record, derived from the fetches.

A fetch response has every visible record from its first offset up to the next fetch position. An offset between two
records of the response has no visible record: it is a transaction marker, an aborted record, or a record that
compaction removed. This is also true for the offsets between two fetches, if the second fetch begins where the first
fetch ended. So no extra request to the log is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from faust.types import TP


class _Record(Protocol):
    @property
    def offset(self) -> int: ...


R = TypeVar("R", bound=_Record)


class Coverage:
    """The chain of consecutive fetches of each partition."""

    def __init__(self) -> None:
        self._chains: dict[TP, tuple[int, int]] = {}
        """(follows, end) by partition. The chain has fetched the offsets [follows, end), and they have no record."""

    def extended(self, tp: TP, start: int, end: int, records: Sequence[R]) -> list[tuple[R, int]]:
        """Add a fetch of [start, end) that returned these records. Return each record with its `follows`.

        There is no record from the offset `follows` up to the record's own offset. `follows` is the offset after the
        previously fetched record, or the offset to which the consumer sought.
        """
        follows, known = self._chains.get(tp, (start, start))
        if start != known:  # the consumer sought in between
            follows = start
        found = []
        for record in records:
            found.append((record, follows))
            follows = record.offset + 1
        self._chains[tp] = (follows, end)
        return found

    def clear(self) -> None:
        """Forget all chains, because the start of the next fetches is unknown."""
        self._chains.clear()
