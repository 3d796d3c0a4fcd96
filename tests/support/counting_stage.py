"""A stage that counts records and knows nothing of memory.

It reads memory.turns and memory.commands.session like the observer, keyed by the record's key. Its row holds the count
and the last outcome. It also writes one row before, one row after, and one that is deleted again. Each counted record
becomes one point and one output record. The values `poison` and `odd` fail, and
`hold` waits while the file `hold` exists.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from memstream.schemas.errors import Poison
from memstream.schemas.outcomes import Outcome, OutPoint, OutRecord, PutPoints, Source
from memstream.schemas.topics import COMMANDS_SESSION, OBSERVATIONS, TURNS, Topic
from memstream.streams.engine.handler import RoutedEvent, Rows, StageDecision
from memstream.streams.engine.parking import without_mark
from memstream.streams.log.port import Record


class CountRow(BaseModel):
    count: int = 0
    seen: dict[str, int] = {}
    last: Outcome | None = None


@dataclass(frozen=True)
class Counted:
    key: str
    id: str
    value: str


class Counting:
    """The stage. `store_sink(point id, payload)` stands for the store; it may raise Transient."""

    name: Literal["observer"] = "observer"
    reads: tuple[Topic, ...] = (TURNS, COMMANDS_SESSION)

    def __init__(
        self,
        *,
        sink: Callable[[str, dict[str, object]], None] = lambda id, payload: None,
        pause: float = 0.0,
        hold: Path | None = None,
    ) -> None:
        self._sink = sink
        self._pause = pause
        self._hold = hold
        self.assigned: frozenset[int] = frozenset()

    def writes_dead_letters(self, topic: str) -> bool:
        return True

    def route(self, record: Record) -> RoutedEvent[Counted]:
        if record.value is None or record.key is None:
            raise Poison("undecodable", "nothing to count")
        try:
            fields = json.loads(record.value)
            counted = Counted(record.key.decode(), fields["id"], fields["value"])
        except (ValueError, KeyError, TypeError) as error:
            raise Poison("undecodable", str(error)) from error
        return RoutedEvent(counted.key, counted)

    def _row(self, work: Counted, rows: Rows) -> CountRow:
        raw = rows.row(work.key)
        return CountRow.model_validate_json(without_mark(raw)) if raw is not None else CountRow()

    def last(self, work: Counted, rows: Rows) -> StageDecision | None:
        raw = rows.row(work.key)
        row = self._row(work, rows)
        return StageDecision(row.last, work.key, raw) if row.last is not None else None

    async def decide(self, work: Counted, record: Record, rows: Rows) -> AsyncIterator[StageDecision]:
        row = self._row(work, rows)
        if work.id in row.seen:
            return
        if work.value == "poison":
            raise Poison("refused_by_model", "on purpose")
        if work.value == "odd":
            raise RuntimeError("nobody expected this")
        while work.value == "hold" and self._hold is not None and self._hold.exists():
            await asyncio.sleep(0.05)
        if self._pause:
            await asyncio.sleep(random.uniform(0, self._pause))
        position = record.position
        count = row.count + 1
        payload = {"key": work.key, "id": work.id, "count": count, "model": random.random()}
        outcome = Outcome(
            source=Source(topic=position.topic, partition=position.partition, offset=position.offset, id=work.id),
            writes=(PutPoints(collection="counts", points=(OutPoint(id=f"{work.key}/{work.id}", payload=payload),)),),
            records=(OutRecord(topic=OBSERVATIONS.name, key=work.key.encode(), value=json.dumps(payload).encode()),),
            before=(f"{work.key}#kept", f"{work.key}#gone"),
            after={f"{work.key}#after": str(count).encode()},
            cleanup=(f"{work.key}#gone",),
        )
        row = CountRow(count=count, seen=row.seen | {work.id: position.offset}, last=outcome)
        before = {f"{work.key}#kept": str(count).encode(), f"{work.key}#gone": b"x"}
        yield StageDecision(outcome, work.key, row.model_dump_json().encode(), before=before)

    async def store(self, outcome: Outcome) -> None:
        for write in outcome.writes:
            assert isinstance(write, PutPoints)
            for point in write.points:
                self._sink(point.id, dict(point.payload))

    async def publish_state(self, outcome: Outcome) -> None:
        return None

    def retain(self, partitions: frozenset[int]) -> None:
        self.assigned = partitions

    async def end_rows(self, partition: int, rows: Rows) -> None:
        return None

    async def rediscover(self, partition: int, rows: Rows) -> None:
        return None

    async def background(self) -> None:
        return None
