"""CPU and store requests per event, with and without batches: `python -m bench.batches`.

Events run concurrently as in a worker and make the stages' store calls: the recorder searches for a message and inserts
it; the reflector reads a fact, swaps it in and reads it again. It measures an engine in this process and an engine over
HTTP, whose CPU is not counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast

import click
from rich.console import Console
from rich.table import Table

from memstream.adapters.batching.coalescer import CoalescePolicy
from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.ports import EmbedderIdentity, Point, VectorStore
from memstream.adapters.vectors.embedded.edge import EdgeEngine
from memstream.adapters.vectors.engine import QdrantEngine
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.adapters.vectors.point_batcher import POLICY
from memstream.schemas import ids

from .qdrant_server import given_server, prefixed_engine

OUT = Path(__file__).resolve().parent / "out"
ALONE = CoalescePolicy(items=1, at_once=10_000)
"""One request per call, without delay."""
POLICIES = {"alone": ALONE, "gathered": POLICY}
Where = Literal["embedded", "server"]
Event = Callable[[VectorStore, int], Awaitable[None]]


@dataclass(frozen=True)
class Row:
    where: str
    event: str
    how: str
    requests_per_event: float
    points_per_write: float
    cpu_us_per_event: float
    events_per_second: float


class Counting:
    """An engine that counts its requests."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.requests = self.writes = self.points = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def upsert(self, collection: str, points: list[Any], **options: Any) -> Any:
        self.requests += 1
        self.writes += 1
        self.points += len(points)
        return await self._engine.upsert(collection, points, **options)

    async def scroll(self, *arguments: Any, **options: Any) -> Any:
        self.requests += 1
        return await self._engine.scroll(*arguments, **options)


def events(embedded: list[list[float]], round_: str) -> dict[str, Event]:
    def point(kind: str, number: int, **fields: Any) -> Point:
        user = f"user-{number}"
        return Point(
            id=ids.message_id(f"bench/{user}/{kind}-{round_}", "t1", 0),
            payload={
                "tenant_id": "bench",
                "owner_key": f"bench/user/{user}",
                "user_id": user,
                "session_id": f"session-{number}",
                "content": "I left Google. I now work at Stripe.",
                "occurred_at": "2026-11-20T10:00:00Z",
                **fields,
            },
            dense=embedded[number % len(embedded)],
            text="I left Google. I now work at Stripe.",
        )

    async def record(store: VectorStore, number: int) -> None:
        made = point("turn", number, message_index=0, role="user")
        await store.get("turns", tenant_id="bench", ids=[made.id])
        await store.insert("turns", [made])

    async def reflect(store: VectorStore, number: int) -> None:
        made = point("fact", number, version=1, applied=["c"], state="active")
        await store.get("facts", tenant_id="bench", ids=[made.id])
        await store.compare_and_set("facts", made, expected_version=None, cause="c")
        await store.get("facts", tenant_id="bench", ids=[made.id])

    return {"recorder": record, "reflector": reflect}


async def measured(
    store: VectorStore, counting: Counting, event: Event, *, count: int, in_flight: int
) -> tuple[float, float, float, float]:
    numbers = iter(range(count))

    async def lane() -> None:
        for number in numbers:
            await event(store, number)

    counting.requests = counting.writes = counting.points = 0
    cpu, began = time.process_time(), time.monotonic()
    await asyncio.gather(*(lane() for _ in range(in_flight)))
    cpu, seconds = time.process_time() - cpu, time.monotonic() - began
    return counting.requests / count, counting.points / counting.writes, cpu / count * 1e6, count / seconds


@contextlib.asynccontextmanager
async def engine_at(where: Where) -> AsyncIterator[QdrantEngine]:
    if where == "embedded":
        with tempfile.TemporaryDirectory() as folder:
            yield EdgeEngine(folder=Path(folder))
    else:
        server = given_server()
        assert server is not None, "MEMSTREAM_TEST_QDRANT names no server"
        engine = prefixed_engine(server, f"memstream-bench-{uuid.uuid4().hex[:12]}-")
        yield cast(QdrantEngine, engine)
        await engine.drop()


async def measure(count: int, in_flight: int, rounds: int) -> list[Row]:
    embedder = HashingEmbedder()
    vectors = await embedder.embed([f"I now work at company {n}" for n in range(32)], tenant_id="bench")
    rows: list[Row] = []
    worlds: tuple[Where, ...] = ("embedded", "server") if given_server() else ("embedded",)
    for where in worlds:
        async with engine_at(where) as engine:
            counting = Counting(engine)
            stores = {how: _store(counting, embedder.identity, policy) for how, policy in POLICIES.items()}
            await stores["alone"].ensure("turns", "facts")
            for round_ in range(rounds):  # alone, gathered, gathered, alone …: the store grows equally for both
                for how in sorted(POLICIES, reverse=round_ % 2 == 1):
                    for name, event in events(vectors, f"{how}-{round_}").items():
                        figures = await measured(stores[how], counting, event, count=count, in_flight=in_flight)
                        rows.append(Row(where, name, how, *figures))
            await engine.close()
    return [
        _median(rows, where, name, how) for where, name, how in dict.fromkeys((r.where, r.event, r.how) for r in rows)
    ]


def _store(engine: Any, embedder: EmbedderIdentity, policy: CoalescePolicy) -> PeriodStore:
    return PeriodStore(engine=engine, embedder=embedder, gathering=policy)


def _median(rows: list[Row], where: str, event: str, how: str) -> Row:
    """Return the row with the median CPU."""
    same = sorted(
        (row for row in rows if (row.where, row.event, row.how) == (where, event, how)),
        key=lambda row: row.cpu_us_per_event,
    )
    return same[len(same) // 2]


@click.command()
@click.option("--events", "count", default=512, show_default=True)
@click.option("--in-flight", default=64, show_default=True)
@click.option("--rounds", default=3, show_default=True)
def main(count: int, in_flight: int, rounds: int) -> None:
    """Measure CPU and requests per event, with and without batches."""
    rows = asyncio.run(measure(count, in_flight, rounds))
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "batches.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    table = Table("where", "event", "how", "requests", "points a write", "CPU µs", "events/s", box=None)
    for row in rows:
        table.add_row(
            row.where,
            row.event,
            row.how,
            f"{row.requests_per_event:.2f}",
            f"{row.points_per_write:.1f}",
            f"{row.cpu_us_per_event:.0f}",
            f"{row.events_per_second:.0f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
