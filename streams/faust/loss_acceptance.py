"""Acceptance of a loss (`memstream tables accept-loss STAGE`): the remaining entries of a changelog count as complete.

Each partition gets a new marker (log/markers.py). The rows that show that the partition's index is built
(schemas/row_keys.py) are deleted. The observer's table also numbers the turns of each session. With rows lost, the
observer would use numbers a second time, and the later stages would treat these turns as duplicates. So all sessions
continue in a new epoch, which is higher than the epochs of all rows (schemas/session_epochs.py). Before that, the later
stages must have read all records that the observer sent.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass

from ...schemas.errors import Fatal
from ...schemas.row_keys import INDEX, INDEX_BUILT, INDEX_FENCE, SESSION_EPOCHS
from ...schemas.session_epochs import SessionEpochs
from ...schemas.topics import StageName, changelog_of, group_of, read_by
from ..engine.parking import without_mark
from ..log.markers import Marker, marker_entry
from ..log.port import Log
from ..log.waiting_records import waiting_ranges

#: Stage that numbers turns → stages that remember the numbers.
REMEMBERS_NUMBERS: dict[StageName, tuple[StageName, ...]] = {"observer": ("reflector", "consolidation")}
#: Numbers of parts in the keys of rows with an epoch: a session key (3), or an owner key and a session key (6).
EPOCH_ROW_PARTS = (3, 6)


class LossRefused(Exception):
    """The loss cannot be accepted now. The message names the step that is needed first (exit code 2)."""


@dataclass(frozen=True, slots=True)
class AcceptedLoss:
    """The result for one changelog. `partitions`: number of partitions that got a marker."""

    topic: str
    partitions: int
    rows_deleted: int = 0
    """Always 0 since version 0.3."""
    epoch: int | None = None
    """The epoch in which the turn numbers of all sessions begin again; None for a stage that does not number turns."""


async def accept_loss(log: Log, stage: StageName) -> list[AcceptedLoss]:
    """Accept the loss and return the changes of each changelog. The call may be repeated.

    Raises:
        LossRefused: a precondition is not met; the message names it.
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
                f"{each} has {lag} records to read from the {stage}: start its workers without the {stage} until its "
                "lag is 0, then stop them"
            )
    if await log.partitions(topic := _changelog(stage)) is None:
        raise LossRefused(f"there is no topic {topic}: run `memstream topics create`")
    epochs: SessionEpochs | None = None
    if behind:
        highest = max([await _highest_epoch(log, _changelog(each)) for each in (stage, *behind)])
        epochs = SessionEpochs(next=highest + 1, renumber_before=highest + 1)
    partitions = await _mark(log, topic, epochs)
    return [AcceptedLoss(topic, partitions, epoch=None if epochs is None else epochs.next)]


def _changelog(stage: StageName) -> str:
    topic = changelog_of(stage)
    if topic is None:
        raise Fatal(f"{stage} has no table")
    return topic.name


async def _lag(log: Log, stage: StageName) -> int:
    """Count the unread records of a stage that the log still has. Records deleted by retention do not count."""
    ranges = [await waiting_ranges(log, [group_of(stage)], topic.name) for topic in read_by(stage)]
    return sum(waiting.records for of_topic in ranges for waiting in of_topic.values())


async def _highest_epoch(log: Log, topic: str) -> int:
    """Return the highest epoch in any record of the changelog, including outdated rows. Raises LaterVersion."""
    highest = 0
    async for record in log.read(topic):
        if record.key is None or record.value is None:
            continue
        if record.key == SESSION_EPOCHS.encode():
            highest = max(highest, SessionEpochs.read(record.value).next)
        elif not record.key.startswith(INDEX.encode()) and len(record.key.split(b"/")) in EPOCH_ROW_PARTS:
            highest = max(highest, _epoch_of(record.value))
    return highest


def _epoch_of(row: bytes) -> int:
    try:
        fields = json.loads(without_mark(row))
    except ValueError:
        return 0
    epoch = fields.get("epoch") if isinstance(fields, dict) else None
    return epoch if isinstance(epoch, int) else 0


async def _mark(log: Log, topic: str, epochs: SessionEpochs | None) -> int:
    places = list(zip(await log.starts(topic), await log.ends(topic), strict=True))
    for partition, (start, end) in enumerate(places):
        if epochs is not None:
            await log.append(topic, key=SESSION_EPOCHS.encode(), value=epochs.to_bytes(), partition=partition)
        for mark in (INDEX_BUILT, INDEX_FENCE):  # index rows may be lost: the next worker builds the index again
            await log.append(topic, key=mark.encode(), value=None, partition=partition)
        # the marker is written last: with it a worker can start, and the worker needs the other entries
        marker = Marker(identity=uuid.uuid4().hex, whole_from=start, written_at=end, partitions=len(places))
        key, value = marker_entry(marker)
        await log.append(topic, key=key, value=value, partition=partition)
    return len(places)
