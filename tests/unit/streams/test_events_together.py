"""Events of one lane that one outcome covers: what is done, what a crash leaves, what happens when one fails."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstream.schemas.topics import COMMANDS_SESSION, OBSERVATIONS, TURNS
from memstream.streams.engine.held_events import TP
from memstream.streams.engine.lane_events import RoutedEvent
from memstream.streams.engine.lanes import FEW, Lanes
from memstream.streams.engine.parking import retry_of, retry_record
from memstream.streams.log.partition_count import CountCheck
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Record
from tests.support.counting_stage import Counted, Counting
from tests.support.polling import wait_for
from tests.support.stage_harness import Kill, StageHarness, Topics, kills

LETTERS = TURNS.name + ".dlq"


def event(topics: Topics, id: str, value: str = "x", *, topic: str = TURNS.name, partition: int = 0) -> Record:
    return topics.record(topic, b"k", json.dumps({"id": id, "value": value}).encode(), partition=partition)


def new_harness(together: int = 8) -> StageHarness:
    return StageHarness(name="observer", make=lambda harness: Counting(together=together))


def ids_sent(harness: StageHarness) -> list[str]:
    return [json.loads(record.value or b"{}")["id"] for record in harness.on(OBSERVATIONS.name)]


async def test_queued_events_are_done_with_the_one_before_them() -> None:
    topics, harness = Topics(), new_harness()
    await harness.run([event(topics, id) for id in "abc"], together=True)
    assert ids_sent(harness) == ["a", "b", "c"]
    assert [json.loads(record.value or b"{}")["id"] for record in harness.covered] == ["b", "c"]
    assert harness.steps.count("table") == 1


@pytest.mark.parametrize("kill", list(kills(9)), ids=str)
async def test_after_a_kill_at_any_step_each_has_its_effect_once(kill: Kill) -> None:
    topics, harness = Topics(), new_harness()
    await harness.run([event(topics, id) for id in "abc"], together=True, kill=kill)
    assert harness.step is not None
    assert list(harness.once(OBSERVATIONS.name, lambda record: json.loads(record.value or b"{}")["id"])) == [
        "a",
        "b",
        "c",
    ]
    harness.check_equal_bytes(id_of=lambda record: json.loads(record.value or b"{}")["id"])
    assert json.loads(harness.rows.changelog["k"])["count"] == 3


@settings(max_examples=60, deadline=None)
@given(events=st.lists(st.sampled_from(["x", "x", "x", "poison"]), min_size=1, max_size=9), together=st.integers(0, 4))
def test_what_fails_in_company_has_its_own_answer(events: list[str], together: int) -> None:
    """Only the event that fails alone is refused; its neighbours have their effects, in order."""

    async def scenario() -> None:
        topics, harness = Topics(), new_harness(together)
        await harness.run([event(topics, str(n), value) for n, value in enumerate(events)], together=True)
        good = [str(n) for n, value in enumerate(events) if value == "x"]
        assert ids_sent(harness) == good
        assert len(harness.on(LETTERS)) == len(events) - len(good)

    asyncio.run(scenario())


async def test_an_unexpected_failure_is_blamed_on_the_event_that_fails_alone() -> None:
    topics, harness = Topics(), new_harness()
    good, odd = event(topics, "good"), event(topics, "odd", "odd")
    await harness.deliver(good, ahead=[odd])
    assert ids_sent(harness) == ["good"]
    assert harness.covered == []
    for _ in range(2):
        with pytest.raises(Exception, match="nobody expected this"):
            await harness.deliver(odd)
        harness.start()
    await harness.deliver(odd)
    [letter] = harness.on(LETTERS)
    assert json.loads(letter.value or b"{}")["id"] == "odd"


async def test_a_command_and_a_turn_may_be_done_together() -> None:
    topics, harness = Topics(), new_harness()
    await harness.run([event(topics, "a"), event(topics, "b", topic=COMMANDS_SESSION.name)], together=True)
    assert len(harness.covered) == 1


async def test_what_the_stage_must_not_see_ends_the_company() -> None:
    """An undecodable event, a new try of a parked key, and a misplaced event are handled by themselves."""
    topics = Topics()
    undecodable = topics.record(TURNS.name, b"k", b"no json")
    command = retry_record("observer", "k/k/k", now=datetime.now(UTC))
    fields = json.loads(command.value or b"{}") | {"id": "r", "value": "x"}
    retry = topics.record(COMMANDS_SESSION.name, b"k", json.dumps(fields).encode())
    assert retry_of(retry) is not None
    for stops in (undecodable, retry):
        harness = new_harness()
        await harness.deliver(event(topics, "a"), ahead=[event(topics, "b"), stops, event(topics, "c")])
        assert [json.loads(record.value or b"{}")["id"] for record in harness.covered] == ["b"]
    harness = new_harness()
    home = partition_for(b"k", 2)
    harness.handler._partition_count = CountCheck(None, partitions=2)  # type: ignore[arg-type]
    wrong = event(topics, "b", partition=1 - home)
    harness.handler._ahead = lambda: iter([(wrong, harness.handler.route(wrong))])
    assert harness.handler._queued().next(8) == []


async def test_an_event_that_does_not_belong_to_the_lane_is_not_taken_along() -> None:
    """Its record's key put it into this lane; the stage finds another key in it."""
    topics, harness = Topics(), new_harness()
    other = event(topics, "b")
    harness.handler._ahead = lambda: iter([(other, RoutedEvent("another", Counted("another", "b", "x")))])
    assert harness.handler._queued().next(8) == []


async def test_a_record_at_which_a_worker_hung_is_handled_by_itself() -> None:
    """Otherwise the next hang would be counted against the one that has it in company."""
    topics, harness = Topics(), new_harness()
    first, suspect, third = event(topics, "a"), event(topics, "b"), event(topics, "c")
    harness.handler._boundary.learn_hung({suspect.position: 1})
    await harness.deliver(first, ahead=[suspect, third])
    assert harness.covered == []
    await harness.deliver(suspect, ahead=[third])
    assert harness.covered == []
    await harness.deliver(third, ahead=[event(topics, "d")])
    assert len(harness.covered) == 1


async def test_a_covered_event_never_starts_and_is_committed() -> None:
    tp: TP = ("a", 0)
    handled: list[int] = []
    acknowledged: list[int] = []

    async def handle(offset: int) -> None:
        handled.append(offset)
        if offset == 0:
            await wait_for(lambda: len(list(lanes.queued())) == 3, "the others", deadline=10, pause=0)
            await lanes.cover(2)

    async def acknowledge(tp: TP, offset: int) -> None:
        acknowledged.append(offset)

    lanes = Lanes[int](
        handle=handle,
        commit=lambda offsets: asyncio.sleep(0, True),
        first_at_or_after=lambda tp, offset: asyncio.sleep(0, None),
        crash=lambda failure: asyncio.sleep(0),
        acknowledged=acknowledge,
        in_flight=2,
    )
    for offset in range(4):
        lanes.submit(tp, offset, "k", offset, committed=0, size=10, tenant="t")
    await wait_for(lanes.idle, "idle lanes", deadline=10, pause=0)
    assert handled == [0, 3]
    assert acknowledged == [3, 4]
    assert lanes.committable() == {tp: 4}
    assert (lanes.stats.held, lanes.stats.held_bytes, lanes.stats.held_by) == (0, 0, Counter())


def lanes_of(started: list[int], **bounds: int) -> Lanes[int]:
    async def handle(offset: int) -> None:
        started.append(offset)

    return Lanes[int](
        handle=handle,
        commit=lambda offsets: asyncio.sleep(0, True),
        first_at_or_after=lambda tp, offset: asyncio.sleep(0, None),
        crash=lambda failure: asyncio.sleep(0),
        **bounds,
    )


def backlog(lanes: Lanes[int], count: int, *, left: int) -> None:
    """Deliver so many events of one tenant in one partition, of keys of their own; `left` more are to come."""
    for offset in range(count):
        lanes.submit(("a", 0), offset, f"k{offset}", offset, committed=0, tenant="t", left=left + count - 1 - offset)


async def passes(times: int = 5) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


async def test_events_of_a_backlog_start_when_the_rest_of_it_is_delivered() -> None:
    started: list[int] = []
    lanes = lanes_of(started)
    backlog(lanes, 20, left=1)
    lanes.submit(("a", 1), 0, "other", 100, committed=0, tenant="t")
    lanes.submit(("b", 0), 0, "other", 101, committed=0, tenant="u")
    await wait_for(lambda: {100, 101} <= set(started), "other partitions", deadline=10, pause=0)
    await passes()
    assert set(started) == {*range(FEW), 100, 101}
    lanes.submit(("a", 0), 20, "k20", 20, committed=0, tenant="t", left=0)
    await wait_for(lambda: set(range(21)) <= set(started), "the backlog", deadline=10, pause=0)


async def test_a_tenant_without_a_backlog_does_not_wait_for_that_of_another() -> None:
    started: list[int] = []
    lanes = lanes_of(started)
    backlog(lanes, 20, left=2)
    lanes.submit(("a", 0), 20, "other", 20, committed=0, tenant="u", left=1)
    await wait_for(lambda: 20 in started, "the other tenant", deadline=10, pause=0)
    assert 19 not in started


async def test_a_backlog_that_is_not_delivered_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memstream.streams.engine.lanes.GATHER_SECONDS", 0.01)
    started: list[int] = []
    lanes = lanes_of(started)
    backlog(lanes, 20, left=1)
    await wait_for(lambda: len(started) == 20, "the events", deadline=10)


async def test_what_waits_for_its_backlog_is_dropped_with_its_partition() -> None:
    started: list[int] = []
    lanes = lanes_of(started)
    backlog(lanes, 20, left=1)
    await passes()
    await lanes.drain(frozenset({("a", 0)}))
    assert lanes.stats.held == 0
    lanes.submit(("a", 0), FEW, "k16", FEW, committed=FEW, tenant="t")
    await wait_for(lanes.idle, "idle lanes", deadline=10, pause=0)
    assert sorted(started) == list(range(FEW + 1))


async def test_a_full_partition_waits_for_nothing() -> None:
    started: list[int] = []
    lanes = lanes_of(started, unacknowledged=20)
    backlog(lanes, 20, left=100)
    await wait_for(lambda: len(started) == 20, "the events", deadline=10, pause=0)
