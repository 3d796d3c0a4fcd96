"""Notes about records that retention deleted before a stage had read them. The notes are in the topic memory-parked.

The worker that finds the loss skips the offsets, and writes a note before it commits. So `memstream doctor` and
`verify` can report the loss later. The key of a note contains topic, partition and first offset, so a repeated note
replaces the earlier note.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog
from pydantic import ValidationError

from ...schemas.errors import StageError, Transient
from ...schemas.outcomes import OutRecord
from ...schemas.parking import UnreadDeleted
from ...schemas.topics import PARKED
from ..log.port import Log
from .metrics import StageMetrics

log = structlog.get_logger(__name__)

UNREAD: Final = b"unread/"
"""Prefix of the record keys of the notes. The record key of a parked key begins with the name of its stage, and no
stage has this name."""
KEPT: Final = timedelta(days=30)
"""Age above which a note is no longer reported."""
REMEDY: Final = (
    "they are lost for this stage, unless their sender sends them again. Keep records longer (retention.ms of the "
    "topic), start more workers, and watch memstream_lag"
)


class UnreadNotes:
    """The notes of one stage. `send` returns when a record is durable."""

    def __init__(
        self,
        *,
        stage: str,
        log_client: Log,
        send: Callable[[OutRecord], Awaitable[None]],
        metrics: StageMetrics,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._stage = stage
        self._log = log_client
        self._send = send
        self._metrics = metrics
        self._now = now

    async def passed_over(self, topic: str, partition: int, first: int, until: int) -> None:
        """Write a note about the offsets in [first, until) that retention deleted before the stage read them.

        Only offsets below the start of the log count. Holes above the start come from compaction and transaction
        markers.
        """
        try:
            start = min((await self._log.starts(topic))[partition], until)
        except Transient as away:
            log.warning("hole_not_explained", topic=topic, partition=partition, first=first, until=until, why=str(away))
            return
        if start <= first:
            return
        count = start - first
        self._metrics.unread_deleted(topic, count)
        log.error(
            "unread_records_deleted",
            stage=self._stage,
            topic=topic,
            partition=partition,
            count=count,
            first=first,
            until=start,
            remedy=REMEDY,
        )
        note = UnreadDeleted(
            stage=self._stage, topic=topic, partition=partition, first=first, until=start, at=self._now()
        )
        key = UNREAD + f"{self._stage}/{topic}/{partition}/{first}".encode()
        try:
            await self._send(OutRecord(topic=PARKED.name, key=key, value=note.to_bytes()))
        except StageError as failed:
            log.warning("unread_records_not_noted", topic=topic, partition=partition, first=first, why=str(failed))


async def read_unread(log_client: Log, *, now: datetime) -> Sequence[UnreadDeleted]:
    """Read memory-parked to its end. Return the notes of the last 30 days, oldest first. Raises Transient."""
    notes: dict[bytes, UnreadDeleted] = {}
    if await log_client.partitions(PARKED.name) is None:
        return ()
    async with aclosing(log_client.read(PARKED.name)) as records:
        async for record in records:
            key = record.key or b""
            notes.pop(key, None)
            try:
                if record.value and key.startswith(UNREAD):
                    notes[key] = UnreadDeleted.read(record.value)
            except ValidationError:
                log.warning("unread_note_not_read", offset=record.position.offset)
    return sorted((note for note in notes.values() if note.at > now - KEPT), key=lambda note: note.at)
