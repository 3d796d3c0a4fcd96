"""Number of a turn in its session: an epoch, and a number within the epoch. A turn of a later epoch comes later."""

from __future__ import annotations

import operator
from typing import Annotated, NamedTuple

from pydantic import Field

Epoch = Annotated[int, Field(ge=0)]
"""Epoch of a session's row in the observer's table. It increases when the row is created again after it has ended. A
record of an earlier version without an epoch belongs to epoch 0."""
RowEpoch = Annotated[int, Field(ge=0, exclude_if=operator.not_)]
"""Epoch in a row of a table. A row of epoch 0 has no field for the epoch."""


class TurnNumber(NamedTuple):
    """Number of a turn. Within an epoch, `n` counts from 1."""

    epoch: int
    n: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.n}" if self.epoch else str(self.n)
