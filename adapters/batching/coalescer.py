"""Queue that joins the calls of concurrent callers into batches. Each caller gets its own answer or its own error.

When no call is running, items are sent in the next iteration of the event loop. While a call is running, new items wait
until that call ends, a batch is full, or `linger` has passed, whichever comes first. Therefore an idle worker adds no
delay, and a busy worker fills its batches. See docs/design/batching.md.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, TypeVar

import structlog

from ...schemas.errors import Fatal, Poison, StageError, Transient
from ..ports import FairShares

T = TypeVar("T")
A = TypeVar("A")
log = structlog.get_logger(__name__)

NO_KEYS: Final[frozenset[Hashable]] = frozenset()


@dataclass(frozen=True, slots=True)
class CoalescePolicy:
    """Limits that decide when a batch is sent."""

    items: int = 64
    """Maximum number of items (points, ids, texts) in a batch. A member with more items is sent alone."""
    weight: int = 8 * 1024 * 1024
    """Maximum weight (bytes, characters) of a batch. A heavier member is sent alone."""
    linger: float = 0.01
    """Maximum seconds that the first member of a batch waits while other calls are running."""
    at_once: int = 4
    """Maximum number of concurrent calls. With 1, `linger` has no effect."""

    def __post_init__(self) -> None:
        if self.items < 1 or self.weight < 1 or self.linger < 0 or self.at_once < 1:
            raise ValueError("items, weight and at_once must be at least 1, linger at least 0")


@dataclass(eq=False, slots=True)
class Member(Generic[T, A]):
    """One item that waits for its batch or is in a running call."""

    item: T
    kind: Hashable
    keys: frozenset[Hashable]
    size: int
    weight: int
    since: float
    answer: asyncio.Future[A] = field(repr=False)
    gone_out: bool = False


class Coalescer(Generic[T, A]):
    """A queue of items, and the calls that are running.

    `run` gets the items of one batch, all of one kind, and returns one answer for each item in the same order. When
    `run` raises `Poison` or `Fatal`, each half of the batch is tried separately, so that only the faulty member fails.
    `Transient` goes to all members. Because of the halving, `run` may get an item again after a call that failed.

    Items are sent in arrival order. With `shares`, the next batch belongs to the tenant with the fewest running calls.
    In this case, `kind` must be the tenant, and `keys` must be empty.
    """

    def __init__(
        self,
        *,
        run: Callable[[Sequence[T]], Awaitable[Sequence[A]]],
        policy: CoalescePolicy,
        shares: FairShares[Member[T, A]] | None = None,
    ) -> None:
        self._run = run
        self._policy = policy
        self._shares = shares
        self._waiting: deque[Member[T, A]] = deque()
        self._busy: set[Hashable] = set()
        self._calls: set[asyncio.Task[list[A | StageError]]] = set()
        self._soon: asyncio.Handle | None = None
        self._later: asyncio.TimerHandle | None = None

    async def ask(
        self,
        item: T,
        *,
        kind: Hashable = None,
        keys: frozenset[Hashable] = NO_KEYS,
        size: int = 1,
        weight: int = 0,
    ) -> A:
        """Return the answer for one item. Only items of one `kind` share a batch. Items with a common key in `keys`
        never run at the same time; they are sent in arrival order.

        When a caller is cancelled before its item is sent, the item is not sent.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[A] = loop.create_future()
        member = Member(item, kind, keys, size, weight, loop.time(), future)
        self._waiting.append(member)
        if self._shares is not None:
            assert isinstance(kind, str)
            assert not keys
            self._shares.push(kind, member)
        self._look_soon(loop)
        answer: A = await member.answer
        return answer

    async def drain(self) -> None:
        """Wait until no item is queued and no call is running."""
        while under_way := self._under_way():
            await asyncio.wait(under_way)

    def _under_way(self) -> list[asyncio.Future[Any]]:
        return [*(each.answer for each in self._waiting if not each.answer.done()), *self._calls]

    # ------------------------------------------------------------------------------------------------ scheduling
    def _look_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._soon is None:
            self._soon = loop.call_soon(self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send the batches that are due, and schedule the next check for the other items."""
        self._soon = None
        if self._later is not None:
            self._later.cancel()
            self._later = None
        while self._waiting and len(self._calls) < self._policy.at_once:
            if not self._due(loop.time()):
                self._later = loop.call_at(self._waiting[0].since + self._policy.linger, self._look, loop)
                return
            batch = self._take() if self._shares is None else self._take_turn(self._shares)
            if not batch:
                return  # the other items wait for a key; the end of the running call triggers the next check
            self._busy.update(*(member.keys for member in batch))
            call = loop.create_task(self._outcomes(batch))
            self._calls.add(call)
            call.add_done_callback(partial(self._ended, loop, batch))

    def _due(self, now: float) -> bool:
        if not self._calls or now >= self._waiting[0].since + self._policy.linger:
            return True
        return sum(member.size for member in self._waiting) >= self._policy.items

    def _take(self) -> list[Member[T, A]]:
        """Take the next batch: the first member that may be sent, and the members that fit with it. A member never
        overtakes an earlier member with the same key."""
        batch: list[Member[T, A]] = []
        rest: deque[Member[T, A]] = deque()
        closed = set(self._busy)
        size = weight = 0
        for member in self._waiting:
            if member.answer.cancelled():
                continue
            fits = not batch or (
                member.kind == batch[0].kind
                and size + member.size <= self._policy.items
                and weight + member.weight <= self._policy.weight
            )
            if fits and closed.isdisjoint(member.keys):
                batch.append(member)
                size, weight = size + member.size, weight + member.weight
            else:
                rest.append(member)
            closed |= member.keys
        self._waiting = rest
        return batch

    def _take_turn(self, shares: FairShares[Member[T, A]]) -> list[Member[T, A]]:
        """Take the next batch, for the tenant that `shares` selects."""
        batch: list[Member[T, A]] = []
        while not batch and (turn := shares.pop()) is not None:
            tenant, first = turn
            size, weight = first.size, first.weight

            def fits(member: Member[T, A]) -> bool:
                nonlocal size, weight
                if member.answer.cancelled():
                    return True
                more = size + member.size, weight + member.weight
                if more[0] > self._policy.items or more[1] > self._policy.weight:
                    return False
                size, weight = more
                return True

            taken = [first, *shares.join(tenant, fits)]
            for member in taken:
                member.gone_out = True
            batch = [member for member in taken if not member.answer.cancelled()]
            if not batch:
                shares.release(tenant)
        self._waiting = deque(member for member in self._waiting if not member.gone_out)
        return batch

    # ------------------------------------------------------------------------------------------------ calls
    async def _outcomes(self, batch: Sequence[Member[T, A]]) -> list[A | StageError]:
        try:
            answers = await self._run([member.item for member in batch])
        except Transient as error:
            return [error] * len(batch)
        except (Poison, Fatal) as error:
            if len(batch) == 1:
                return [error]
            log.info("batch_halved", members=len(batch), why=str(error))
            middle = len(batch) // 2
            return [*await self._outcomes(batch[:middle]), *await self._outcomes(batch[middle:])]
        if len(answers) != len(batch):
            raise Fatal(f"{len(answers)} answers for a batch of {len(batch)}")
        return list(answers)

    def _ended(
        self, loop: asyncio.AbstractEventLoop, batch: Sequence[Member[T, A]], call: asyncio.Task[list[A | StageError]]
    ) -> None:
        self._calls.discard(call)
        self._busy.difference_update(*(member.keys for member in batch))
        if self._shares is not None:
            self._shares.release(str(batch[0].kind))
        for place, member in enumerate(batch):
            if member.answer.done():
                continue  # its caller was cancelled
            if call.cancelled():
                member.answer.cancel()
            elif (unknown := call.exception()) is not None:
                member.answer.set_exception(unknown)
            elif isinstance(outcome := call.result()[place], StageError):
                member.answer.set_exception(_own(outcome))
            else:
                member.answer.set_result(outcome)
        self._look_soon(loop)  # after the callers have continued: their next items may join the batch


def _own(error: StageError) -> StageError:
    """Copy the error for one caller, because each task adds its own traceback frames. All copies have the same cause,
    so they can be recognised as one failure."""
    mine = type(error).__new__(type(error), *error.args)
    mine.__dict__.update(error.__dict__)
    mine.__cause__ = error.__cause__ if error.__cause__ is not None else error
    return mine
