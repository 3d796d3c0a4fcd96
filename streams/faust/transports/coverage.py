"""What fetches prove: which offsets the log does not have.

A fetch answer has every record that a reader may see from its first offset up to the position behind it. Offsets
between two of its records exist for no reader: markers of transactions, aborted records, what compaction removed. The
same holds across fetches, as long as each begins where the one before it ended. So nobody has to ask the log.
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
    """By partition, the chain of fetches that follow each other without a break."""

    def __init__(self) -> None:
        self._chains: dict[TP, tuple[int, int]] = {}
        """(follows, end): the chain has covered [follows, end), and found no record in it."""

    def extended(self, tp: TP, start: int, end: int, records: Sequence[R]) -> list[tuple[R, int]]:
        """Note a fetch of [start, end) that found these records. Return each with its `follows`.

        No record lies from the offset `follows` up to the record's own. Before `follows` lies a record that was
        fetched, or the place to which the consumer sought.
        """
        follows, known = self._chains.get(tp, (start, start))
        if start != known:  # sought in between
            follows = start
        found = []
        for record in records:
            found.append((record, follows))
            follows = record.offset + 1
        self._chains[tp] = (follows, end)
        return found

    def clear(self) -> None:
        """Forget all chains, because it is not known where the next fetches begin."""
        self._chains.clear()
