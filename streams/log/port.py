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
        """Return the timestamp as a datetime, or None when it is out of range: a producer can set any number."""
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
    """A worker's unfinished records in a partition."""

    unread: int
    """Records that the worker has not taken in yet, as of its last fetch."""
    held: int
    """Records that the worker has taken in and not acknowledged."""


@dataclass(frozen=True, slots=True)
class TopicLayout:
    """An existing topic with its partition count and settings."""

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
        """Append a record durably. Without `partition`, murmur2 of the key selects it; without a key, it is arbitrary.

        Raises Poison for a `timestamp` that is further in the future than the log allows (an hour by default).
        """
        ...

    async def partitions(self, topic: str) -> int | None:
        """Return the number of partitions, or None for a topic that does not exist."""
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
        """Yield records of all partitions, or of the partitions in `start` from their offsets on, each in order.

        It stops at the ends that the partitions had at the call. With `follow` it does not stop; it raises Transient
        when partitions were added, and the caller starts again. It uses no consumer group. It holds a connection, so a
        caller that stops early must close it (contextlib.aclosing).
        """
        ...

    async def first_at_or_after(self, topic: str, partition: int, offset: int) -> int | None:
        """Return the offset of the first existing record from `offset` on; None when there is none."""
        ...

    async def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        """Return the first offset with a timestamp (milliseconds since 1970) of `timestamp` or later, or None.

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
        """Raise a topic's partition count to `partitions`, if it is lower. Return when new partitions are usable."""
        ...

    async def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Set committed offsets of a consumer group without members: partition → the next offset to read."""
        ...

    async def delete(self, topics: Sequence[str]) -> None: ...


class Drainable(Protocol):
    """The part of the lanes (streams/engine/lanes.py) that the app and its consumer use. Tests of both replace it."""

    def has_room(self, tp: tuple[str, int]) -> bool:
        """Return whether the consumer may fetch more of a partition. Other threads may call it."""
        ...

    def committable(self) -> Mapping[tuple[str, int], int]:
        """Return the highest offset that is safe to commit, by partition."""
        ...

    def idle(self) -> bool: ...

    async def finish(self) -> None:
        """Finish the running events and earlier events of their partitions. Called at a stop, before `drain`."""
        ...

    async def drain(self, revoked: frozenset[tuple[str, int]]) -> None:
        """Drop events that have not started, wait for the running ones, commit the offsets of `revoked`."""
        ...

    async def close(self) -> None: ...
