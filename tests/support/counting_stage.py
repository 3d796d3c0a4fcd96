"""A stage that counts records and knows nothing of memory.

It reads memory.turns and memory.commands.session like the observer, keyed by the record's key. Its row holds the count
and the last outcome. It also writes one row before, one row after, and one that is deleted again. Each counted record
becomes one point and one output record. The values `poison` and `odd` fail, `match` and `spin` never come to an
end, and `hold` waits while the file `hold` exists.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from memstream.schemas.errors import Poison
from memstream.schemas.outcomes import Outcome, OutPoint, OutRecord, PutPoints, Source
from memstream.schemas.topics import COMMANDS_SESSION, OBSERVATIONS, TURNS, Topic
from memstream.streams.engine.decision import Rows, StageDecision
from memstream.streams.engine.lane_events import QueuedEvents, RoutedEvent
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
        together: int = 0,
    ) -> None:
        """`together`: how many queued events one outcome takes along."""
        self._sink = sink
        self._pause = pause
        self._hold = hold
        self._together = together
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

    async def decide(
        self, work: Counted, record: Record, rows: Rows, queued: QueuedEvents[Counted]
    ) -> AsyncIterator[StageDecision]:
        row = self._row(work, rows)
        if work.id in row.seen:
            return
        along = [each for each in queued.next(self._together) if each[1].id not in row.seen]
        taken = [(record, work), *along]
        await self._meet([each.value for _, each in taken])
        position = record.position
        points, records = [], []
        for at, each in taken:
            row = CountRow(count=row.count + 1, seen=row.seen | {each.id: at.position.offset})
            payload = {"key": each.key, "id": each.id, "count": row.count, "model": random.random()}
            points.append(OutPoint(id=f"{each.key}/{each.id}", payload=payload))
            records.append(
                OutRecord(topic=OBSERVATIONS.name, key=each.key.encode(), value=json.dumps(payload).encode())
            )
        count = str(row.count).encode()
        outcome = Outcome(
            source=Source(topic=position.topic, partition=position.partition, offset=position.offset, id=work.id),
            writes=(PutPoints(collection="counts", points=tuple(points)),),
            records=tuple(records),
            before=(f"{work.key}#kept", f"{work.key}#gone"),
            after={f"{work.key}#after": count},
            cleanup=(f"{work.key}#gone",),
        )
        raw = row.model_copy(update={"last": outcome}).model_dump_json().encode()
        before = {f"{work.key}#kept": count, f"{work.key}#gone": b"x"}
        yield StageDecision(outcome, work.key, raw, before=before, covers=len(along))

    async def _meet(self, values: Sequence[str]) -> None:
        """Fail or wait, as the values of the counted events say."""
        if "poison" in values:
            raise Poison("refused_by_model", "on purpose")
        if "match" in values:
            re.match(r"(a+)+$", "a" * 60 + "b")  # it holds Python's lock, and does not end
        if "spin" in values:
            while True:
                pass
        if "odd" in values:
            raise RuntimeError("nobody expected this")
        while "hold" in values and self._hold is not None and self._hold.exists():
            await asyncio.sleep(0.05)
        if self._pause:
            await asyncio.sleep(random.uniform(0, self._pause))

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
