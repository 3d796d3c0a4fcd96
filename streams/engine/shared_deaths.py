"""Counts of the workers that a record has ended (deaths), shared by all workers on memory-parked.

A worker first counts in its own folder (`CrashCounter`). Before it ends, it reads the shared count and writes the count
increased by one. A record that ends no worker causes no request to the broker.

Each stage has a count of its own, because only a stage that failed at a record gives it up. For such a stage, the
deaths of all stages at the record count: otherwise a record that ends the recorder and the observer of one process
would end it twice as often.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog
from pydantic import ValidationError

from ...schemas.errors import StageError
from ...schemas.outcomes import OutRecord
from ...schemas.parking import ERROR_MAX, RecordDeaths
from ...schemas.topics import PARKED
from ..log.port import Log, Position
from .failures import HUNG

log = structlog.get_logger(__name__)

DEATHS: Final = b"deaths/"
"""Prefix of the record keys of deaths in the topic memory-parked. The record key of a parked key begins with the name
of its stage, and no stage has this name."""
NOTE_SECONDS: Final = 10.0
"""Maximum seconds that an ending worker waits for the broker. After this time, only the worker's own count is used."""
KEPT: Final = timedelta(days=7)
"""Age above which a count is ignored. An ignored count is deleted when a record next ends a worker of the stage."""


class SharedDeaths:
    """The deaths by record at which one stage failed. `send` returns when a record is durable."""

    def __init__(
        self,
        *,
        stage: str,
        log_client: Log,
        send: Callable[[OutRecord], Awaitable[None]],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        patience: float = NOTE_SECONDS,
    ) -> None:
        self._stage = stage
        self._log = log_client
        self._send = send
        self._now = now
        self._patience = patience

    async def add(self, position: Position, error: str, *, own: int) -> int:
        """Count one more death by a record durably. Return the total number of deaths in all stages.

        `own`: the deaths that this worker has counted, including this death. The total is at least `own`. If the broker
        does not answer, the total is `own`.
        """
        try:
            async with asyncio.timeout(self._patience):
                return await self._add(position, error, own)
        except (StageError, TimeoutError) as away:
            log.warning("death_not_told", topic=position.topic, offset=position.offset, why=str(away))
            return own

    async def hung(self) -> dict[Position, int]:
        """Return the deaths by record in all stages, for records whose last death in this stage was a hang.

        Raises Transient.
        """
        if await self._log.partitions(PARKED.name) is None:
            return {}
        known = await self._read()
        ours = [each for each in known.values() if each.stage == self._stage and self._counts(each)]
        hangs = [_position(each) for each in ours if each.error.startswith(HUNG)]
        return {position: sum(self._deaths(known, position).values()) for position in hangs}

    async def _add(self, position: Position, error: str, own: int) -> int:
        if await self._log.partitions(PARKED.name) is None:
            return own
        known = await self._read()
        before = self._deaths(known, position)
        deaths = max(own, 1 + before.pop(self._stage, 0))
        key = DEATHS + f"{self._stage}/{position.topic}/{position.partition}/{position.offset}".encode()
        entry = RecordDeaths(
            stage=self._stage,
            topic=position.topic,
            partition=position.partition,
            offset=position.offset,
            deaths=deaths,
            at=self._now(),
            error=error[:ERROR_MAX],
        )
        await self._send(OutRecord(topic=PARKED.name, key=key, value=entry.to_bytes()))
        for old, each in known.items():
            if old != key and each.stage == self._stage and not self._counts(each):
                await self._send(OutRecord(topic=PARKED.name, key=old, value=None))
        return deaths + sum(before.values())

    async def _read(self) -> dict[bytes, RecordDeaths]:
        """Read memory-parked to its end. Return the entries of all stages by record key."""
        entries: dict[bytes, RecordDeaths] = {}
        async with aclosing(self._log.read(PARKED.name)) as records:
            async for record in records:
                key = record.key or b""
                entries.pop(key, None)
                try:
                    if key.startswith(DEATHS) and record.value:
                        entries[key] = RecordDeaths.read(record.value)
                except ValidationError:
                    log.warning("deaths_not_read", offset=record.position.offset)
        return entries

    def _deaths(self, known: Mapping[bytes, RecordDeaths], position: Position) -> dict[str, int]:
        """Return the deaths at this record by stage."""
        here = [each for each in known.values() if self._counts(each) and _position(each) == position]
        return {each.stage: each.deaths for each in here}

    def _counts(self, entry: RecordDeaths) -> bool:
        return self._now() - entry.at < KEPT


def _position(entry: RecordDeaths) -> Position:
    return Position(entry.topic, entry.partition, entry.offset)
