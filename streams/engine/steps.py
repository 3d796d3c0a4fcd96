"""The steps of events: the synchronous work of a handler between two waits, on the event loop.

Python's event loop runs what is ready in the order in which it became ready. So sixty events of one tenant, each with
steps of some milliseconds, hold up every step of another tenant's event by all of theirs. `StepScheduler` chooses
instead:

- The step of the tenant that has used least of the processor goes first (processor_shares.py). Within a tenant the
  event that began first does, so that events are done one after the other.
- A step that is ready waits only while others run: the loop has a budget for each of its rounds (`ROUND_SECONDS`).
  Short steps share a round and do not wait.
- Each step's processor time is charged to its tenant, and measured.
- While a step runs, `running` says of which record it is: a step that never ends is noticed from outside the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from types import coroutine
from typing import Any, Final, Generic, Literal, TypeVar

from ..log.port import Position
from .processor_shares import BYTE_SECONDS, ProcessorShares

T = TypeVar("T")
ROUND_SECONDS: Final = 0.001
"""Processor time of the steps of one round of the loop. One step may take longer; then it is the round's only one."""
SHORTEST: Final = 5e-5
"""Seconds that a step is thought to take at least, when a round is planned."""


Phase = Literal["decode", "decide", "table", "store", "publish"]
Measured = Callable[[str, Phase, float], None]
"""Called with stage, phase and seconds of each step, or of its part in a phase."""


@dataclass(slots=True)
class EventStep:
    """The step that runs: of which stage and record, and in which phase of its handling."""

    stage: str
    position: Position
    phase: Phase = "decode"
    note: bytes = b""
    """Stage and record as they are noted for the process after this one (hangs.py)."""


class WaitingSteps(Generic[T]):
    """Steps that are ready and wait. Pure: the order depends on the shares alone."""

    def __init__(self, shares: ProcessorShares) -> None:
        self._shares = shares
        self._waiting: dict[str, list[tuple[int, int, T]]] = {}
        """By tenant: age of the event, and order of arrival."""
        self._arrivals = count()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def push(self, tenant: str, age: int, step: T) -> None:
        """Let a step of an event wait; `age` orders the events of a tenant, the oldest first."""
        heappush(self._waiting.setdefault(tenant, []), (age, next(self._arrivals), step))

    def pop(self) -> T:
        """Return the next step: the oldest one of the tenant with the least virtual time."""
        tenant = min(self._waiting, key=self._shares.time_of)
        waiting = self._waiting[tenant]
        _, _, step = heappop(waiting)
        if not waiting:
            del self._waiting[tenant]
        return step


class StepScheduler:
    """The steps of all stages of one process (see the module)."""

    def __init__(self, *, clock: Callable[[], float] = time.thread_time) -> None:
        self.shares = ProcessorShares()
        self.running: EventStep | None = None
        self._clock = clock
        self._waiting: WaitingSteps[asyncio.Future[None]] = WaitingSteps(self.shares)
        self._spent = 0.0
        """Processor time of this round's steps."""
        self._usual = SHORTEST
        """Moving mean of a step that had to wait."""
        self._round: asyncio.Handle | None = None
        self._events = count()
        self._since = 0.0
        """When the part of the running step began that is not measured yet."""
        self.measured: Measured = lambda stage, phase, seconds: None
        self.changed: Callable[[EventStep | None], None] = lambda step: None
        """Called when a step begins, and with None or the step around it when it ends."""

    async def run(
        self,
        work: Coroutine[Any, Any, T],
        *,
        tenant: str,
        step: EventStep,
        size: int = 0,
    ) -> T:
        """Await `work`, whose record has `size` bytes, and return its result."""
        self.shares.charge(tenant, size * BYTE_SECONDS)
        return await self._stepped(work, tenant, step)

    def enter(self, phase: Phase) -> None:
        """Note that the event whose step runs goes on to another phase."""
        if (step := self.running) is not None and step.phase != phase:
            self._measure(step)
            step.phase = phase

    @contextmanager
    def within(self, step: EventStep) -> Iterator[None]:
        """Surround work on another record within a step, or work that is not an event's."""
        before = self.running
        if before is not None:
            self._measure(before)
        self._begins(step)
        self._since = self._clock()
        try:
            yield
        finally:
            self._measure(step)
            self._begins(before)

    def _measure(self, step: EventStep) -> None:
        """Measure the time since the step began, or since it was measured last."""
        now = self._clock()
        self.measured(step.stage, step.phase, max(0.0, now - self._since))
        self._since = now

    @coroutine
    def _stepped(self, work: Coroutine[Any, Any, T], tenant: str, step: EventStep) -> Generator[Any, Any, T]:
        """Drive a coroutine as a task does, step by step."""
        age = next(self._events)
        value: Any = None
        error: BaseException | None = None
        try:
            while True:
                waited = False
                while error is None and (self._spent >= ROUND_SECONDS or (self._waiting and not waited)):
                    waited = True  # again where the steps before it in its round took longer than was thought
                    try:
                        yield from self._turn(tenant, age)
                    except asyncio.CancelledError as cancelled:
                        error = cancelled
                self.shares.serve(tenant)
                began = self._since = self._clock()
                self._begins(step)
                try:
                    awaited = work.send(value) if error is None else work.throw(error)
                except StopIteration as end:
                    return end.value  # type: ignore[no-any-return]
                finally:
                    self._measure(step)
                    self._begins(None)
                    self._ran(tenant, max(0.0, self._since - began), waited=waited)
                value, error = None, None
                try:
                    value = yield awaited
                except GeneratorExit:
                    raise
                except BaseException as thrown:  # noqa: BLE001 - whatever it is, the event handles it
                    error = thrown
        finally:
            work.close()  # it has ended, but for an event whose task was thrown away with the loop

    def _begins(self, step: EventStep | None) -> None:
        self.running = step
        self.changed(step)

    def _turn(self, tenant: str, age: int) -> Generator[Any, Any, None]:
        """Wait until it is the step's turn."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.push(tenant, age, turn)
        self._next_round()
        yield from turn

    def _ran(self, tenant: str, took: float, *, waited: bool) -> None:
        self.shares.charge(tenant, took)
        self._spent += took
        if waited:
            self._usual += 0.1 * (took - self._usual)
        self._next_round()

    def _next_round(self) -> None:
        if self._round is None:
            self._round = asyncio.get_running_loop().call_soon(self._begin_round)

    def _begin_round(self) -> None:
        """Let the next steps run, as many as a round has time for."""
        self._round = None
        self._spent = 0.0
        planned = 0.0
        while self._waiting and planned < ROUND_SECONDS:
            turn = self._waiting.pop()
            if not turn.done():  # its task was cancelled
                turn.set_result(None)
                planned += max(self._usual, SHORTEST)
        if self._waiting:
            self._next_round()
