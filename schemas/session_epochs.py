"""Epochs of a partition's sessions, in one row of the observer's table. This row stays when sessions' rows are removed.

A session's turns are numbered by (epoch, n). A new row of a session begins in the epoch `next`, at n = 1. Before the
row of a session is removed, `next` is raised above the epoch of this session's row. Therefore, when the session
continues later, its turns get higher numbers than before, although no data of the session is kept. See docs/adr/0037.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import LaterVersion

EPOCHS_VERSION: Final = 3
"""The `row_version` of this row."""
Count = Annotated[int, Field(ge=0)]


class SessionEpochs(BaseModel):
    """The epochs row of a partition. A partition without the row has the defaults."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    next: Count = 0
    """Epoch of new rows."""
    renumber_before: Count = 0
    """A session whose row has an epoch below this value continues in the epoch `next`, at n = 1, because its row may be
    older than the records that were sent."""
    row_version: Annotated[int, Field(ge=1)] = EPOCHS_VERSION

    @classmethod
    def read(cls, raw: bytes | None) -> SessionEpochs:
        """Parse the row; None: there is no row. Raise LaterVersion when a later version wrote it."""
        if raw is None:
            return cls()
        try:
            row = cls.model_validate_json(raw)
        except ValidationError:
            row = None
        if row is None or row.row_version > EPOCHS_VERSION:
            raise LaterVersion(
                "the row of the sessions' epochs is not understood: has a later version of memstream run here? Start "
                "that one again. Nothing was changed, nothing committed"
            )
        return row

    def above(self, epoch: int) -> SessionEpochs:
        """Return the row with `next` above an epoch."""
        return self.model_copy(update={"next": max(self.next, epoch + 1)})

    def joined(self, other: SessionEpochs) -> SessionEpochs:
        """Return one row for the sessions of two partitions, when the sessions are distributed to new partitions."""
        return SessionEpochs(
            next=max(self.next, other.next), renumber_before=max(self.renumber_before, other.renumber_before)
        )

    def to_bytes(self) -> bytes:
        return self.model_dump_json().encode()
