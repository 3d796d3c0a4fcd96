"""Kafka's rules, applied to the log on disk, so that a program behaves in the same way with both logs."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

from ...schemas.errors import DeploymentFault, Fatal, Poison
from .partitioner import partition_for
from .port import Headers
from .sqlite_tables import LogTopic

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
#: Kafka's default of `max.message.bytes`.
_MAX_BYTES = 1_048_588
#: Kafka's default of `message.timestamp.after.max.ms`.
_AHEAD_MS = 3_600_000


def check_topic(name: str, partitions: int) -> None:
    """Check a topic's name and partition count. Raises `Fatal` for a topic that Kafka would refuse."""
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise Fatal(f"{name!r} is not a topic name: use 1 to 249 letters, digits, '.', '_' and '-'")
    if partitions < 1:
        raise Fatal(f"{name} cannot have {partitions} partitions")


def unknown_topic(name: str) -> DeploymentFault:
    """Return the error for an append to a topic that does not exist."""
    return DeploymentFault(f"there is no topic {name}: run `memstream topics create`")


def check_size(topic: LogTopic, key: bytes | None, value: bytes | None, headers: Headers) -> None:
    """Check a record's size. Raises `Poison` when it exceeds the topic's `max.message.bytes`."""
    size = len(key or b"") + len(value or b"") + sum(len(name) + len(content) for name, content in headers)
    limit = int(topic.config.get("max.message.bytes", _MAX_BYTES))
    if size > limit:
        raise Poison("oversized", f"a record of {size} bytes exceeds the limit of {topic.name}, {limit} bytes")


def check_timestamp(topic: LogTopic, timestamp: int | None, *, now: int) -> None:
    """Check a record's timestamp (ms since 1970).

    Raises `Poison` when it is ahead of `now` by more than the topic's `message.timestamp.after.max.ms`.
    """
    limit = int(topic.config.get("message.timestamp.after.max.ms", _AHEAD_MS))
    if timestamp is not None and timestamp - now > limit:
        raise timestamp_refused(topic.name)


def timestamp_refused(topic: str) -> Poison:
    """Return the error for a record whose timestamp is too far in the future."""
    return Poison(
        "invalid",
        f"{topic} refuses a record with a timestamp further in the future than its message.timestamp.after.max.ms (an "
        "hour by default): set the clock of the machine that wrote it",
    )


def choose_partition(topic: LogTopic, key: bytes | None, partition: int | None) -> int:
    """Return the partition of a record: `partition` if given, else the key's partition, else a random partition.

    Raises `Fatal` when the topic has no partition with the given number.
    """
    count = len(topic.parts)
    if partition is None:
        return random.randrange(count) if key is None else partition_for(key, count)
    if not 0 <= partition < count:
        raise Fatal(f"{topic.name} has {count} partitions, so there is no partition {partition}")
    return partition


def topic_config(
    *, retention: float | None, compacting: bool | None, deleting: bool | None, config: Mapping[str, object] | None
) -> dict[str, str]:
    """Translate Faust's clean-up arguments of a topic (`retention` in seconds) into Kafka's settings."""
    made: dict[str, str] = {}
    policies = [name for name, wanted in (("compact", compacting), ("delete", deleting)) if wanted]
    if policies:
        made["cleanup.policy"] = ",".join(policies)
    if retention:
        made["retention.ms"] = str(int(retention * 1000))
    made.update({name: str(value) for name, value in (config or {}).items()})
    return made
