"""`memstream topics grow` on a log in a folder: every row ends in its one place, wherever the command is killed."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memstream.schemas.cloudevents import MOVED_HEADER
from memstream.schemas.errors import Fatal
from memstream.schemas.row_keys import SESSION_EPOCHS
from memstream.schemas.session_epochs import SessionEpochs
from memstream.schemas.topics import (
    COMMANDS,
    FACTS,
    OBSERVATIONS,
    STAGES,
    TURNS,
    StageName,
    catalogue,
    changelog_of,
    group_of,
    read_by,
)
from memstream.streams.faust.growth import GrowthRefused, StillWaiting, TopicGrowth
from memstream.streams.log import group_lock, topic_admin
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.growth_plan import Unplaceable, event_key
from memstream.streams.log.markers import MARKER_KEY, Marker, marker_entry
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Record

BEFORE, AFTER = 3, 5
TABLE_STAGES: tuple[StageName, ...] = ("observer", "reflector", "consolidation")
USERS = [f"u{n}" for n in range(8)]


class Killed(BaseException):
    """The process ends here."""


class DyingLog:
    """A log of a process that is killed at its `at`-th write. Later writes never reach it."""

    def __init__(self, log: EmbeddedLog, *, at: int) -> None:
        self._log = log
        self.left = at

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._log, name)
        if name not in ("append", "add_partitions", "commit"):
            return found

        async def write(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise Killed
            return await found(*args, **kwargs)

        return write


def changelog(stage: StageName) -> str:
    topic = changelog_of(stage)
    assert topic is not None
    return topic.name


def rows_of(stage: StageName, user: str) -> dict[bytes, bytes]:
    if stage == "observer":
        return {f"a/{user}/s1".encode(): b'{"turns": 2}'}
    owner = f"a/user/{user}"
    more = f"{owner}/tasks" if stage == "reflector" else f"{owner}/recalled"
    return {each.encode(): f"{stage} {each}".encode() for each in (owner, more, f"{owner}/a/{user}/s1")}


EXPECTED = {
    stage: {key: value for user in USERS for key, value in rows_of(stage, user).items()} for stage in TABLE_STAGES
}
EPOCHS = {1: SessionEpochs(next=4), 2: SessionEpochs(next=3, renumber_before=2)}
"""By partition of the observer's table, before; sessions end on one partition and come back on another."""
STATES = {f"a/f{n}".encode(): b"fact %d" % n for n in range(9)}


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EmbeddedLog]:
    """A log with markers, rows, facts and a turn a user. Everything is read."""
    log = EmbeddedLog(folder=tmp_path)
    await log.start()
    await topic_admin.create(log, deployment=topic_admin.Deployment(partitions=BEFORE, replication=1))
    for stage in TABLE_STAGES:
        for partition in range(BEFORE):
            key, value = marker_entry(
                Marker(identity=f"{stage}{partition}", whole_from=0, written_at=0, partitions=BEFORE)
            )
            await log.append(changelog(stage), key=key, value=value, partition=partition)
        for row, value in EXPECTED[stage].items():
            await log.append(changelog(stage), key=row, value=value, partition=partition_for(event_key(row), BEFORE))
    for partition, epochs in EPOCHS.items():
        key, value = SESSION_EPOCHS.encode(), epochs.to_bytes()
        await log.append(changelog("observer"), key=key, value=value, partition=partition)
    for key, value in STATES.items():
        await log.append(FACTS.name, key=key, value=value, headers=(("ce_id", key),), timestamp=1_000)
    for user in USERS:
        await log.append(TURNS.name, key=f"a/{user}/s1".encode(), value=b"{}")
        await log.append(OBSERVATIONS.name, key=f"a/user/{user}".encode(), value=b"{}")
    await read_everything(log)
    yield log
    await log.close()


async def read_everything(log: EmbeddedLog) -> None:
    for stage in STAGES:
        for topic in read_by(stage):
            await log.commit(group_of(stage), topic.name, dict(enumerate(await log.ends(topic.name))))


async def grow(log: Any, partitions: int = AFTER, waiting: int = 0) -> dict[str, Any]:
    growth = TopicGrowth(log, partitions=partitions, waiting_turns=lambda rows: waiting)
    return {each.topic: each for each in await growth.run()}


async def last_records(log: EmbeddedLog, topic: str) -> dict[tuple[int, bytes], Record]:
    found: dict[tuple[int, bytes], Record] = {}
    async for record in log.read(topic):
        if record.key is not None:
            found[record.position.partition, record.key] = record
    return found


async def check_grown(log: EmbeddedLog, partitions: int = AFTER) -> None:
    for topic in catalogue():
        if topic.partitions is None:
            assert await log.partitions(topic.name) == partitions, topic.name
    for stage in TABLE_STAGES:
        records = await last_records(log, changelog(stage))
        rows = {place: record.value for place, record in records.items() if record.value is not None}
        markers = {n: Marker.of(rows.pop((n, MARKER_KEY.encode()), None)) for n in range(partitions)}
        assert {n: marker.partitions for n, marker in markers.items() if marker} == dict.fromkeys(
            range(partitions), partitions
        )
        epochs = {n: SessionEpochs.read(rows.pop((n, SESSION_EPOCHS.encode()), None)) for n in range(partitions)}
        joined = SessionEpochs(next=4, renumber_before=2) if stage == "observer" else SessionEpochs()
        assert epochs == dict.fromkeys(range(partitions), joined)
        assert rows == {
            (partition_for(event_key(key), partitions), key): value for key, value in EXPECTED[stage].items()
        }
        growths = [marker.growths for marker in markers.values() if marker]
        assert all(each == growths[0] for each in growths)
        assert growths[0][-1].partitions < partitions
    states = await last_records(log, FACTS.name)
    alive = {place: (each.value, each.headers, each.timestamp) for place, each in states.items() if each.value}
    assert alive == {
        (partition_for(key, partitions), key): (value, (("ce_id", key),), 1_000) for key, value in STATES.items()
    }
    for (partition, key), record in states.items():
        if record.value is None:
            assert partition != partition_for(key, partitions)
            assert int(dict(record.headers)[MOVED_HEADER]) != partition


async def test_every_row_is_on_the_partition_of_its_key(log: EmbeddedLog) -> None:
    done = await grow(log)
    await check_grown(log)
    assert done[changelog("reflector")].rows == len(EXPECTED["reflector"])
    assert done[changelog("reflector")].moved > 0
    assert (done[TURNS.name].partitions_before, done[TURNS.name].sent_again) == (BEFORE, 0)
    again = await grow(log)
    assert all((each.partitions_before, each.moved, each.sent_again) == (AFTER, 0, 0) for each in again.values())
    await grow(log, AFTER + 4)
    await check_grown(log, AFTER + 4)


@pytest.mark.parametrize("seed", range(4))
async def test_killed_anywhere_it_goes_on_when_it_is_called_again(log: EmbeddedLog, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(200):
        try:
            await grow(DyingLog(log, at=chance.randint(0, 30)))
            break
        except Killed:
            pass
    await check_grown(log)


async def test_it_can_be_killed_at_each_write(log: EmbeddedLog) -> None:
    """One more write gets through each time, so that every write is once the last one."""
    kills = 0
    while True:
        try:
            await grow(DyingLog(log, at=1))
            break
        except Killed:
            kills += 1
            with pytest.raises(GrowthRefused, match="cannot be taken away"):
                await grow(log, BEFORE - 1)
    assert kills > 20
    await check_grown(log)


async def test_epochs_reach_new_partitions_when_no_session_has_a_row(log: EmbeddedLog) -> None:
    for key in EXPECTED["observer"]:
        partition = partition_for(event_key(key), BEFORE)
        await log.append(changelog("observer"), key=key, value=None, partition=partition)
    await grow(log)
    records = await last_records(log, changelog("observer"))
    epochs = {n: SessionEpochs.read(records[n, SESSION_EPOCHS.encode()].value) for n in range(AFTER)}
    assert epochs == dict.fromkeys(range(AFTER), SessionEpochs(next=4, renumber_before=2))


async def test_what_waits_to_be_read_is_named(log: EmbeddedLog) -> None:
    await log.append(OBSERVATIONS.name, key=b"a/user/u1", value=b"{}")
    with pytest.raises(StillWaiting, match=r"memory-reflector on memory.observations: 1\)"):
        await grow(log)
    assert await log.partitions(changelog("observer")) == BEFORE


async def test_turns_that_wait_in_the_table_are_named(log: EmbeddedLog) -> None:
    row = b"a/u1/s1/0"
    await log.append(changelog("observer"), key=row, value=b"{}", partition=partition_for(b"a/u1/s1", BEFORE))
    with pytest.raises(StillWaiting, match="memory-observer: 2 turns wait"):
        await TopicGrowth(log, partitions=AFTER, waiting_turns=lambda rows: 2 * (b"a/u1/s1" in rows)).run()
    assert await log.partitions(changelog("observer")) == BEFORE


async def test_a_live_worker_is_named(log: EmbeddedLog, tmp_path: Path) -> None:
    release = await group_lock.hold(tmp_path, group_of("reflector"))
    with pytest.raises(GrowthRefused, match=r"workers are running: memory-reflector \(1\)"):
        await grow(log)
    release()


async def test_rows_that_cannot_be_placed_leave_everything_as_it_was(log: EmbeddedLog) -> None:
    await log.append(changelog("observer"), key=b"no-key", value=b"{}", partition=0)
    with pytest.raises(Unplaceable, match="no-key"):
        await grow(log)
    assert await log.partitions(changelog("observer")) == BEFORE


async def test_a_table_that_lost_rows_is_not_taken_for_a_whole_one(log: EmbeddedLog) -> None:
    await log.delete([changelog("reflector")])
    await topic_admin.create(log, deployment=topic_admin.Deployment(partitions=BEFORE, replication=1))
    with pytest.raises(Fatal, match="rows are missing from memory-reflector-ledger-changelog"):
        await grow(log)


async def test_partitions_that_were_added_by_hand_are_taken_over(log: EmbeddedLog) -> None:
    """Producers went on by the new count. What waits is sent again, in the order in which it came."""
    keys = [f"a/{user}/s1".encode() for user in USERS]
    for n, key in enumerate(keys):
        await log.append(TURNS.name, key=key, value=b"old", timestamp=2_000 + n)
    await log.add_partitions(TURNS.name, AFTER)
    for n, key in enumerate(keys):
        await log.append(TURNS.name, key=key, value=b"new", timestamp=3_000 + n)
    await log.append(COMMANDS.name, key=b"a/user/u1", value=b"command")
    before = await log.ends(TURNS.name)
    done = await grow(log)
    await check_grown(log)
    assert done[TURNS.name].sent_again == 2 * len(keys)
    for stage in ("observer", "recorder"):
        committed = await log.committed(group_of(stage), TURNS.name)
        start = {partition: offset or 0 for partition, offset in enumerate(committed)}
        assert all(offset >= end for offset, end in zip(start.values(), before, strict=True) if end)
        unread: dict[bytes, list[bytes]] = {}
        async for record in log.read(TURNS.name, start=start):
            assert record.key is not None
            assert record.position.partition == partition_for(record.key, AFTER)
            unread.setdefault(record.key, []).append(record.value or b"")
        assert unread == {key: [b"old", b"new"] for key in keys}
    marker = Marker.of((await last_records(log, changelog("observer")))[0, MARKER_KEY.encode()].value)
    assert marker is not None
    assert marker.growths[-1].sent_again[TURNS.name] == before
    assert (await grow(log))[TURNS.name].sent_again == 0


async def test_markers_of_an_earlier_version_get_the_count(log: EmbeddedLog) -> None:
    for stage in TABLE_STAGES:
        for partition in range(BEFORE):
            key, value = marker_entry(Marker(identity=f"{stage}{partition}", whole_from=0, written_at=0))
            await log.append(changelog(stage), key=key, value=value, partition=partition)
    await grow(log)
    await check_grown(log)
