"""The port of a log (Kafka, or the log on disk). Commands, admin, dead letters and probes use it without Faust."""

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
    """One record with undecoded key and value. `timestamp`: milliseconds since 1970, UTC."""

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
    """Number of records that the worker has not received yet, as of its last fetch."""
    held: int
    """Number of records that the worker holds and has not acknowledged."""


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


class ReadableLog(Protocol):
    """The reads of a log that `TopicFanout` uses. `Log` and `StageProgress` have them."""

    async def ends(self, topic: str) -> tuple[int, ...]: ...

    async def starts(self, topic: str) -> tuple[int, ...]: ...

    def read(
        self, topic: str, *, start: Mapping[int, int] | None = None, follow: bool = False
    ) -> AsyncGenerator[Record]: ...


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
        """Append a record durably.

        Without `partition`, the key selects the partition (murmur2). Without a key, the partition is arbitrary.
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
        """Yield the records of all partitions, or of the partitions in `start` from the given offsets on.

        The records of a partition are in order. The iteration ends at the end offsets that the partitions had at the
        call. With `follow` it does not end; it raises Transient when partitions were added, and the caller must start
        again. No consumer group is used. The generator holds a connection, so a caller that stops early must close the
        generator (contextlib.aclosing).
        """
        ...

    async def first_at_or_after(self, topic: str, partition: int, offset: int) -> int | None:
        """Return the offset of the first record at or after `offset`, or None when there is no such record."""
        ...

    async def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        """Return the offset of the first record with a timestamp of `timestamp` (ms since 1970) or later, or None.

        The search assumes that timestamps rise with offsets. A caller that needs every record must pass an earlier
        timestamp.
        """
        ...

    async def committed(self, group: str, topic: str) -> tuple[int | None, ...]:
        """Return a consumer group's committed offset (the next offset to read) for each partition; None if unset."""
        ...

    async def members(self, group: str) -> int:
        """Return the present number of members of a consumer group."""
        ...

    async def topics(self) -> dict[str, TopicLayout]: ...

    async def create(self, wanted: Sequence[TopicSpec]) -> None:
        """Create the topics that do not exist. Existing topics are not changed."""
        ...

    async def add_partitions(self, topic: str, partitions: int) -> None:
        """Raise a topic's partition count to `partitions`, if it is lower. Return when new partitions are usable."""
        ...

    async def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Set committed offsets of a consumer group without members. `offsets`: next offset to read, by partition."""
        ...

    async def delete(self, topics: Sequence[str]) -> None: ...


class Drainable(Protocol):
    """The part of the lanes (streams/engine/lanes.py) that the app and its consumer use.

    It is a protocol because tests of the app and of the consumer replace the lanes.
    """

    def has_room(self, tp: tuple[str, int]) -> bool:
        """Return whether the consumer may fetch more of a partition. Other threads may call this method."""
        ...

    def committable(self) -> Mapping[tuple[str, int], int]:
        """Return the highest offset that is safe to commit, by partition."""
        ...

    def idle(self) -> bool: ...

    async def finish(self) -> None:
        """Finish the running events and earlier events of their partitions. Called at a stop, before `drain`."""
        ...

    async def drain(self, revoked: frozenset[tuple[str, int]]) -> None:
        """Drop events that have not started, wait for the running events, commit the offsets of `revoked`."""
        ...

    async def close(self) -> None: ...
