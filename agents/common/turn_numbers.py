"""The turn numbers of a session that a stage has handled for an owner, with the gaps between them."""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import Field

from .stored_row import StoredRow

GAPS_KEPT: Final = 256
"""Gaps of a session that are kept: the last ones. A number in a forgotten gap counts as handled."""
Number = Annotated[int, Field(ge=1)]


class HandledTurns(StoredRow):
    """The handled numbers: all up to `turn_number`, without those in gaps.

    Numbers are missing where a turn became a dead letter or belongs to another owner. A dead letter that is put back
    comes after higher numbers. It is in a gap, so it is no duplicate.
    """

    turn_number: Annotated[int, Field(ge=0)] = 0
    """The highest handled number."""
    gaps: tuple[tuple[Number, Number], ...] = ()
    """First and last number of each gap, rising. Rows of earlier versions have none."""

    def has(self, number: int) -> bool:
        """Tell whether this number was handled."""
        return number <= self.turn_number and not any(first <= number <= last for first, last in self.gaps)

    def add(self, number: int) -> Self:
        """Return the row with one more handled number."""
        gaps = self.gaps
        if number > self.turn_number + 1:
            gaps = (*gaps, (self.turn_number + 1, number - 1))
        elif number <= self.turn_number:
            gaps = tuple(
                part
                for first, last in gaps
                for part in (((first, number - 1), (number + 1, last)) if first <= number <= last else ((first, last),))
                if part[0] <= part[1]
            )
        return self.model_copy(update={"turn_number": max(self.turn_number, number), "gaps": gaps[-GAPS_KEPT:]})
