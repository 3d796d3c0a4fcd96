"""Queue that joins the calls of concurrent callers into batches. Each caller gets its own answer or its own error.

When no call is running, items are sent in the next iteration of the event loop. While a call is running, new items wait
until that call ends, a batch is full, or `linger` has passed, whichever comes first. Therefore an idle worker adds no
delay, and a busy worker fills its batches. See docs/design/batching.md.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, TypeVar

import structlog

from ...schemas.errors import Fatal, Poison, StageError, Transient

T = TypeVar("T")
A = TypeVar("A")
log = structlog.get_logger(__name__)

NO_KEYS: Final[frozenset[Hashable]] = frozenset()
SHARED_SECONDS: Final = 1.0
"""Seconds for which a queue counts as shared after items of two tenants were in it. A tenant's next request usually
follows within this time."""
LOOKED_AT: Final = 1_024
"""Maximum number of a tenant's waiting items that one batch passes over. The limit keeps a batch cheap when thousands
of items wait that cannot join it."""


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
    tenant_items: int | None = None
    """Maximum number of one tenant's items in a batch while several tenants use the queue and more items wait than one
    batch has. Other tenants wait for the end of a call, so a flooding tenant's calls must be short. None: no limit."""

    def __post_init__(self) -> None:
        if self.items < 1 or self.weight < 1 or self.linger < 0 or self.at_once < 1:
            raise ValueError("items, weight and at_once must be at least 1, linger at least 0")
        if self.tenant_items is not None and self.tenant_items < 1:
            raise ValueError("tenant_items must be at least 1")


@dataclass(eq=False, slots=True)
class Member(Generic[T, A]):
    """One item that waits for its batch or is in a running call."""

    item: T
    tenant: str
    kind: Hashable
    keys: frozenset[Hashable]
    size: int
    weight: int
    since: float
    answer: asyncio.Future[A] = field(repr=False)
    is_sent: bool = False


@dataclass(eq=False, slots=True)
class TenantLine(Generic[T, A]):
    """Waiting members of one tenant in arrival order, and the number of running calls that have its members."""

    waiting: deque[Member[T, A]] = field(default_factory=deque)
    running: int = 0
    cancelled: int = 0
    """Number of cancelled members that may still be in `waiting`."""
    lined_up: int = 0
    """Serial number of the moment since which the tenant waits with its present number of running calls."""


class Coalescer(Generic[T, A]):
    """A queue of items, and the calls that are running.

    `run` gets the items of one batch, all of one kind, and returns one answer for each item in the same order. When
    `run` raises `Poison` or `Fatal`, each half of the batch is tried separately, so that only the faulty member fails.
    `Transient` goes to all members. Because of the halving, `run` may get an item again after a call that failed.

    Tenants share the batches. The first place of a batch, and with it the kind, belongs to the tenant with the fewest
    running calls; among equals, to the tenant that has waited longest with this number of calls. The tenants with
    waiting items then take turns, one item each, until the batch is full. So whatever one tenant queues, an item of
    another tenant waits only for the running calls and at most one batch. Within a tenant, items are sent in arrival
    order. Items with a common key are sent in arrival order, even if they belong to different tenants.
    """

    def __init__(self, *, run: Callable[[Sequence[T]], Awaitable[Sequence[A]]], policy: CoalescePolicy) -> None:
        self._run = run
        self._policy = policy
        self._lines: dict[str, TenantLine[T, A]] = {}
        """Tenants with a waiting member or a running call."""
        self._lined_up = 0
        self._size = 0
        """Total size of the waiting members."""
        self._shared_until = 0.0
        self._order: dict[Hashable, deque[Member[T, A]]] = {}
        """Waiting and running members by key, in arrival order. Only the first member of a key may be sent."""
        self._calls: set[asyncio.Task[list[A | StageError]]] = set()
        self._soon: asyncio.Handle | None = None
        self._later: asyncio.TimerHandle | None = None

    async def ask(
        self,
        item: T,
        *,
        tenant: str,
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
        member = Member(item, tenant, kind, keys, size, weight, loop.time(), future)
        line = self._lines.get(tenant)
        if line is None:
            line = self._lines[tenant] = TenantLine()
        if not line.waiting:
            self._line_up(line)
        line.waiting.append(member)
        for key in keys:
            self._order.setdefault(key, deque()).append(member)
        self._size += size
        if len(self._lines) > 1:
            self._shared_until = member.since + SHARED_SECONDS
        self._look_soon(loop)
        try:
            return await member.answer
        except asyncio.CancelledError:
            if not member.is_sent:
                line.cancelled += 1
                self._look_soon(loop)
            raise

    async def drain(self) -> None:
        """Wait until no item is queued and no call is running."""
        while under_way := self._under_way():
            await asyncio.wait(under_way)

    def _under_way(self) -> list[asyncio.Future[Any]]:
        waiting = (each.answer for line in self._lines.values() for each in line.waiting)
        return [*(answer for answer in waiting if not answer.done()), *self._calls]

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
        while self._size and len(self._calls) < self._policy.at_once:
            due = self._due_at()
            if loop.time() < due:
                self._later = loop.call_at(due, self._look, loop)
                return
            batch = self._take(loop.time())
            if not batch:
                return  # the other items wait for a key; the end of the running call triggers the next check
            call = loop.create_task(self._outcomes(batch))
            self._calls.add(call)
            call.add_done_callback(partial(self._ended, loop, batch))

    def _due_at(self) -> float:
        """Return the time at which the next batch is due; 0 means now."""
        if not self._calls or self._size >= self._policy.items:
            return 0.0
        oldest = min(line.waiting[0].since for line in self._lines.values() if line.waiting)
        return oldest + self._policy.linger

    def _line_up(self, line: TenantLine[T, A]) -> None:
        self._lined_up += 1
        line.lined_up = self._lined_up

    def _take(self, now: float) -> list[Member[T, A]]:
        """Take the next batch. A member never overtakes an earlier member with the same key."""
        for tenant, line in list(self._lines.items()):
            self._drop_cancelled(line)
            self._forget_idle(tenant, line)
        is_shared = now < self._shared_until and self._size > self._policy.items
        draft: BatchDraft[T, A] = BatchDraft(self._policy, self._order, is_shared=is_shared)
        waiting = [(tenant, line) for tenant, line in self._lines.items() if line.waiting]
        waiting.sort(key=lambda each: (each[1].running, each[1].lined_up))
        turns = deque(TenantTurns(line.waiting) for _, line in waiting)
        in_turn = deque(turns)
        while in_turn and not draft.is_full():
            turn = in_turn.popleft()
            if draft.add_next(turn):
                in_turn.append(turn)
        self._size -= sum(turn.taken for turn in turns)
        for (tenant, line), turn in zip(waiting, turns, strict=True):
            turn.put_back()
            if turn.taken:
                line.running += 1
                self._line_up(line)
            self._forget_idle(tenant, line)
        return draft.members

    def _drop_cancelled(self, line: TenantLine[T, A]) -> None:
        """Drop the waiting members whose callers were cancelled, so that they block no key."""
        if not line.cancelled:
            return
        line.cancelled = 0
        for member in line.waiting:
            if member.answer.cancelled():
                self._size -= member.size
                self._free_keys(member)
        line.waiting = deque(member for member in line.waiting if not member.answer.cancelled())

    def _free_keys(self, member: Member[T, A]) -> None:
        for key in member.keys:
            members = self._order[key]
            members.remove(member)
            if not members:
                del self._order[key]

    def _forget_idle(self, tenant: str, line: TenantLine[T, A]) -> None:
        if not line.waiting and not line.running:
            del self._lines[tenant]

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
        for member in batch:
            self._free_keys(member)
        for tenant in {member.tenant for member in batch}:
            line = self._lines[tenant]
            line.running -= 1
            self._line_up(line)
            self._forget_idle(tenant, line)
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


class TenantTurns(Generic[T, A]):
    """The turns of one tenant in the making of a batch."""

    def __init__(self, waiting: deque[Member[T, A]]) -> None:
        self.waiting = waiting
        self.taken = 0
        """Total size of the tenant's members in the batch."""
        self.passed_over: list[Member[T, A]] = []

    def put_back(self) -> None:
        """Let the members that were passed over wait again, in their order."""
        self.waiting.extendleft(reversed(self.passed_over))


class BatchDraft(Generic[T, A]):
    """A batch in the making."""

    def __init__(
        self, policy: CoalescePolicy, order: Mapping[Hashable, Sequence[Member[T, A]]], *, is_shared: bool
    ) -> None:
        self.members: list[Member[T, A]] = []
        self._policy = policy
        self._of_tenant = policy.tenant_items if is_shared and policy.tenant_items is not None else policy.items
        self._order = order
        self._size = self._weight = 0

    def is_full(self) -> bool:
        return self._size >= self._policy.items

    def add_next(self, turn: TenantTurns[T, A]) -> bool:
        """Add the tenant's first member that fits. Return False when the tenant has no further turn."""
        while turn.waiting and turn.taken < self._of_tenant and len(turn.passed_over) < LOOKED_AT:
            member = turn.waiting.popleft()
            if self._fits(member, turn) and all(self._order[key][0] is member for key in member.keys):
                self._add(member, turn)
                return True
            turn.passed_over.append(member)
        return False

    def _fits(self, member: Member[T, A], turn: TenantTurns[T, A]) -> bool:
        return not self.members or (
            member.kind == self.members[0].kind
            and self._size + member.size <= self._policy.items
            and self._weight + member.weight <= self._policy.weight
            and (not turn.taken or turn.taken + member.size <= self._of_tenant)
        )

    def _add(self, member: Member[T, A], turn: TenantTurns[T, A]) -> None:
        self.members.append(member)
        self._size += member.size
        self._weight += member.weight
        member.is_sent = True
        turn.taken += member.size


def _own(error: StageError) -> StageError:
    """Copy the error for one caller, because each task adds its own traceback frames. All copies have the same cause,
    so they can be recognised as one failure."""
    mine = type(error).__new__(type(error), *error.args)
    mine.__dict__.update(error.__dict__)
    mine.__cause__ = error.__cause__ if error.__cause__ is not None else error
    return mine
