"""Turn numbers of a session that a stage has handled for one owner. A gap is a range of numbers not handled.

An epoch is one numbering of a session's turns, from 1. A later epoch begins after the session's row was deleted or
lost.
"""

from __future__ import annotations

import base64
import operator
import sys
import zlib
from array import array
from bisect import bisect_right
from functools import lru_cache
from typing import Annotated, Final, Self

from pydantic import Field

from ...schemas.turn_number import RowEpoch, TurnNumber
from .stored_row import EPOCH_VERSION, RowPart, StoredRow

GAPS_KEPT: Final = 256
"""Number of recent gaps of an epoch that stay unpacked. At twice this number, the earlier gaps are packed."""
GAPS_PACKED: Final = 16_384
"""Maximum number of packed gaps, two small numbers for each. A turn number in an older gap counts as handled."""
EPOCHS_KEPT: Final = 8
"""Maximum number of earlier epochs kept for a session. A turn number of an older epoch counts as handled."""
Count = Annotated[int, Field(ge=0)]
Number = Annotated[int, Field(ge=1)]
Gaps = tuple[tuple[Number, Number], ...]
PackedGaps = Annotated[str, Field(exclude_if=operator.not_)]


def pack_gaps(gaps: Gaps) -> str:
    """Pack gaps as compressed pairs: the distance from the end of the previous gap, and the length."""
    if not gaps:
        return ""
    numbers = array("I")
    before = 0
    for first, last in gaps:
        numbers.extend((first - before, last - first))
        before = last
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(zlib.compress(numbers.tobytes())).decode()


@lru_cache(64)
def unpack_gaps(packed: str) -> Gaps:
    """Unpack the output of `pack_gaps`."""
    if not packed:
        return ()
    numbers = array("I")
    numbers.frombytes(zlib.decompress(base64.b64decode(packed)))
    if sys.byteorder == "big":
        numbers.byteswap()
    gaps, before = [], 0
    for distance, length in zip(numbers[::2], numbers[1::2], strict=True):
        gaps.append((before + distance, before + distance + length))
        before += distance + length
    return tuple(gaps)


def _is_in(n: int, gaps: Gaps) -> bool:
    at = bisect_right(gaps, n, key=lambda gap: gap[0])
    return at > 0 and n <= gaps[at - 1][1]


def _without(n: int, gaps: Gaps) -> Gaps:
    return tuple(
        part
        for first, last in gaps
        for part in (((first, n - 1), (n + 1, last)) if first <= n <= last else ((first, last),))
        if part[0] <= part[1]
    )


class EpochNumbers(RowPart):
    """The handled numbers of one epoch: all numbers up to `highest` except the gaps."""

    epoch: Count
    highest: Count = 0
    gaps: Gaps = ()
    packed_gaps: PackedGaps = ""

    def has(self, n: int) -> bool:
        """Return whether this number was handled."""
        if n > self.highest or _is_in(n, self.gaps):
            return False
        # packed gaps come before the first unpacked gap
        is_before = not self.gaps or n < self.gaps[0][0]
        return not (is_before and _is_in(n, unpack_gaps(self.packed_gaps)))

    def add(self, n: int) -> EpochNumbers:
        """Return the numbers including `n`."""
        gaps, packed = self.gaps, self.packed_gaps
        if n > self.highest + 1:
            gaps = (*gaps, (self.highest + 1, n - 1))
        elif n <= self.highest:
            if not self.has(n) and not _is_in(n, gaps):
                packed = pack_gaps(_without(n, unpack_gaps(packed)))
            gaps = _without(n, gaps)
        if len(gaps) >= 2 * GAPS_KEPT:
            packed = pack_gaps((*unpack_gaps(packed), *gaps[:-GAPS_KEPT])[-GAPS_PACKED:])
            gaps = gaps[-GAPS_KEPT:]
        return EpochNumbers(epoch=self.epoch, highest=max(self.highest, n), gaps=gaps, packed_gaps=packed)


class HandledTurns(StoredRow):
    """The handled numbers: all numbers up to (`epoch`, `turn_number`) except the gaps.

    A number is missing when its turn became a dead letter or belongs to another owner. A dead letter that is sent again
    arrives after higher numbers, perhaps after numbers of a later epoch. Its number is in a gap or above the highest of
    its epoch, so it is not a duplicate.
    """

    epoch: RowEpoch = 0
    """The highest epoch. Rows of earlier versions have no epoch, which means epoch 0."""
    turn_number: Count = 0
    """The highest handled number of `epoch`."""
    gaps: Gaps = ()
    """First and last number of each recent gap, ascending. Rows of earlier versions have no gaps."""
    packed_gaps: PackedGaps = ""
    """The earlier gaps, packed."""
    earlier: Annotated[tuple[EpochNumbers, ...], Field(exclude_if=operator.not_)] = ()
    """The handled numbers of the most recent earlier epochs, ascending."""
    last_at: Annotated[int, Field(ge=0, exclude_if=operator.not_)] = 0
    """Time of the last write in seconds since 1970; 0 in a row of an earlier version."""

    def has(self, number: TurnNumber) -> bool:
        """Return whether this number was handled."""
        if number.epoch >= self.epoch:
            return number.epoch == self.epoch and self._current().has(number.n)
        known = self._of_epoch(number.epoch)
        if known is None:
            return len(self.earlier) == EPOCHS_KEPT and number.epoch < self.earlier[0].epoch
        return known.has(number.n)

    def add(self, number: TurnNumber) -> Self:
        """Return the row including `number`."""
        if number == (self.epoch, self.turn_number + 1):  # the usual case
            return self.model_copy(update={"turn_number": number.n})
        changed = (self._of_epoch(number.epoch) or EpochNumbers(epoch=number.epoch)).add(number.n)
        epochs = {each.epoch: each for each in (*self.earlier, self._current(), changed)}
        *earlier, last = (epochs[epoch] for epoch in sorted(epochs))
        kept = [each for each in earlier if each.highest]
        return self.model_copy(
            update={
                "row_version": EPOCH_VERSION if last.epoch else self.row_version,
                "epoch": last.epoch,
                "turn_number": last.highest,
                "gaps": last.gaps,
                "packed_gaps": last.packed_gaps,
                "earlier": tuple(kept[-EPOCHS_KEPT:]),
            }
        )

    def _current(self) -> EpochNumbers:
        return EpochNumbers(epoch=self.epoch, highest=self.turn_number, gaps=self.gaps, packed_gaps=self.packed_gaps)

    def _of_epoch(self, epoch: int) -> EpochNumbers | None:
        return next((each for each in (*self.earlier, self._current()) if each.epoch == epoch), None)
