"""Lag of the stages: the records that a stage has not read yet, from the committed offsets of its consumer group."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ...schemas.topics import STAGES, StageName, group_of, read_by
from .port import Log


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
