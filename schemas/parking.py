"""Records on memory-parked: parked keys, and records that ended workers (docs/design/stage.md, "Errors").

A parked key has an outcome that cannot be applied. Its record (`ParkedKey`) is stored twice: in the key's row in the
table of the stage, and on memory-parked, until the outcome is applied.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from .base import Contract, Instant

ERROR_MAX: Final = 300
Error = Annotated[str, StringConstraints(max_length=ERROR_MAX)]


class ParkedKey(Contract):
    """An outcome that cannot be applied: its row and event, the time of parking and the error."""

    stage: str
    key: str
    """Key of the row with the outcome."""
    topic: str
    """Topic of the outcome's event. `partition`, `offset` and `event_id` describe the same event."""
    partition: Annotated[int, Field(ge=0)]
    offset: Annotated[int, Field(ge=0)]
    event_id: str
    parked_at: Instant
    error: Error


class RecordDeaths(Contract):
    """Number of times that a record ended a worker of a stage, over all workers."""

    stage: str
    topic: str
    partition: Annotated[int, Field(ge=0)]
    offset: Annotated[int, Field(ge=0)]
    deaths: Annotated[int, Field(ge=1)]
    at: Instant
    """Time when the record last ended a worker."""
    error: Error


class UnreadDeleted(Contract):
    """Records of a partition that retention deleted before a stage had read them. Their offsets are from `first`
    (included) to `until` (excluded).

    The offsets include transaction markers and compacted records, so the number of records may be lower.
    """

    stage: str
    topic: str
    partition: Annotated[int, Field(ge=0)]
    first: Annotated[int, Field(ge=0)]
    until: Annotated[int, Field(ge=1)]
    at: Instant
    """Time when the stage skipped the offsets."""

    @property
    def count(self) -> int:
        """Number of offsets."""
        return self.until - self.first


class OutcomeRetry(Contract):
    """`args` of outcome.retry, which a worker sends to itself: apply the outcome of a parked key again."""

    stage: str
    key: str
