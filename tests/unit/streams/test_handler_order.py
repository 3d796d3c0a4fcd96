"""After a crash in the middle of an event, another event of its key may come first. It overwrites nothing."""

from __future__ import annotations

import json

import pytest

from memstream.schemas.topics import COMMANDS_SESSION, OBSERVATIONS, TURNS
from memstream.streams.engine.process_exit import LeaseLost
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
