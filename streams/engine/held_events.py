"""Events that a worker holds in one assignment of partitions. The module is pure.

A window contains the delivered events of one partition in offset order. A lane contains the waiting events of one key.
An event arrives, is admitted, starts, and is done. It leaves its window when all events before it are done, too.

- A window has at most `events` admitted events. A crash redelivers at most this number.
- A window is full at `events` events or `size_limit` bytes. It opens again at three quarters of both limits. A full
  window still accepts events that the consumer has already fetched, but the consumer fetches no more of the partition.
- A window at its byte limit drops records of waiting events, which are read again later (set_aside.py).
- A done event keeps only its offset. Its record and its decoded form are dropped.
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
"""Share of the byte limit at which the rereading of dropped records begins. The rereading ends at `_OPEN_AT`."""


def beyond_the_end(tp: TP, committed: int) -> str:
    """Build the error message for a committed offset beyond the end of the log."""
    return (
        f"{tp[0]}[{tp[1]}]: the committed offset {committed} lies beyond the end of the log: the topic was created "
        "again or cut, or the group's offsets are of another cluster. Nothing was read. If the log is right, reset the "
        "group's offsets on this topic to the earliest (kafka-consumer-groups --reset-offsets --to-earliest) and "
        "start again"
    )


class BeyondTheEnd(Fatal):
    """A committed offset lies beyond the end of the log (see `beyond_the_end`)."""


class LostDelivery(RuntimeError):
    """The consumer skipped a record of the log, or the log no longer has a record that must be read again.

    Continuing would commit past the record.
    """


@dataclass(eq=False, slots=True)
class Slot(Generic[T]):
    """One event. `item`: the runner's object, None when the event is done or dropped. `size`: bytes of the event.

    `follows`: the consumer has seen that no record exists from this offset up to `offset`. None: nothing is known about
    the offsets before the event.
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
    """True while the event's record is set aside. `size` then counts the remaining bytes. The event cannot start."""
    kept: bool = False
    """True after the record was read again because the tenant had no other event to start. The record is then not set
    aside again."""

    def lane_of(self, epoch: Epoch[T]) -> Lane[T]:
        """Return the lane of a waiting event."""
        return epoch.lanes[self.window.tp[1], self.key]

    @property
    def is_needed(self) -> bool:
        """True when a later event of the partition has begun: a stop still handles this event before it commits."""
        return self.offset < self.window.begun and not self.aside


@dataclass(eq=False, slots=True)
class Window(Generic[T]):
    """The events of one partition in one assignment. `began`: the offset at which the partition's consumption began."""

    tp: TP
    events: int
    size_limit: int
    began: int
    arrivals: deque[Slot[T]] = field(default_factory=deque)
    """Delivered events that are not admitted: the hole before them is being checked, or the window has no place."""
    pending: deque[Slot[T]] = field(default_factory=deque)
    """Admitted events in offset order. The first event is not done."""
    size: int = 0
    """Bytes of all held events that are not done."""
    sizes: Counter[str] = field(default_factory=Counter)
    """The bytes of `size` by tenant. Tenants without bytes are left out."""
    aside: Counter[str] = field(default_factory=Counter)
    """Number of events whose record is set aside, by tenant. Tenants without such events are left out."""
    reading_again: bool = False
    """True while dropped records are read again."""
    highest: int | None = None
    """The highest admitted offset."""
    begun: int = -1
    """The highest offset whose handling began."""
    next_offset: int | None = None
    """The offset that is safe to commit: all earlier events are done. None before the first done event."""
    gathering: TimerHandle | None = None
    """The timer that ends the wait for the rest of a delivery. None when no delivery is incomplete."""
    gathered: list[Lane[T]] = field(default_factory=list)
    """Lanes that wait for the rest of a delivery."""
    checking: bool = False
    """True while the log is asked whether the hole before the first arrival contains records."""
    full: bool = False

    @property
    def expected(self) -> int:
        """The offset of the next event if the log has no hole."""
        return self.began if self.highest is None else self.highest + 1

    def end_gathering(self) -> list[Lane[T]]:
        """End the wait for the rest of a delivery. Return the lanes that waited."""
        if self.gathering is not None:
            self.gathering.cancel()
            self.gathering = None
        lanes, self.gathered = self.gathered, []
        return lanes

    def arrive(self, slot: Slot[T]) -> None:
        """Add a delivered event."""
        self.arrivals.append(slot)
        self._weigh(slot, slot.size)

    def fill(self) -> None:
        """Mark the window as full when a limit is reached."""
        if len(self.pending) + len(self.arrivals) >= self.events or self.size >= self.size_limit:
            self.full = True

    def has_place(self) -> bool:
        """Return whether one more event may be admitted."""
        return len(self.pending) < self.events

    def admit(self) -> Slot[T] | None:
        """Admit the first arrival and return it. If it is a redelivered event, drop it and return None."""
        slot = self.arrivals.popleft()
        if self.highest is not None and slot.offset <= self.highest:
            self.drop(slot)
            return None
        self.highest = slot.offset
        self.pending.append(slot)
        return slot

    def complete(self, slot: Slot[T]) -> bool:
        """Mark an event as done. Return whether the offset that is safe to commit has moved."""
        slot.done = True
        self.drop(slot)
        moved = False
        while self.pending and self.pending[0].done:
            self.next_offset = self.pending.popleft().offset + 1
            moved = True
        return moved

    def reopen(self) -> bool:
        """Open a full window that has room again. Return whether this call opened it."""
        held = len(self.pending) + len(self.arrivals)
        # While records are set aside, arriving records can be set aside, too, so any free byte is enough.
        has_bytes = self.size < self.size_limit if self.aside else self.size <= _OPEN_AT * self.size_limit
        if self.full and held <= _OPEN_AT * self.events and has_bytes:
            self.full = False
            return True
        return False

    def drop(self, slot: Slot[T]) -> None:
        """Remove an event's item, and subtract the event's bytes from the window's bytes."""
        self._weigh(slot, -slot.size)
        if slot.aside:
            self._count_aside(slot, -1)
        slot.item, slot.size = None, 0

    # ------------------------------------------------------------------------------------------------ set aside
    def set_aside(self, slot: Slot[T], left: int) -> None:
        """Record that an event's record was dropped. `left`: bytes that the event still holds."""
        self._resize(slot, left)
        self._count_aside(slot, 1)

    def wants_records(self) -> bool:
        """Return whether dropped records may be read again now."""
        return self._admitted() <= _READ_AGAIN_AT * self.size_limit

    def takes_records(self) -> bool:
        """Return whether one more dropped record may be read again."""
        return self._admitted() <= _OPEN_AT * self.size_limit

    def restore(self, slot: Slot[T], size: int) -> None:
        """Record that an event holds its record again. `size`: bytes of the record."""
        self._count_aside(slot, -1)
        self._resize(slot, size)

    def _admitted(self) -> int:
        """Return the bytes of the admitted events, without arrivals."""
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
    """The waiting events of one key, in order. `place`: partition number and key. `busy`: an event of the key runs."""

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
    """True after a failure: no further event starts or is committed."""


@dataclass(slots=True)
class LaneStats:
    """Counts of events since the start, and current values: `running`, `held`, `held_bytes` and `held_by`.

    An event is held from its delivery until it is done or dropped.
    """

    done: int = 0
    dropped: int = 0
    redelivered: int = 0
    running: int = 0
    held: int = 0
    held_bytes: int = 0
    held_by: Counter[str] = field(default_factory=Counter)
    """Number of held events by tenant. Tenants without events are left out."""
    most_running: int = 0

    def take(self, tenant: str, size: int) -> None:
        """Count an event as held."""
        self.held += 1
        self.held_bytes += size
        self.held_by[tenant] += 1

    def resize(self, by: int) -> None:
        """Add to the held bytes; a negative number subtracts."""
        self.held_bytes += by

    def let_go(self, tenant: str, size: int) -> None:
        """Count an event as no longer held."""
        self.held -= 1
        self.held_bytes -= size
        self.held_by[tenant] -= 1
        if not self.held_by[tenant]:
            del self.held_by[tenant]
