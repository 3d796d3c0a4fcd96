"""What a worker holds of one assignment: by partition the order of offsets, the bounds and what may be committed, and
by key the events that have not started.

An event arrives, is admitted, runs, is done, and leaves when all events before it are done. The module is pure.

- At most `events` events are admitted and have not left. So after a crash at most so many come again.
- A window is full from `events` events or `size_limit` bytes on, and again open at three quarters of both. A full
  window takes what is delivered nevertheless: the consumer had it in hand. It asks for no more of that partition.
- Before a window is full of bytes, records are set aside (set_aside.py).
- A done event keeps its offset alone: neither its record nor its decoded form.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from ...schemas.errors import Fatal

if TYPE_CHECKING:
    from asyncio import TimerHandle

TP = tuple[str, int]
T = TypeVar("T")
_OPEN_AT = 0.75
_READ_AGAIN_AT = 0.5
"""Share of the bytes below which records that were set aside are read again, until `_OPEN_AT` of them are held."""


def beyond_the_end(tp: TP, committed: int) -> str:
    """Build the message for a group whose committed offset lies beyond the end of the log."""
    return (
        f"{tp[0]}[{tp[1]}]: the committed offset {committed} lies beyond the end of the log: the topic was made anew "
        "or cut, or the group's offsets are of another cluster. Nothing was read. If the log is right, reset the "
        "group's offsets on this topic to the earliest (kafka-consumer-groups --reset-offsets --to-earliest) and "
        "start again"
    )


class BeyondTheEnd(Fatal):
    """A committed offset lies beyond the end of the log (see `beyond_the_end`)."""


class LostDelivery(RuntimeError):
    """The consumer skipped an offset that the log has. To go on would commit past it."""


@dataclass(eq=False, slots=True)
class Slot(Generic[T]):
    """One event. `item` belongs to the runner, and is None once the event is done or dropped. `size` is in bytes.

    `follows`: the consumer knows that no record lies from this offset up to the event's own. None: it knows nothing.
    """

    window: Window[T]
    offset: int
    key: str
    tenant: str
    item: T | None
    size: int
    follows: int | None = None
    done: bool = False
    started: bool = False
    aside: bool = False
    """Its record was set aside: `size` is the bytes that remain, and it cannot start."""
    kept: bool = False
    """Its record was read again because its tenant had no other event to start. It is not set aside again."""

    def lane_of(self, epoch: Epoch[T]) -> Lane[T]:
        """Return the lane of an event that waits."""
        return epoch.lanes[self.window.tp[1], self.key]

    @property
    def is_needed(self) -> bool:
        """Whether a stop handles it: one that lies behind it in its partition began."""
        return self.offset < self.window.begun and not self.aside


@dataclass(eq=False, slots=True)
class Window(Generic[T]):
    """The events of one partition in one assignment. `began` is the offset at which its consumption began."""

    tp: TP
    events: int
    size_limit: int
    began: int
    arrivals: deque[Slot[T]] = field(default_factory=deque)
    """Delivered and not admitted: behind a hole that is being checked, or beyond the bound of events."""
    pending: deque[Slot[T]] = field(default_factory=deque)
    """Admitted, in order of offsets; the first one is not done."""
    size: int = 0
    """Bytes of all events that are held and not done."""
    sizes: Counter[str] = field(default_factory=Counter)
    """The same by tenant; no tenant without a byte."""
    aside: Counter[str] = field(default_factory=Counter)
    """Events that are set aside by tenant; no tenant without one."""
    reading_again: bool = False
    """Records that were set aside are being read again."""
    highest: int | None = None
    """The greatest offset admitted."""
    begun: int = -1
    """The greatest offset whose handling began."""
    next_offset: int | None = None
    """The offset after the last of the contiguous events that are done. It is safe to commit."""
    gathering: TimerHandle | None = None
    """Ends the wait for events that are about to be delivered. None: nothing waits for them."""
    gathered: list[Lane[T]] = field(default_factory=list)
    """Lanes that wait so."""
    checking: bool = False
    """The log is being asked about a hole before the first arrival."""
    full: bool = False

    @property
    def expected(self) -> int:
        """The offset that comes next if the log has no hole."""
        return self.began if self.highest is None else self.highest + 1

    def end_gathering(self) -> list[Lane[T]]:
        """Wait no longer for events that are about to be delivered. Return the lanes that waited."""
        if self.gathering is not None:
            self.gathering.cancel()
            self.gathering = None
        lanes, self.gathered = self.gathered, []
        return lanes

    def arrive(self, slot: Slot[T]) -> None:
        """Take a delivered event."""
        self.arrivals.append(slot)
        self._weigh(slot, slot.size)

    def fill(self) -> None:
        """Note whether a bound is reached."""
        if len(self.pending) + len(self.arrivals) >= self.events or self.size >= self.size_limit:
            self.full = True

    def has_place(self) -> bool:
        """Whether one more event may be admitted."""
        return len(self.pending) < self.events

    def admit(self) -> Slot[T] | None:
        """Admit the first arrival; None for one that was admitted before, which is dropped."""
        slot = self.arrivals.popleft()
        if self.highest is not None and slot.offset <= self.highest:
            self.drop(slot)
            return None
        self.highest = slot.offset
        self.pending.append(slot)
        return slot

    def complete(self, slot: Slot[T]) -> bool:
        """Note that an event is done. Return whether the offset that is safe to commit has moved."""
        slot.done = True
        self.drop(slot)
        moved = False
        while self.pending and self.pending[0].done:
            self.next_offset = self.pending.popleft().offset + 1
            moved = True
        return moved

    def reopen(self) -> bool:
        """Open a full window that has room again. Return whether it was opened now."""
        held = len(self.pending) + len(self.arrivals)
        # While records are set aside, those that arrive may be, so that little room suffices.
        has_bytes = self.size < self.size_limit if self.aside else self.size <= _OPEN_AT * self.size_limit
        if self.full and held <= _OPEN_AT * self.events and has_bytes:
            self.full = False
            return True
        return False

    def drop(self, slot: Slot[T]) -> None:
        """Forget what an event holds."""
        self._weigh(slot, -slot.size)
        if slot.aside:
            self._count_aside(slot, -1)
        slot.item, slot.size = None, 0

    # ------------------------------------------------------------------------------------------------ set aside
    def set_aside(self, slot: Slot[T], left: int) -> None:
        """Note that of an event's record only so many bytes are held."""
        self._resize(slot, left)
        self._count_aside(slot, 1)

    def wants_records(self) -> bool:
        """Whether records that were set aside are to be read again now."""
        return self._admitted() <= _READ_AGAIN_AT * self.size_limit

    def takes_records(self) -> bool:
        """Whether one more record that was set aside may be held."""
        return self._admitted() <= _OPEN_AT * self.size_limit

    def restore(self, slot: Slot[T], size: int) -> None:
        """Note that an event has its record again."""
        self._count_aside(slot, -1)
        self._resize(slot, size)

    def _admitted(self) -> int:
        """Return the bytes of the admitted events: arrivals wait for these to leave."""
        return self.size - sum(slot.size for slot in self.arrivals)

    def _resize(self, slot: Slot[T], size: int) -> None:
        self._weigh(slot, size - slot.size)
        slot.size = size

    def _weigh(self, slot: Slot[T], size: int) -> None:
        self.size += size
        self.sizes[slot.tenant] += size
        if not self.sizes[slot.tenant]:
            del self.sizes[slot.tenant]

    def _count_aside(self, slot: Slot[T], count: int) -> None:
        slot.aside = count > 0
        self.aside[slot.tenant] += count
        if not self.aside[slot.tenant]:
            del self.aside[slot.tenant]


@dataclass(eq=False, slots=True)
class Lane(Generic[T]):
    """The events of one key that have not started, in order. `busy`: the one before them runs."""

    place: tuple[int, str]
    tenant: str
    slots: deque[Slot[T]] = field(default_factory=deque)
    busy: bool = False


@dataclass(eq=False, slots=True)
class Epoch(Generic[T]):
    """The state of one assignment of partitions."""

    windows: dict[TP, Window[T]] = field(default_factory=dict)
    lanes: dict[tuple[int, str], Lane[T]] = field(default_factory=dict)
    broken: bool = False
    """An event failed. No further event is started or committed."""


@dataclass(slots=True)
class LaneStats:
    """Counts of events since the start; `running`, `held` and `held_bytes` are those of now. An event is held from its
    delivery until it is done."""

    done: int = 0
    dropped: int = 0
    redelivered: int = 0
    running: int = 0
    held: int = 0
    held_bytes: int = 0
    held_by: Counter[str] = field(default_factory=Counter)
    """By tenant; no tenant without an event."""
    most_running: int = 0

    def take(self, tenant: str, size: int) -> None:
        """Count an event that is held from now on."""
        self.held += 1
        self.held_bytes += size
        self.held_by[tenant] += 1

    def resize(self, by: int) -> None:
        """Count bytes of an event's record that are held again, or, below 0, no longer."""
        self.held_bytes += by

    def let_go(self, tenant: str, size: int) -> None:
        """Count an event that is held no longer."""
        self.held -= 1
        self.held_bytes -= size
        self.held_by[tenant] -= 1
        if not self.held_by[tenant]:
            del self.held_by[tenant]
