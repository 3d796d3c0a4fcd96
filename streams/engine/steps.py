"""Scheduling of steps: a step is the synchronous work of a handler between two waits, on the event loop.

Python's event loop runs ready tasks in the order in which they became ready. If sixty events of one tenant have steps
of some milliseconds each, every step of another tenant's event waits for sixty such steps. `StepScheduler` chooses the
order instead:

- The step of the tenant that has used the least processor time goes first (processor_shares.py). Within a tenant, the
  oldest event goes first, so that events finish one after the other.
- A ready step waits only while other steps run: each round of the loop has a time budget (`ROUND_SECONDS`). Short steps
  share a round and do not wait.
- Each step's processor time is measured and charged to its tenant.
- While a step runs, `running` names its record, so that the watchdog (hangs.py) can report a step that never ends.
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
"""Processor time in seconds for the steps of one round of the loop. A longer step is the only step of its round."""
SHORTEST: Final = 5e-5
"""Minimum estimate of a step's time, in seconds, when a round is planned."""


Phase = Literal["decode", "decide", "table", "store", "publish"]
Measured = Callable[[str, Phase, float], None]
"""Callback that receives stage, phase and seconds of each step, or of each part of a step that is in one phase."""


@dataclass(slots=True)
class EventStep:
    """A running step: its stage, its record, and the phase of the handling."""

    stage: str
    position: Position
    phase: Phase = "decode"
    note: bytes = b""
    """Stage and record in the form that is written to the note file for the next process (hangs.py)."""


class WaitingSteps(Generic[T]):
    """Ready steps that wait to run. Pure: their order depends only on the processor shares."""

    def __init__(self, shares: ProcessorShares) -> None:
        self._shares = shares
        self._waiting: dict[str, list[tuple[int, int, T]]] = {}
        """Heaps by tenant, ordered by age of the event and arrival of the step."""
        self._arrivals = count()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def push(self, tenant: str, age: int, step: T) -> None:
        """Add a step of an event. `age`: the event's serial number; the step with the lowest number goes first."""
        heappush(self._waiting.setdefault(tenant, []), (age, next(self._arrivals), step))

    def pop(self) -> T:
        """Return the next step: the oldest step of the tenant with the smallest virtual time."""
        tenant = min(self._waiting, key=self._shares.time_of)
        waiting = self._waiting[tenant]
        _, _, step = heappop(waiting)
        if not waiting:
            del self._waiting[tenant]
        return step


class StepScheduler:
    """The scheduler of all stages' steps in one process (see the module docstring)."""

    def __init__(self, *, clock: Callable[[], float] = time.thread_time) -> None:
        self.shares = ProcessorShares()
        self.running: EventStep | None = None
        self._clock = clock
        self._waiting: WaitingSteps[asyncio.Future[None]] = WaitingSteps(self.shares)
        self._spent = 0.0
        """Processor time that this round's steps have used."""
        self._usual = SHORTEST
        """Moving mean of the time of steps that had to wait."""
        self._round: asyncio.Handle | None = None
        self._events = count()
        self._since = 0.0
        """Start of the part of the running step that is not measured yet."""
        self.measured: Measured = lambda stage, phase, seconds: None
        self.changed: Callable[[EventStep | None], None] = lambda step: None
        """Called when a step begins; when it ends, called with the enclosing step or None."""

    async def run(
        self,
        work: Coroutine[Any, Any, T],
        *,
        tenant: str,
        step: EventStep,
        size: int = 0,
    ) -> T:
        """Await `work` and return its result. `size`: bytes of the event's record."""
        self.shares.charge(tenant, size * BYTE_SECONDS)
        return await self._stepped(work, tenant, step)

    def enter(self, phase: Phase) -> None:
        """Record that the running step enters another phase of the handling."""
        if (step := self.running) is not None and step.phase != phase:
            self._measure(step)
            step.phase = phase

    @contextmanager
    def within(self, step: EventStep) -> Iterator[None]:
        """Attribute the work of the block to `step`. The block may be within another step, or outside any step."""
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
        """Measure the time since the step began, or since its last measurement."""
        now = self._clock()
        self.measured(step.stage, step.phase, max(0.0, now - self._since))
        self._since = now

    @coroutine
    def _stepped(self, work: Coroutine[Any, Any, T], tenant: str, step: EventStep) -> Generator[Any, Any, T]:
        """Drive a coroutine step by step, as a task does."""
        age = next(self._events)
        value: Any = None
        error: BaseException | None = None
        try:
            while True:
                waited = False
                while error is None and (self._spent >= ROUND_SECONDS or (self._waiting and not waited)):
                    waited = True  # the step waits again if earlier steps of its round took longer than estimated
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
                except BaseException as thrown:  # noqa: BLE001 - the event handles every exception
                    error = thrown
        finally:
            work.close()  # no effect after a normal end; needed when the loop dropped the event's task

    def _begins(self, step: EventStep | None) -> None:
        self.running = step
        self.changed(step)

    def _turn(self, tenant: str, age: int) -> Generator[Any, Any, None]:
        """Wait until the step may run."""
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
        """Start the next steps, as many as fit into a round."""
        self._round = None
        self._spent = 0.0
        planned = 0.0
        while self._waiting and planned < ROUND_SECONDS:
            turn = self._waiting.pop()
            if not turn.done():  # a cancelled task's future is done
                turn.set_result(None)
                planned += max(self._usual, SHORTEST)
        if self._waiting:
            self._next_round()
