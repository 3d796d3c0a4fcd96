"""After a crash in the middle of an event, another event of its key may come first. It overwrites nothing."""

from __future__ import annotations

import asyncio
import json

import pytest

from memstream.schemas.topics import COMMANDS_SESSION, OBSERVATIONS, TURNS
from memstream.streams.engine.process_exit import LeaseLost
from memstream.streams.log.partition_count import CountChanged, CountCheck
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Record
from tests.support.counting_stage import Counting
from tests.support.stage_harness import Kill, Killed, StageHarness, Topics


def counted(topics: Topics, topic: str, id: str) -> Record:
    return topics.record(topic, b"k", json.dumps({"id": id, "value": "x"}).encode())


def ids_sent(harness: StageHarness) -> list[str]:
    return [json.loads(record.value or b"{}")["id"] for record in harness.on(OBSERVATIONS.name)]


def new_harness() -> StageHarness:
    return StageHarness(name="observer", make=lambda harness: Counting())


async def dies_in(harness: StageHarness, record: Record, step: str) -> None:
    """Let the process die after a step of the event, and start a new one."""
    probe = new_harness()
    await probe.deliver(record)
    harness._kill_at = len(harness.steps) + probe.steps.index(step) + 1
    with pytest.raises(Killed):
        await harness.deliver(record)
    harness.start()


@pytest.mark.parametrize("step", ["table", "store", "publish"])
async def test_an_event_of_another_topic_that_comes_first_applies_what_is_still_to_be_done(step: str) -> None:
    topics, harness = Topics(), new_harness()
    turn, command = counted(topics, TURNS.name, "turn"), counted(topics, COMMANDS_SESSION.name, "command")
    await dies_in(harness, turn, step)
    await harness.deliver(command)
    await harness.deliver(turn)
    assert list(dict.fromkeys(ids_sent(harness))) == ["turn", "command"]
    assert json.loads(harness.rows.changelog["k"])["count"] == 2


async def test_an_older_event_of_the_same_topic_applies_it_too() -> None:
    """Older events are redelivered when an event before them holds the commit, and may lead to new outcomes."""
    topics, harness = Topics(), new_harness()
    old, new = counted(topics, TURNS.name, "old"), counted(topics, TURNS.name, "new")
    await harness.deliver(old)
    await dies_in(harness, new, "table")
    await harness.deliver(old)
    assert ids_sent(harness) == ["old", "new"]


async def test_an_outcome_applied_in_full_is_not_sent_again() -> None:
    topics, harness = Topics(), new_harness()
    for topic, id in ((TURNS, "a"), (COMMANDS_SESSION, "b"), (TURNS, "c"), (COMMANDS_SESSION, "d")):
        await harness.deliver(counted(topics, topic.name, id))
    assert ids_sent(harness) == ["a", "b", "c", "d"]


async def test_a_committed_outcome_is_not_sent_again_by_the_next_process() -> None:
    topics, harness = Topics(), new_harness()
    await harness.run([counted(topics, TURNS.name, "a")], kill=Kill(at=1_000))
    harness.start()
    harness.handler._committed = lambda topic, partition: 1 if topic == TURNS.name else None
    await harness.deliver(counted(topics, COMMANDS_SESSION.name, "b"))
    assert ids_sent(harness) == ["a", "b"]


@pytest.mark.parametrize(("until", "sent"), [(1, ["a", "b"]), (0, ["a", "a", "b"]), (None, ["a", "a", "b"])])
async def test_the_outcome_of_a_row_that_was_moved_is_applied_again_unless_it_surely_was(
    until: int | None, sent: list[str]
) -> None:
    """Topics have grown: the row's source lies on another partition than the key's next event."""
    topics, harness = Topics(), new_harness()
    await harness.deliver(counted(topics, TURNS.name, "a"))
    harness.start()
    if until is not None:
        harness.rows.until[TURNS.name, 0] = until
    moved = topics.record(TURNS.name, b"k", json.dumps({"id": "b", "value": "x"}).encode(), partition=3)
    await harness.deliver(moved)
    assert ids_sent(harness) == sent
    assert json.loads(harness.rows.changelog["k"])["count"] == 2


class CountedLog:
    """A log that answers with this partition count."""

    def __init__(self, partitions: int) -> None:
        self.partitions_now, self.asked = partitions, 0
        self.answers = asyncio.Event()
        self.answers.set()

    async def partitions(self, topic: str) -> int:
        self.asked += 1
        found = self.partitions_now
        await self.answers.wait()
        return found


async def test_a_misplaced_event_is_judged_by_the_count_of_now() -> None:
    topics, harness = Topics(), new_harness()
    log = CountedLog(4)
    harness.handler._partition_count = CountCheck(log, partitions=2)  # type: ignore[arg-type]
    home = partition_for(b"k", 2)
    event = json.dumps({"id": "a", "value": "x"}).encode()
    await harness.deliver(topics.record(TURNS.name, b"k", event, partition=home))
    assert log.asked == 0
    with pytest.raises(CountChanged, match="memstream topics grow --partitions 4"):
        await harness.deliver(topics.record(TURNS.name, b"k", event, partition=home + 2))
    with pytest.raises(CountChanged):  # also before a dead letter is written
        await harness.deliver(topics.record(TURNS.name, b"k", b"no json", partition=home + 2))
    assert ids_sent(harness) == ["a"]
    assert harness.on(f"{TURNS.name}.dlq") == []
    log.partitions_now = 2
    await harness.deliver(topics.record(TURNS.name, b"k", b"no json", partition=home + 2))
    assert len(harness.on(f"{TURNS.name}.dlq")) == 1


async def test_questions_for_the_count_share_an_answer_that_was_asked_for_after_each() -> None:
    log = CountedLog(2)
    check = CountCheck(log, partitions=2)  # type: ignore[arg-type]
    log.answers.clear()
    first = asyncio.create_task(check.confirm(TURNS.name))
    await asyncio.sleep(0)
    log.partitions_now = 4  # while the first question is under way
    later = [asyncio.create_task(check.confirm(TURNS.name)) for _ in range(20)]
    await asyncio.sleep(0)
    log.answers.set()
    results = await asyncio.gather(*later, return_exceptions=True)
    assert all(isinstance(each, CountChanged) for each in results)
    assert log.asked == 2
    await first


async def test_a_worker_without_a_lease_stores_nothing() -> None:
    """The worker stood still between table and store, and the next owner has applied this and later outcomes."""
    topics, harness = Topics(), new_harness()

    def presumed_dead() -> None:
        raise LeaseLost("no answer from the group coordinator for 20 s")

    harness.handler._fence = presumed_dead
    with pytest.raises(LeaseLost):
        await harness.deliver(counted(topics, TURNS.name, "late"))
    assert "table" in harness.steps
    assert "store" not in harness.steps
    assert ids_sent(harness) == []
