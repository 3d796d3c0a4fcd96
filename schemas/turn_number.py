"""The number of a turn in its session: an epoch and a place. Numbers are compared epoch first."""

from __future__ import annotations

import operator
from typing import Annotated, NamedTuple

from pydantic import Field

Epoch = Annotated[int, Field(ge=0)]
"""The epoch of a session's row in the observer's table. It is higher when the row is made anew after it has ended. A
record of an earlier version has none: it is of epoch 0."""
RowEpoch = Annotated[int, Field(ge=0, exclude_if=operator.not_)]
"""The epoch in a row of a table. Epoch 0 is not written."""


class TurnNumber(NamedTuple):
    """A turn's number. Within an epoch `n` counts from 1."""

    epoch: int
    n: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.n}" if self.epoch else str(self.n)
