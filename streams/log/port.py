"""The port of a log (Kafka, or the log on disk) outside Faust: for commands, admin, dead letters and probes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

Headers = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a record: topic, partition and offset."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Record:
    """One raw record. Nothing is decoded. `timestamp` in milliseconds since 1970, UTC."""

    position: Position
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int = 0

    @property
    def written_at(self) -> datetime | None:
        """Return the timestamp as a time; None when it is none: a producer can set any number."""
        try:
            return datetime.fromtimestamp(self.timestamp / 1000, tz=UTC)
        except (OverflowError, OSError, ValueError):
            return None

    def size(self) -> int:
        """Return the bytes of key, value and headers."""
        headers = sum(len(name) + len(value) for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers


@dataclass(frozen=True, slots=True)
class PartitionBacklog:
    """The work that a worker has left in a partition."""

    unread: int
    """Records that it has not taken in yet, as of its last fetch."""
    held: int
    """Records that it has taken in and not acknowledged."""


@dataclass(frozen=True, slots=True)
class TopicLayout:
    """A topic as the log has it."""

    name: str
    partitions: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create. `config` uses Kafka's names (`cleanup.policy`, `retention.ms` …)."""

    name: str
    partitions: int
    replication: int
    config: Mapping[str, str]


class Log(Protocol):
    """A partitioned log. Every method raises `Transient("broker", …)` when the log does not answer in time."""

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
        """Append a record durably. Without `partition`, murmur2 of the key chooses it; without a key, any.

        Raises Poison for a `timestamp` that is further ahead than the log allows (an hour by default).
        """
        ...

    async def partitions(self, topic: str) -> int | None:
        """Return the number of partitions, None for a topic that does not exist."""
        ...

    async def ends(self, topic: str) -> tuple[int, ...]:
        """Return the offset of the next record of each partition."""
        ...

    async def starts(self, topic: str) -> tuple[int, ...]:
        """Return the first offset of each partition."""
        ...

    def read(
        self, topic: str, *, start: Mapping[int, int] | None = None, follow: bool = False
    ) -> AsyncGenerator[Record]:
        """Read records of all partitions, or of those in `start` from these offsets on; each partition in order.

        It ends at the ends of the time of the call; with `follow` it goes on without end, and raises Transient when the
        topic has got more partitions: begin again. It uses no consumer group. It holds a connection, so a caller that
        breaks off must close it (contextlib.aclosing).
        """
        ...

    async def first_at_or_after(self, topic: str, partition: int, offset: int) -> int | None:
        """Return the offset of the first existing record from `offset` on; None when there is none."""
        ...

    async def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        """Return the offset at which records of this time (milliseconds since 1970) and later begin; None without any.

        It assumes that timestamps rise with offsets. A caller that needs every record must leave a margin.
        """
        ...

    async def committed(self, group: str, topic: str) -> tuple[int | None, ...]:
        """Return the committed offset (the next one to read) of a consumer group for each partition."""
        ...

    async def members(self, group: str) -> int:
        """Return the present number of members of a consumer group."""
        ...

    async def topics(self) -> dict[str, TopicLayout]: ...

    async def create(self, wanted: Sequence[TopicSpec]) -> None:
        """Create topics that do not exist. Existing ones are not changed."""
        ...

    async def add_partitions(self, topic: str, partitions: int) -> None:
        """Let a topic have so many partitions, when it has fewer. New ones are empty. Return when they can be used."""
        ...

    async def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Set committed offsets of a consumer group without members: partition → the next offset to read."""
        ...

    async def delete(self, topics: Sequence[str]) -> None: ...


class Drainable(Protocol):
    """The part of the lanes (streams/engine/lanes.py) that the app and its consumer use."""

    def has_room(self, tp: tuple[str, int]) -> bool:
        """Whether the consumer may fetch more of a partition. Other threads may call it."""
        ...

    def committable(self) -> Mapping[tuple[str, int], int]:
        """Return the offset that is safe to commit, by partition."""
        ...

    def idle(self) -> bool: ...

    async def finish(self) -> None:
        """At a stop, before `drain`: finish events that began and those before them in their partitions."""
        ...

    async def drain(self, revoked: frozenset[tuple[str, int]]) -> None:
        """Drop events that have not started, wait for the running ones, commit the offsets of `revoked`."""
        ...

    async def close(self) -> None: ...
