"""CloudEvents 1.0 in binary mode: the headers of every record that memstream produces, except re-sent turns, dead
letters and changelogs."""

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
    "memstream.erasure.v1",
    "memstream.audit.v1",
]
MAJOR_VERSION = 1
OWN_TYPES = "memstream."
"""Prefix of the types of memstream's own events."""
REKEYED_HEADER = "memstream-rekeyed"
MOVED_HEADER = "memstream-moved-to"
"""Header of a tombstone on memory.facts that erases nothing. Its value is the number of the partition that has the key
now."""
RESTORED_HEADER = "memstream-restored"
"""Header of a record on memory.turns that has a turn of an export (`TurnToRestore`). The recorder stores its messages,
and the observer skips it: its memories are restored, too."""
MASKED_HEADER = "memstream-masked"
"""Header of a dead letter whose value differs from the refused record, because a secret in it is masked."""


def rfc3339(moment: datetime) -> str:
    """Format a time in UTC with `Z`, and with microseconds only when they are not zero."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """Headers of an event. `id` is the idempotency key, `subject` is the key of the record."""

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
    """Return memstream's major version in `ce_type`; None without this header or version."""
    for name, value in headers:
        if name == "ce_type":
            return major_of_type(value.decode("utf-8", "replace"))
    return None


def major_of_type(event_type: str) -> int | None:
    """Return the major version in a type of memstream (`memstream.turn.v1` → 1). Return None for other types and types
    without a version."""
    tail = event_type.rpartition(".v")[2]
    if not event_type.startswith(OWN_TYPES) or not tail.isascii() or not tail.isdigit():
        return None
    return int(tail[:9])  # nine digits are enough for an unknown version; int() refuses thousands of digits
