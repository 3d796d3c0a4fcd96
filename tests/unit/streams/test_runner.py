"""The runner: records that do not arrive, an agent that fails, and the end of a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.errors import (
    InvalidTimestampError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NotLeaderForPartitionError,
    TopicAuthorizationFailedError,
)
from faust.exceptions import NotReady, ProducerSendError

from memstream.schemas.errors import DeploymentFault, Fatal, Poison, Transient
from memstream.schemas.outcomes import OutRecord
from memstream.streams.engine.applied import AppliedOutcomes
from memstream.streams.engine.codec import lane_key
from memstream.streams.engine.process_exit import BROKEN, DONE, UNREACHABLE, LeaseLost
from memstream.streams.engine.retry import BROKER, Calls, RetryPolicy
from memstream.streams.engine.steps import StepScheduler
from memstream.streams.faust.app import StageApp
from memstream.streams.faust.lane_items import record_of
from memstream.streams.faust.runner import StageRunner
from memstream.streams.faust.sender import Sender
from memstream.streams.faust.worker import run_worker
from memstream.streams.log.port import Record
from tests.support.polling import wait_for

RECORD = OutRecord(topic="memory.observations", key=b"k", value=b"v", headers=(("h", b"1"),), timestamp=1234)


def caused(cause: Exception) -> ProducerSendError:
    error = ProducerSendError("failed")
    error.__cause__ = cause
    return error


class Producer:
    """A producer that fails at once or later, as the test sets it."""

    def __init__(self, at_once: Exception | None = None, later: Exception | None = None) -> None:
        self.at_once, self.later = at_once, later
        self.sent: list[tuple[Any, ...]] = []
        self.futures: list[asyncio.Future[Any]] = []

    async def send(self, *record: Any) -> asyncio.Future[Any]:
        if self.at_once is not None:
            raise self.at_once
        self.sent.append(record)
        future = asyncio.get_running_loop().create_future()
        self.futures.append(future)
        if self.later is not None:
            future.set_exception(self.later)
        return future


def sender(producer: Producer, check_lease: Callable[[], None] = lambda: None) -> Sender:
    return Sender(cast(StageApp, SimpleNamespace(producer=producer, check_lease=check_lease)), Calls())


async def test_a_producer_that_does_not_run_is_transient() -> None:
    """Timers send while a worker stops. Such an error must not end the worker as broken."""
    with pytest.raises(Transient):
        await sender(Producer(at_once=NotReady("Producer service not yet started")))(RECORD)


async def test_a_record_is_sent_unchanged_and_durable_when_the_broker_has_it() -> None:
    producer = Producer()
    durable = await sender(producer)(RECORD)
    assert producer.sent == [("memory.observations", b"k", b"v", None, 1.234, [("h", b"1")])]
    await asyncio.sleep(0)
    assert not durable.done()
    producer.futures[0].set_result("here")
    assert await durable == "here"


ERRORS: list[tuple[Exception, type[Exception]]] = [
    (KafkaTimeoutError(), Transient),
    (NotLeaderForPartitionError(), Transient),
    (caused(KafkaTimeoutError()), Transient),
    (TopicAuthorizationFailedError(), DeploymentFault),
    (caused(InvalidTimestampError()), Fatal),  # the record's own time
    (MessageSizeTooLargeError(), Fatal),
    (caused(MessageSizeTooLargeError()), Fatal),
    (Poison("oversized", "from the log on disk"), Fatal),
    (Transient("broker", "from the log on disk"), Transient),
    (RuntimeError("odd"), RuntimeError),
]


@pytest.mark.parametrize(("error", "expected"), ERRORS)
async def test_a_record_that_did_not_arrive_is_tried_again_except_where_that_cannot_help(
    error: Exception, expected: type[Exception]
) -> None:
    with pytest.raises(expected) as at_once:
        await sender(Producer(at_once=error))(RECORD)
    with pytest.raises(expected):
        await (await sender(Producer(later=error))(RECORD))
    if expected is Fatal:
        assert "memory.observations" in str(at_once.value)


async def test_a_record_that_must_arrive_is_sent_again_behind_the_breaker() -> None:
    retried: list[str] = []
    calls = Calls(retry=RetryPolicy(first=0.001, cap=0.001), on_retry=retried.append)

    class Away(Producer):
        async def send(self, *record: Any) -> asyncio.Future[Any]:
            self.later = KafkaTimeoutError()
            return await super().send(*record)

    app = SimpleNamespace(producer=Away(), check_lease=lambda: None)
    sending = asyncio.create_task(Sender(cast(StageApp, app), calls).durable(RECORD))
    await wait_for(calls.away, "the breaker to open")
    assert "memory.observations" in calls.away()[BROKER]
    assert retried == [BROKER] * len(retried)
    sending.cancel()


async def test_without_the_lease_no_record_is_sent() -> None:
    def lost() -> None:
        raise LeaseLost("gone")

    producer = Producer()
    with pytest.raises(LeaseLost):
        await sender(producer, lost)(RECORD)
    assert producer.sent == []


async def test_cancelling_a_wait_does_not_cancel_the_record() -> None:
    producer = Producer()
    waiting = asyncio.create_task(sender(producer).durable(RECORD))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not producer.futures[0].cancelled()
    producer.futures[0].set_result(None)
    await asyncio.sleep(0)


@pytest.mark.parametrize("headers", [None, [], {}, [("a", b"1"), ("b", None)], {"a": b"1", "b": None}])
def test_a_message_becomes_a_raw_record(headers: Any) -> None:
    message = SimpleNamespace(
        topic="t", partition=1, offset=2, key=None, value=b"v", headers=headers, timestamp=1763632800.123
    )
    record = record_of(message)
    assert record.timestamp == 1763632800123
    assert record.headers == ((("a", b"1"), ("b", b"")) if headers else ())


async def test_an_agent_that_fails_ends_the_worker() -> None:
    """Faust would acknowledge the event and start the agent again, so the event would be lost."""
    crashes: list[BaseException] = []

    async def crash(reason: BaseException) -> None:
        crashes.append(reason)

    class Stream:
        def noack(self) -> Stream:
            return self

        async def events(self):  # type: ignore[no-untyped-def]
            raise RuntimeError("odd")
            yield

    runner = StageRunner.__new__(StageRunner)
    runner.app = cast(Any, SimpleNamespace(crash=crash))
    await runner._consume(Stream())
    assert [repr(reason) for reason in crashes] == ["RuntimeError('odd')"]


class App:
    """An app that starts, and ends as the test sets it."""

    def __init__(self, *, crash: BaseException | None = None, bad_stop: Exception | None = None) -> None:
        self.crash_reason = crash
        self.bad_stop = bad_stop
        self._crashed, self._stopped = asyncio.Event(), asyncio.Event()
        self.stopped = False

    async def start(self) -> None:
        if self.crash_reason is not None:
            self._crashed.set()

    async def stop(self) -> None:
        self.stopped = True
        if self.bad_stop is not None:
            raise self.bad_stop


def runners(*apps: App) -> list[StageRunner]:
    return [cast(StageRunner, SimpleNamespace(name="observer", app=app, prepare=lambda: None)) for app in apps]


async def test_a_worker_that_is_asked_to_stop_ends_with_0() -> None:
    stopping = asyncio.Event()
    app = App()
    asyncio.get_running_loop().call_soon(stopping.set)
    assert await run_worker(runners(app), stopping=stopping) == DONE
    assert app.stopped


@pytest.mark.parametrize(
    ("crash", "code"), [(RuntimeError("odd"), BROKEN), (Fatal("x"), BROKEN), (Transient("broker", "x"), UNREACHABLE)]
)
async def test_one_stage_that_crashes_ends_all_with_its_code(crash: Exception, code: int) -> None:
    well, ill = App(), App(crash=crash, bad_stop=RuntimeError("Cannot flush: Producer not Running"))
    async with asyncio.timeout(5):
        assert await run_worker(runners(well, ill), stopping=asyncio.Event()) == code
    assert well.stopped
    assert ill.stopped


async def test_a_stop_that_fails_is_not_a_clean_end() -> None:
    stopping = asyncio.Event()
    stopping.set()
    assert await run_worker(runners(App(bad_stop=RuntimeError("odd"))), stopping=stopping) == BROKEN


async def test_what_is_taken_in_is_not_decoded_before_its_lane_is_chosen() -> None:
    """Everything that grows with the text comes after the fair queue has chosen. An event is decoded once."""
    submitted: list[tuple[Any, ...]] = []
    decoded: list[Record] = []

    def submit(tp: Any, offset: int, key: str, item: Any, **rest: Any) -> None:
        submitted.append((key, rest["tenant"], item))

    class Stream:
        def noack(self) -> Stream:
            return self

        async def events(self):  # type: ignore[no-untyped-def]
            for offset, key in enumerate((b"acme/u/s", b"b%20c/u/s", None)):
                message = SimpleNamespace(
                    topic="memory.turns", partition=0, offset=offset, key=key, value=b"{", headers=(), timestamp=1.0
                )
                message.tp, message.generation_id, message.follows, message.left = None, 1, None, 0
                yield SimpleNamespace(message=message)

    def route(record: Record) -> Any:
        decoded.append(record)
        return "decoded"

    runner = StageRunner.__new__(StageRunner)
    runner.name = "observer"
    runner.steps = StepScheduler()
    runner.app = cast(
        Any, SimpleNamespace(consumer=SimpleNamespace(_committed_offset={}), consumer_generation_id=1, crash=None)
    )
    runner.metrics = cast(Any, SimpleNamespace(held=lambda *_: None))
    runner.handler = cast(Any, SimpleNamespace(lane=lane_key, route=route, applied=AppliedOutcomes(lambda *_: None)))
    items: list[Any] = []
    stats = SimpleNamespace(held=0, held_bytes=0)
    runner._lanes = cast(Any, SimpleNamespace(submit=submit, stats=stats, queued=lambda: iter(items)))
    await runner._take(Stream())
    assert [(key, tenant) for key, tenant, _ in submitted] == [("acme/u/s", "acme"), ("b%20c/u/s", "b%20c"), ("", "")]
    assert decoded == []
    items = [item for _, _, item in submitted]
    assert [routed for _, routed in runner._ahead()] == ["decoded"] * 3
    list(runner._ahead())
    assert len(decoded) == 3
