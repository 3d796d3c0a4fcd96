"""What lies on memory-parked: parked keys, and records that ended workers (docs/design/stage.md, "Errors").

The outcome of a parked key cannot be applied. The same record marks the key's row in the table of the stage, and lies
on memory-parked until the outcome is applied.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from .base import Contract, Instant

ERROR_MAX: Final = 300
Error = Annotated[str, StringConstraints(max_length=ERROR_MAX)]


class ParkedKey(Contract):
    """Which outcome of which row cannot be applied, since when and why."""

    stage: str
    key: str
    """Of the row that holds the outcome."""
    topic: str
    """Of the event whose outcome it is; `partition`, `offset` and `event_id` too."""
    partition: Annotated[int, Field(ge=0)]
    offset: Annotated[int, Field(ge=0)]
    event_id: str
    parked_at: Instant
    error: Error


class RecordDeaths(Contract):
    """How often a record ended a worker of a stage, over all workers."""

    stage: str
    topic: str
    partition: Annotated[int, Field(ge=0)]
    offset: Annotated[int, Field(ge=0)]
    deaths: Annotated[int, Field(ge=1)]
    at: Instant
    """Of the last one."""
    error: Error


class UnreadDeleted(Contract):
    """Records of a partition that retention deleted before a stage had read them: offsets from `first`, before `until`.

    Offsets of transaction markers and of compacted records are among them, so there may have been fewer records.
    """

    stage: str
    topic: str
    partition: Annotated[int, Field(ge=0)]
    first: Annotated[int, Field(ge=0)]
    until: Annotated[int, Field(ge=1)]
    at: Instant
    """When the stage passed over them."""

    @property
    def count(self) -> int:
        """The number of offsets."""
        return self.until - self.first


class OutcomeRetry(Contract):
    """`args` of outcome.retry, which a worker sends itself: try the outcome of a parked key again."""

    stage: str
    key: str
