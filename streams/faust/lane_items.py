"""Items of the lanes: conversion of Faust messages into records, and rereading of records that were set aside."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..engine.held_events import TP
from ..engine.lane_events import Routed
from ..log.markers import Range
from ..log.port import Log, Position, Record


class EventPlace:
    """The part of a Faust event that a table needs: its topic and partition. It holds no record."""

    __slots__ = ("__weakref__", "partition", "topic")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic, self.partition = topic, partition

    @property
    def message(self) -> EventPlace:
        return self


@dataclass(slots=True)
class LaneItem:
    """An event in the lanes. It is decoded once: when it starts, or when an earlier event of its lane looks ahead."""

    place: EventPlace
    record: Record
    tenant: str
    hole: Range | None
    """The hole before the record: offsets that were not delivered. None when there is no hole."""
    decoded: Routed[Any] | None = None


def record_of(message: Any) -> Record:
    """Convert a Faust message (timestamp in seconds) into a raw record (timestamp in milliseconds)."""
    headers = message.headers or ()
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return Record(
        position=Position(message.topic, message.partition, message.offset),
        key=message.key,
        value=message.value,
        headers=tuple((name, value or b"") for name, value in pairs),
        timestamp=round((message.timestamp or 0) * 1000),
    )


class LogRereads:
    """Drops records, and reads them again from the log (`Rereads` of streams/engine/set_aside.py)."""

    def __init__(self, log_client: Log) -> None:
        self._log = log_client

    def strip(self, item: LaneItem) -> int:
        item.record, item.decoded = replace(item.record, value=None, headers=()), None
        return item.record.size()  # only the record's key remains

    def read(self, tp: TP, offset: int) -> AsyncGenerator[Record]:
        return self._log.read(tp[0], start={tp[1]: offset})

    def restore(self, item: LaneItem, record: Record) -> None:
        item.record = record
