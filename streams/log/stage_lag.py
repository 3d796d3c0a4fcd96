"""Lag of the stages: the records that a stage has not read yet, from the committed offsets of its consumer group."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime

from ...schemas.topics import STAGES, StageName, group_of, read_by
from .port import Log

OLDEST_SECONDS = 2.0
"""Maximum time of the search for the oldest record of a stage that it has not read."""


@dataclass(frozen=True, slots=True)
class StageLag:
    """Workers of a stage and the records that they have not read."""

    stage: StageName
    workers: int
    behind: int
    deleted: int
    """Records that retention deleted before the stage read them."""
    sent: int
    """Records that were ever written to the topics of the stage."""


async def stage_lag(log: Log, stage: StageName) -> StageLag:
    """Read the lag of a stage. Topics that do not exist count as empty. Raises Transient."""
    group = group_of(stage)
    behind = deleted = sent = 0
    for topic in read_by(stage):
        if await log.partitions(topic.name) is None:
            continue
        starts, ends = await log.starts(topic.name), await log.ends(topic.name)
        committed = await log.committed(group, topic.name)
        sent += sum(ends)
        behind += sum(end - max(start, done or 0) for start, end, done in zip(starts, ends, committed, strict=True))
        deleted += sum(max(0, start - done) for start, done in zip(starts, committed, strict=True) if done is not None)
    return StageLag(stage, await log.members(group), behind, deleted, sent)


async def stage_lags(log: Log) -> list[StageLag]:
    """Read the lag of each stage, in the order of the stages. Raises Transient."""
    return await asyncio.gather(*(stage_lag(log, stage) for stage in STAGES))


async def oldest_unread(log: Log, stage: StageName) -> datetime | None:
    """Return the time of the oldest record that the stage has not read. None: there is no such record, or it was not
    found within `OLDEST_SECONDS`. Raises Transient."""
    found: list[datetime] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(OLDEST_SECONDS):
            for topic in read_by(stage):
                if await log.partitions(topic.name) is not None:
                    await _first_unread(log, stage, topic.name, found)
    return min(found, default=None)


async def _first_unread(log: Log, stage: StageName, topic: str, found: list[datetime]) -> None:
    """Add the time of the first unread record of each partition to `found`."""
    starts, ends = await log.starts(topic), await log.ends(topic)
    committed = await log.committed(group_of(stage), topic)
    begin = [max(start, done or 0) for start, done in zip(starts, committed, strict=True)]
    unread = {n: offset for n, offset in enumerate(begin) if offset < ends[n]}
    if not unread:
        return
    async with aclosing(log.read(topic, start=dict(unread))) as records:
        async for record in records:
            if unread.pop(record.position.partition, None) is not None and record.written_at is not None:
                found.append(record.written_at)
            if not unread:
                return
