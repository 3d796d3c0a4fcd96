"""What the machinery asks of a log (Kafka, or the one on disk) outside Faust: commands, admin, dead letters, probes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Headers = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Position:
    """Where a record lies."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Record:
    """One record, raw: nothing is decoded. `timestamp` in milliseconds since 1970, UTC."""

    position: Position
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int = 0


@dataclass(frozen=True, slots=True)
class RecordAhead:
    """What a worker has still to do of a partition."""

    unread: int
    """Records that it has not taken yet, as far as its last fetch knew."""
    held: int
    """Records that it has taken and not done, or done out of their order."""


@dataclass(frozen=True, slots=True)
class TopicLayout:
    """A topic as it stands in the log."""

    name: str
    partitions: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TopicWanted:
    """A topic as it shall be made. `config` has Kafka's names (`cleanup.policy`, `retention.ms` …)."""

    name: str
    partitions: int
    replication: int
    config: Mapping[str, str]


class Log(Protocol):
    """A partitioned log. Every method raises `Transient("broker", …)` when it cannot be reached in time."""

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def append(
        self,
        topic: str,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Position:
        """Durable when it returns. Without `partition`, murmur2 over the key (without a key: any)."""
        ...

    async def partitions(self, topic: str) -> int | None:
        """How many, or None when there is no such topic."""
        ...

    async def ends(self, topic: str) -> tuple[int, ...]:
        """Per partition the offset that the next record will get."""
        ...

    async def starts(self, topic: str) -> tuple[int, ...]:
        """Per partition the first offset that is kept."""
        ...

    def read(
        self, topic: str, *, start: Mapping[int, int] | None = None, follow: bool = False
    ) -> AsyncGenerator[Record]:
        """Records of all partitions (or those named in `start`, from these offsets), each partition in order. Up to
        the ends at the time of the call, or, with `follow`, on and on. No consumer group is used. It holds a
        connection: who breaks off closes it (contextlib.aclosing)."""
        ...

    async def first_at_or_after(self, topic: str, partition: int, offset: int) -> int | None:
        """The offset of the first record that really is in the log from `offset` on; None when there is none."""
        ...

    async def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        """Where to begin for records of this time (milliseconds since 1970) and later; None when there are none.
        Timestamps are taken to rise with offsets: who needs every record leaves a margin, or looks before it too."""
        ...

    async def committed(self, group: str, topic: str) -> tuple[int | None, ...]:
        """Per partition the committed offset (the next one to read) of a consumer group."""
        ...

    async def members(self, group: str) -> int:
        """How many members the consumer group has now."""
        ...

    async def topics(self) -> dict[str, TopicLayout]: ...

    async def create(self, wanted: Sequence[TopicWanted]) -> None:
        """Make what is absent; what is there already stays as it is."""
        ...

    async def delete(self, topics: Sequence[str]) -> None: ...


class Drainable(Protocol):
    """What the app needs of its lanes when partitions are taken away or the worker stops (streams/engine/lanes.py)."""

    def idle(self) -> bool: ...

    async def finish(self) -> None:
        """At a stop, before `drain`: end what has begun, and what lies before it in its partition (bounded)."""
        ...

    async def drain(self, revoked: frozenset[tuple[str, int]]) -> None:
        """Drop what has not started, wait for what runs (bounded), commit the contiguous offsets of `revoked`."""
        ...

    async def close(self) -> None: ...
