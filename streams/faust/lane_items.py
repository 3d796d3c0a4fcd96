"""Events in the lanes, and their conversion from Faust messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..engine.lane_events import Routed
from ..log.markers import Range
from ..log.port import Position, Record


@dataclass(slots=True)
class LaneItem:
    """An event in the lanes. It is decoded once: when it begins, or when an earlier event of its lane reads it."""

    event: Any
    record: Record
    tenant: str
    hole: Range | None
    """Offsets before the record that were not delivered."""
    decoded: Routed[Any] | None = None


def record_of(message: Any) -> Record:
    """Convert a Faust message into a raw record. Faust's timestamps are in seconds, ours in milliseconds."""
    headers = message.headers or ()
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return Record(
        position=Position(message.topic, message.partition, message.offset),
        key=message.key,
        value=message.value,
        headers=tuple((name, value or b"") for name, value in pairs),
        timestamp=round((message.timestamp or 0) * 1000),
    )
