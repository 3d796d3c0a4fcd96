"""Age of the records that a stage has not read."""

from __future__ import annotations

from pathlib import Path

from memstream.schemas.topics import OBSERVATIONS, TURNS, group_of
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import TopicSpec
from memstream.streams.log.stage_lag import oldest_unread


async def test_the_oldest_unread_record_is_the_first_one_after_the_offsets(tmp_path: Path) -> None:
    log = EmbeddedLog(folder=tmp_path)
    await log.start()
    try:
        await log.create([TopicSpec(TURNS.name, 2, 1, {})])
        assert await oldest_unread(log, "observer") is None
        for number in range(8):
            await log.append(TURNS.name, key=f"k{number}".encode(), value=b"{}")
        written = sorted(
            [(each.written_at, each.position) async for each in log.read(TURNS.name)], key=lambda one: one[0]
        )
        assert {position.partition for _, position in written} == {0, 1}
        assert await oldest_unread(log, "observer") == written[0][0]
        first = written[0][1]
        await log.commit(group_of("observer"), TURNS.name, {first.partition: first.offset + 1})
        assert await oldest_unread(log, "observer") == written[1][0]
        await log.commit(group_of("observer"), TURNS.name, dict(enumerate(await log.ends(TURNS.name))))
        assert await oldest_unread(log, "observer") is None
        assert await log.partitions(OBSERVATIONS.name) is None, "the reflector's topic does not exist"
        assert await oldest_unread(log, "reflector") is None
    finally:
        await log.close()
