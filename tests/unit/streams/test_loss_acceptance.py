"""The records that `memstream tables accept-loss` writes, on a log in a folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from memstream.schemas.row_keys import INDEX_BUILT, INDEX_FENCE, SESSION_EPOCHS
from memstream.schemas.session_epochs import SessionEpochs
from memstream.schemas.topics import OBSERVATIONS, StageName, changelog_of
from memstream.streams.faust.loss_acceptance import LossRefused, accept_loss
from memstream.streams.log import topic_admin
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.markers import MARKER_KEY, Marker

PARTITIONS = 2
OWNER, SESSION = b"acme/user/u1", b"acme/user/u1/acme/u1/s1"


def changelog(stage: StageName) -> str:
    topic = changelog_of(stage)
    assert topic is not None
    return topic.name


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EmbeddedLog]:
    log = EmbeddedLog(folder=tmp_path)
    await log.start()
    await topic_admin.create(log, deployment=topic_admin.Deployment(partitions=PARTITIONS, replication=1))
    yield log
    await log.close()


async def records_of(log: EmbeddedLog, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.position.partition, record.key, record.value) async for record in log.read(topic)]


async def test_every_partition_gets_a_marker_for_what_is_left(log: EmbeddedLog) -> None:
    await log.append(changelog("reflector"), key=OWNER, value=b"1", partition=1)
    (accepted,) = await accept_loss(log, "reflector")
    assert (accepted.topic, accepted.partitions) == (changelog("reflector"), PARTITIONS)
    found = await records_of(log, changelog("reflector"))
    markers = {partition: Marker.of(value) for partition, key, value in found if key == MARKER_KEY.encode()}
    assert {n: (m.whole_from, m.written_at) for n, m in markers.items() if m} == {0: (0, 0), 1: (0, 1)}
    assert len({m.identity for m in markers.values() if m}) == PARTITIONS


async def test_the_next_worker_builds_the_index_again(log: EmbeddedLog) -> None:
    await accept_loss(log, "reflector")
    found = await records_of(log, changelog("reflector"))
    for partition in range(PARTITIONS):
        assert [key for at, key, value in found if at == partition and value is None] == [
            INDEX_BUILT.encode(),
            INDEX_FENCE.encode(),
        ]


async def test_turn_numbers_go_on_above_the_epoch_of_every_row(log: EmbeddedLog) -> None:
    rows = {"observer": (b"acme/u1/s1", 2), "reflector": (SESSION, 4), "consolidation": (SESSION, 3)}
    for stage, (key, epoch) in rows.items():
        await log.append(changelog(cast(StageName, stage)), key=key, value=b'{"epoch":%d}' % epoch, partition=1)
    (accepted,) = await accept_loss(log, "observer")
    assert (accepted.topic, accepted.epoch) == (changelog("observer"), 5)
    for stage, (key, epoch) in rows.items():
        assert (1, key, b'{"epoch":%d}' % epoch) in await records_of(log, changelog(cast(StageName, stage)))
    found = await records_of(log, changelog("observer"))
    epochs = {at: SessionEpochs.read(value) for at, key, value in found if key == SESSION_EPOCHS.encode()}
    assert epochs == dict.fromkeys(range(PARTITIONS), SessionEpochs(next=5, renumber_before=5))
    (again,) = await accept_loss(log, "observer")
    assert again.epoch == 6


async def test_the_marker_that_lets_a_worker_start_is_written_last(log: EmbeddedLog) -> None:
    await accept_loss(log, "observer")
    for partition in range(PARTITIONS):
        keys = [key for at, key, _ in await records_of(log, changelog("observer")) if at == partition]
        needed = {SESSION_EPOCHS.encode(), INDEX_BUILT.encode(), INDEX_FENCE.encode()}
        assert (set(keys[:-1]), keys[-1]) == (needed, MARKER_KEY.encode())


async def test_nothing_is_written_while_a_stage_behind_has_to_read(log: EmbeddedLog) -> None:
    await log.append(OBSERVATIONS.name, key=OWNER, value=b"{}")
    with pytest.raises(LossRefused, match="reflector has 1 records to read"):
        await accept_loss(log, "observer")
    assert await records_of(log, changelog("observer")) == []


async def test_records_that_retention_has_deleted_are_not_to_be_read(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await log.append(OBSERVATIONS.name, key=OWNER, value=b"{}")
    starts = log.starts

    async def after_retention(topic: str) -> list[int]:
        return list(await (log.ends if topic == OBSERVATIONS.name else starts)(topic))

    monkeypatch.setattr(log, "starts", after_retention)
    (accepted,) = await accept_loss(log, "observer")
    assert accepted.topic == changelog("observer")


async def test_a_missing_topic_has_to_be_created_first(log: EmbeddedLog) -> None:
    await log.delete([changelog("reflector")])
    with pytest.raises(LossRefused, match="memstream topics create"):
        await accept_loss(log, "reflector")
