"""Scripted stand-ins for aiokafka under Faust's classes, without a broker.

Each test of a fix runs the same script against Faust's own class (`stock`) and is expected to fail there. That shows
that the test can see the fault.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aiokafka import TopicPartition
from faust.types import TP, RecordMetadata

from memstream.streams.faust.app import AppSettings, StageApp, create_app

TOPIC = "memory.turns"
NOBODY = "kafka://127.0.0.1:1"  # nothing connects in a unit test


def stage_app(folder: Path, **settings: Any) -> StageApp:
    """Build an app without starting it. It records ends of the process in `app.exits`."""
    defaults: dict[str, Any] = {"partitions": 2, "crash_grace": 0, "stop_grace": 0}
    app = create_app(
        name="memory-test", broker=NOBODY, datadir=folder, settings=AppSettings(**{**defaults, **settings})
    )
    app.exits = []
    app.exit_process = app.exits.append
    return app


def record(offset: int, partition: int = 0, topic: str = TOPIC) -> SimpleNamespace:
    """A consumer record of aiokafka with the fields that Faust reads."""
    return SimpleNamespace(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp=0,
        timestamp_type=0,
        headers=(),
        key=b"k",
        value=b"v",
        checksum=None,
        serialized_key_size=1,
        serialized_value_size=1,
    )


@dataclass
class ScriptedState:
    """aiokafka's state of one assigned partition."""

    position: int = 0
    has_valid_position: bool = True
    highwater: int = 0


class ScriptedFetcher:
    """A fetcher with aiokafka's rules (`consumer/fetcher.py:1208`): returning records moves the position, and an
    empty set of partitions means all of them.
    """

    def __init__(self, log: Mapping[TP, list[Any]]) -> None:
        self.log = dict(log)
        self.states = {tp: ScriptedState(highwater=len(records)) for tp, records in self.log.items()}
        self._records = self.log
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked: list[frozenset[TP]] = []
        self.waiters: list[asyncio.Future[None]] = []
        self._fetch_waiters = self.waiters
        self._closed = False
        self._subscriptions = self

    def _create_fetch_waiter(self) -> asyncio.Future[None]:
        self.waiters.append(asyncio.get_running_loop().create_future())
        return self.waiters[-1]

    def wake(self) -> None:
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)

    def fetch_context(self) -> Any:
        return contextlib.nullcontext()

    async def fetched_records(self, partitions: Any, timeout: float = 0, max_records: int | None = None) -> Any:
        self.asked.append(frozenset(partitions))
        await self.gate.wait()
        drained = {}
        for tp, records in self.log.items():
            if partitions and tp not in partitions:
                continue
            rest = [r for r in records if r.offset >= self.states[tp].position]
            if rest:
                drained[tp] = rest
                self.states[tp].position = rest[-1].offset + 1
        return drained


class ScriptedConsumer:
    """aiokafka's consumer with all partitions of the log assigned."""

    def __init__(self, log: Mapping[TP, list[Any]]) -> None:
        self._fetcher = ScriptedFetcher(log)
        self._closed = False
        self._max_poll_records = None
        assignment = SimpleNamespace(active=True, tps=set(log), state_value=self._fetcher.states.__getitem__)
        self._subscription = SimpleNamespace(
            subscription=SimpleNamespace(assignment=assignment),
            reassignment_in_progress=False,
            fetch_context=contextlib.nullcontext,
        )
        self.committed: list[dict[Any, int]] = []
        self.paused: set[TopicPartition] = set()

    def assignment(self) -> set[TopicPartition]:
        return {TopicPartition(*tp) for tp in self._fetcher.log}

    def pause(self, *partitions: TopicPartition) -> None:
        assert all(isinstance(each, TopicPartition) for each in partitions)  # aiokafka looks
        self.paused.update(partitions)

    def seek(self, tp: TP, offset: int) -> None:
        self._fetcher.states[tp].position = offset

    def highwater(self, tp: TP) -> int:
        return self._fetcher.states[tp].highwater

    async def position(self, tp: TP) -> int:
        return self._fetcher.states[tp].position

    async def commit(self, offsets: Mapping[Any, Any]) -> None:
        self.committed.append({tp: meta.offset for tp, meta in offsets.items()})


def scripted(consumer: Any, log: Mapping[TP, list[Any]]) -> ScriptedConsumer:
    """Put a scripted aiokafka consumer under a Faust consumer, and call its thread's functions directly."""
    inner = ScriptedConsumer(log)

    async def call_thread(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = fun(*args, **kwargs)
        return await result if isinstance(result, Awaitable) else result

    consumer._thread._consumer = inner
    consumer._thread.call_thread = call_thread
    consumer._set_active_tps(set(log))
    consumer.resume_flow()
    return inner


@dataclass
class ScriptedCoordinator:
    """aiokafka's group coordinator with scripted answers. It records that it would join again."""

    answers: list[Any] = field(default_factory=list)
    group_id: str = "g"
    member_id: str = "m-1"
    rejoins: int = 0
    sent: list[str] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    """What waits for a caller of the consumer."""

    def __post_init__(self) -> None:
        self._closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def _send_req(self, request: Any) -> Any:
        self.sent.append(type(request).__name__)
        answer = self.answers.pop(0)
        return await answer() if callable(answer) else answer

    async def _do_rejoin_group(self, subscription: Any) -> bool:
        self.rejoins += 1
        return True

    async def _push_error_to_user(self, error: BaseException) -> None:
        self.errors.append(error)

    def reset_generation(self) -> None:
        self.member_id = ""
        self.rejoins += 1


class Sent(asyncio.Future[RecordMetadata]):
    """A record at the producer. The test decides its result."""

    def __init__(self, topic: str, key: bytes | None, value: bytes | None, partition: int) -> None:
        super().__init__()
        self.tp, self.key, self.value = TP(topic, partition), key, value

    def deliver(self, offset: int = 0) -> None:
        self.set_result(RecordMetadata(self.tp.topic, self.tp.partition, self.tp, offset))


class ScriptedProducer:
    """A producer that keeps what is to be sent, by our tables (`send`) and by Faust's (`send_soon`)."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    async def send(
        self, topic: str, key: bytes | None, value: bytes | None, partition: int, timestamp: float | None, headers: Any
    ) -> Sent:
        self.sent.append(Sent(topic, key, value, partition))
        return self.sent[-1]  # type: ignore[no-any-return]

    def send_soon(self, future: Any) -> None:
        self.sent.append(future)


class Lanes:
    """A `Drainable` that the test controls."""

    def __init__(self, *, busy: bool = False, on_drain: Callable[[], Awaitable[None]] | None = None) -> None:
        self.busy, self.on_drain = busy, on_drain
        self.drained: list[frozenset[tuple[str, int]]] = []
        self.without_room: set[tuple[str, int]] = set()
        self.done: dict[tuple[str, int], int] = {}
        self.closed = False
        self.finished = False

    def has_room(self, tp: tuple[str, int]) -> bool:
        return tp not in self.without_room

    def committable(self) -> dict[tuple[str, int], int]:
        return self.done

    def idle(self) -> bool:
        return not self.busy

    async def finish(self) -> None:
        self.finished = True

    async def drain(self, revoked: frozenset[tuple[str, int]]) -> None:
        self.drained.append(revoked)
        if self.on_drain is not None:
            await self.on_drain()

    async def close(self) -> None:
        self.closed = True


def event(app: Any, *, partition: int = 0, offset: int = 0, topic: str = TOPIC) -> Any:
    """An event with the parts of a message that tables read. Keep a reference: Faust holds it weakly."""

    class Event:
        message = SimpleNamespace(partition=partition, offset=offset, topic=topic, tp=TP(topic, partition))

    return Event()


async def spin(times: int = 20) -> None:
    """Let every task run that can run."""
    for _ in range(times):
        await asyncio.sleep(0)


def offsets(pairs: Iterable[tuple[TP, Any]]) -> list[int]:
    return [message.offset for _, message in pairs]
