"""A changelog that lost entries: the worker refuses it before it has handled anything, and says what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from memstream.schemas.topics import OBSERVATIONS, TURNS
from memstream.streams.engine.process_exit import BROKEN
from tests.support.counting_run import CHANGELOG, GROUP, CountingRun
from tests.support.kafka import Broker
from tests.support.tables import (
    PARTITIONS,
    append,
    counted_once,
    counting,
    delete_records,
    delete_tables,
    kept,
    make_anew,
    mark,
)

pytestmark = [pytest.mark.timeout(180)]


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.kafka), "embedded"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "kafka":
        own: Broker = request.getfixturevalue("own_kafka")
        yield f"kafka://{own.bootstrap}"
    else:
        yield f"embedded://{tmp_path / 'log'}"


@pytest.fixture
async def run(broker: str, tmp_path: Path) -> AsyncIterator[CountingRun]:
    """A worker has handled some records and was stopped; others wait."""
    async with counting(broker, tmp_path) as run:
        await handle_some(run)
        yield run


async def handle_some(run: CountingRun, worker: str = "w") -> None:
    await run.produce(24)
    process = run.start(worker)
    await run.drained()
    await run.stop(process)


async def refused(run: CountingRun, *said: str, worker: str = "w") -> None:
    """The worker ends with exit 4 and these words, and has touched nothing."""
    await run.send("k0", "waits")
    before = await place(run)
    for _ in range(2):  # the second start finds no more than the first
        assert await run.ended(run.start(worker)) == BROKEN, run.output(worker)[-3000:]
    output = run.output(worker)
    for words in (*said, CHANGELOG, "memstream tables accept-loss observer", str(run.folder / worker)):
        assert words in output, f"{words}\n{output[-3000:]}"
    assert await place(run) == before
    assert not list((run.folder / worker / "attempts").glob("*.json")), "nobody's death"


async def place(run: CountingRun) -> tuple[object, ...]:
    """What a worker that handled anything would have changed."""
    return (
        await run.log.committed(GROUP, TURNS.name),
        await run.log.ends(OBSERVATIONS.name),
        await run.log.ends(CHANGELOG),
    )


# ------------------------------------------------------------------------------------------------ the ways
Lose = Callable[[CountingRun], Awaitable[tuple[str, ...]]]


async def made_anew_with_no_local_table(run: CountingRun) -> tuple[str, ...]:
    await make_anew(run)
    delete_tables(run)
    return ("partition 0: it is empty, but the group has committed", "partition 1: it is empty, but the group")


async def made_anew_beside_a_local_table(run: CountingRun) -> tuple[str, ...]:
    await make_anew(run)
    return ("the changelog ends at 0",)


async def made_anew_and_written_by_others(run: CountingRun) -> tuple[str, ...]:
    await make_anew(run)
    delete_tables(run)
    for partition in range(PARTITIONS):
        await append(run, {b"k9": b"{}"}, partition)
    return ("partition 0: it has offsets 0 to 0 but not its first entry",)


async def made_anew_and_grown_beyond_the_local_table(run: CountingRun) -> tuple[str, ...]:
    ends = await run.log.ends(CHANGELOG)
    await make_anew(run)
    await mark(run, "another")
    for partition in range(PARTITIONS):
        await append(run, {b"other-%d" % n: b"{}" for n in range(max(ends) + 10)}, partition)
    return ("is of another topic of this name",)


async def deleted_records_with_no_local_table(run: CountingRun) -> tuple[str, ...]:
    await delete_records(run)
    delete_tables(run)
    return ("but not its first entry",)


async def deleted_records_that_a_local_table_has_not_read(run: CountingRun) -> tuple[str, ...]:
    await handle_some(run, "other")
    await delete_records(run)
    return ("the changelog begins at",)


@pytest.mark.fault(
    broken="a changelog deleted, made anew or cut, before a cold or a warm start",
    holds="exit 4 before anything is handled; table, partition, cause and remedy are named",
)
@pytest.mark.parametrize(
    "lose",
    [
        made_anew_with_no_local_table,
        made_anew_beside_a_local_table,
        made_anew_and_written_by_others,
        made_anew_and_grown_beyond_the_local_table,
        deleted_records_with_no_local_table,
        deleted_records_that_a_local_table_has_not_read,
    ],
)
async def test_a_changelog_that_lost_entries_is_refused(run: CountingRun, lose: Lose) -> None:
    await refused(run, *await lose(run))


@pytest.mark.fault(
    broken="a changelog made anew, and restored from a backup", holds="the worker goes on; nothing lost or doubled"
)
async def test_a_changelog_restored_from_a_backup_is_taken(run: CountingRun) -> None:
    backup = await kept(run)
    await made_anew_with_no_local_table(run)
    await refused(run)
    for record in backup:
        await run.log.append(CHANGELOG, key=record.key, value=record.value, partition=record.position.partition)
    delete_tables(run)
    await handle_some(run)
    await run.check()


@pytest.mark.fault(
    broken="changelog records deleted that the local table has",
    holds="this worker goes on and warns; one without the table refuses",
)
async def test_a_warm_worker_goes_on_when_only_what_it_has_was_deleted(run: CountingRun) -> None:
    await delete_records(run)
    await handle_some(run)
    await counted_once(run)
    assert "changelog_was_cut" in run.output()
    await refused(run, "but not its first entry", worker="other")


@pytest.mark.fault(broken="a partition that only ever saw dead letters, no local table", holds="no false alarm")
async def test_dead_letters_alone_are_no_loss(broker: str, tmp_path: Path) -> None:
    async with counting(broker, tmp_path) as run:
        for n in range(8):
            await run.send(f"k{n}", "0", "poison")
        process = run.start()
        await run.drained()
        await run.stop(process)
        delete_tables(run)
        await handle_some(run)
        await run.check()
