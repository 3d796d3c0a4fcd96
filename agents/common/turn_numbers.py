"""The turn numbers of a session that a stage has handled for an owner, with the gaps between them."""

from __future__ import annotations

import operator
from typing import Annotated, Final, Self

from pydantic import Field

from ...schemas.turn_number import RowEpoch, TurnNumber
from .stored_row import EPOCH_VERSION, RowPart, StoredRow

GAPS_KEPT: Final = 256
"""Gaps of an epoch that are kept: the last ones. A number in a forgotten gap counts as handled."""
EPOCHS_KEPT: Final = 8
"""Earlier epochs of a session that are kept: the last ones. A number of a forgotten one counts as handled."""
Count = Annotated[int, Field(ge=0)]
Number = Annotated[int, Field(ge=1)]
Gaps = tuple[tuple[Number, Number], ...]


def _has(n: int, highest: int, gaps: Gaps) -> bool:
    return n <= highest and not any(first <= n <= last for first, last in gaps)


class EpochNumbers(RowPart):
    """The handled numbers of one epoch: all up to `highest`, without those in gaps."""

    epoch: Count
    highest: Count = 0
    gaps: Gaps = ()

    def has(self, n: int) -> bool:
        return _has(n, self.highest, self.gaps)

    def add(self, n: int) -> EpochNumbers:
        gaps = self.gaps
        if n > self.highest + 1:
            gaps = (*gaps, (self.highest + 1, n - 1))
        elif n <= self.highest:
            gaps = tuple(
                part
                for first, last in gaps
                for part in (((first, n - 1), (n + 1, last)) if first <= n <= last else ((first, last),))
                if part[0] <= part[1]
            )
        return EpochNumbers(epoch=self.epoch, highest=max(self.highest, n), gaps=gaps[-GAPS_KEPT:])


class HandledTurns(StoredRow):
    """The handled numbers: all up to (`epoch`, `turn_number`), without those in gaps.

    Numbers are missing where a turn became a dead letter or belongs to another owner. A dead letter that is put back
    comes after higher numbers, perhaps of a later epoch. It is in a gap or above the highest of its epoch, so it is no
    duplicate.
    """

    epoch: RowEpoch = 0
    """The highest epoch. Rows of earlier versions have none: they are of epoch 0."""
    turn_number: Count = 0
    """The highest handled number of the epoch."""
    gaps: Gaps = ()
    """First and last number of each gap, rising. Rows of earlier versions have none."""
    earlier: Annotated[tuple[EpochNumbers, ...], Field(exclude_if=operator.not_)] = ()
    """The handled numbers of the last earlier epochs, rising."""
    last_at: Annotated[int, Field(ge=0, exclude_if=operator.not_)] = 0
    """When the row was last written, in seconds. 0: an earlier version wrote it."""

    def has(self, number: TurnNumber) -> bool:
        """Tell whether this number was handled."""
        if number.epoch >= self.epoch:
            return number.epoch == self.epoch and _has(number.n, self.turn_number, self.gaps)
        known = self._of_epoch(number.epoch)
        if known is None:
            return len(self.earlier) == EPOCHS_KEPT and number.epoch < self.earlier[0].epoch
        return known.has(number.n)

    def add(self, number: TurnNumber) -> Self:
        """Return the row with one more handled number."""
        if number == (self.epoch, self.turn_number + 1):  # as most are
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
                "earlier": tuple(kept[-EPOCHS_KEPT:]),
            }
        )

    def _current(self) -> EpochNumbers:
        return EpochNumbers(epoch=self.epoch, highest=self.turn_number, gaps=self.gaps)

    def _of_epoch(self, epoch: int) -> EpochNumbers | None:
        return next((each for each in (*self.earlier, self._current()) if each.epoch == epoch), None)
