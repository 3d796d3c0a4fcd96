"""CloudEvents 1.0, binary mode: the headers of every record that we produce. Re-sent turns, dead letters and changelogs
have none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

Headers = tuple[tuple[str, bytes], ...]
EventType = Literal[
    "memstream.turn.v1",
    "memstream.turn.observed.v1",
    "memstream.episodes.recorded.v1",
    "memstream.fact.updated.v1",
    "memstream.fact.state.v1",
    "memstream.recalled.v1",
    "memstream.task.due.v1",
    "memstream.command.v1",
    "memstream.command.result.v1",
    "memstream.policy.v1",
]
MAJOR_VERSION = 1
OWN_TYPES = "memstream."
"""The beginning of the types of memstream's own events."""
REKEYED_HEADER = "memstream-rekeyed"
MOVED_HEADER = "memstream-moved-to"
"""On a tombstone of memory.facts that erases nothing: the number of the partition where the key lies now."""
MASKED_HEADER = "memstream-masked"
"""On a dead letter whose value is not the refused record's own, because a secret in it is masked."""


def rfc3339(moment: datetime) -> str:
    """Format a time in UTC with `Z`; microseconds only when there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """`id` is the idempotency key, `subject` the key of the stream that the record belongs to."""

    id: str
    source: str
    """`/memstream/<stage>`"""
    type: EventType
    subject: str
    time: datetime

    def headers(self) -> Headers:
        fields = {
            "ce_specversion": "1.0",
            "ce_id": self.id,
            "ce_source": self.source,
            "ce_type": self.type,
            "ce_subject": self.subject,
            "ce_time": rfc3339(self.time),
            "ce_partitionkey": self.subject,
            "content-type": "application/json",
        }
        return tuple((name, value.encode()) for name, value in fields.items())


def major_version(headers: Headers) -> int | None:
    """Return memstream's major version in `ce_type`; None without such a header or version."""
    for name, value in headers:
        if name == "ce_type":
            return major_of_type(value.decode("utf-8", "replace"))
    return None


def major_of_type(event_type: str) -> int | None:
    """Return the major version in a type of memstream's (`memstream.turn.v1` → 1). The type of somebody else, or one
    without a version, has none."""
    tail = event_type.rpartition(".v")[2]
    if not event_type.startswith(OWN_TYPES) or not tail.isascii() or not tail.isdigit():
        return None
    return int(tail[:9])  # nine digits are enough to be unknown; int() refuses thousands of digits
