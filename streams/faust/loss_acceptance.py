"""Acceptance of a loss (`memstream tables accept-loss STAGE`): the remaining entries of a changelog count as the whole.

A new marker in each partition says so (`changelog_check.Marker`), and the marks of the index (schemas/row_keys.py) go.
The observer's table also numbers the turns of each session. Its numbers begin again at 1, and the stages behind it
would take these turns for known ones. So their rows "reflected up to turn n" are deleted, after they have read all
records that the observer sent.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from ...schemas.errors import Fatal
from ...schemas.row_keys import INDEX_BUILT, INDEX_FENCE
from ...schemas.topics import StageName, changelog_of, group_of, read_by
from ..log.markers import Marker, marker_entry
from ..log.port import Log

#: Stages that number turns → stages that remember the numbers.
REMEMBERS_NUMBERS: dict[StageName, tuple[StageName, ...]] = {"observer": ("reflector", "consolidation")}
#: Keys of rows "reflected up to turn n": an owner key and a session key, three parts each.
SESSION_ROW_PARTS = 6


class LossRefused(Exception):
    """The loss cannot be accepted now. The message says what must be done first (exit code 2)."""


@dataclass(frozen=True, slots=True)
class AcceptedLoss:
    """One changelog: how many partitions got a marker, and how many rows were deleted."""

    topic: str
    partitions: int
    rows_deleted: int


async def accept_loss(log: Log, stage: StageName) -> list[AcceptedLoss]:
    """Accept the loss and return the changes of each changelog. May be repeated.

    Raises:
        LossRefused: something has to be done first.
        Fatal: the stage has no table.
        Transient: the log does not answer.
    """
    behind = REMEMBERS_NUMBERS.get(stage, ())
    for each in (stage, *behind):
        if members := await log.members(group_of(each)):
            raise LossRefused(f"{members} worker(s) of {each} are running: stop all workers first")
    for each in behind:
        if lag := await _lag(log, each):
            raise LossRefused(
                f"{each} has {lag} records to read that the {stage} sent: start its workers without the {stage} until "
                "its lag is 0, then stop them"
            )
    done = [AcceptedLoss(_changelog(each), 0, await _delete_session_rows(log, _changelog(each))) for each in behind]
    return [*done, AcceptedLoss(_changelog(stage), await _mark(log, _changelog(stage)), 0)]


def _changelog(stage: StageName) -> str:
    topic = changelog_of(stage)
    if topic is None:
        raise Fatal(f"{stage} has no table")
    return topic.name


async def _lag(log: Log, stage: StageName) -> int:
    lag = 0
    for topic in read_by(stage):
        ends, committed = await log.ends(topic.name), await log.committed(group_of(stage), topic.name)
        lag += sum(end - (at or 0) for end, at in zip(ends, committed, strict=True))
    return lag


async def _delete_session_rows(log: Log, topic: str) -> int:
    """Delete the rows by tombstones in the log, which local tables read, too. Return how many there were."""
    alive: dict[tuple[int, bytes], bool] = {}
    async for record in log.read(topic):
        if record.key is not None and len(record.key.split(b"/")) == SESSION_ROW_PARTS:
            alive[record.position.partition, record.key] = record.value is not None
    rows = [row for row, present in alive.items() if present]
    for partition, key in rows:
        await log.append(topic, key=key, value=None, partition=partition)
    return len(rows)


async def _mark(log: Log, topic: str) -> int:
    if await log.partitions(topic) is None:
        raise LossRefused(f"there is no topic {topic}: `memstream topics create` makes it")
    places = list(zip(await log.starts(topic), await log.ends(topic), strict=True))
    for partition, (start, end) in enumerate(places):
        marker = Marker(identity=uuid.uuid4().hex, whole_from=start, written_at=end, partitions=len(places))
        key, value = marker_entry(marker)
        await log.append(topic, key=key, value=value, partition=partition)
        for mark in (INDEX_BUILT, INDEX_FENCE):  # index rows may be lost: the next worker builds the index again
            await log.append(topic, key=mark.encode(), value=None, partition=partition)
    return len(places)
