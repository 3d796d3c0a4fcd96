"""Cost of messages in several quarters: `python -m bench.quarters`.

A read is recall's request to `turns`: three rankings of 100, and the rows. A server returns the rows in the same
response; in a folder the best rows are read afterwards. The same messages are stored in 1, 6 and 14 quarters, and the
reads alternate. Without `--server`, each number of quarters has its own folder. With it, each has its own, initially
empty Qdrant server, whose CPU is not counted.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import click
from qdrant_client import models
from rich.console import Console
from rich.table import Table

from memstream.adapters.ports import DenseRanking, EmbedderIdentity, LexicalRanking, Point, Ranking
from memstream.adapters.vectors.conditions import equals
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.recall.filters import these
from memstream.recall.payloads import FIELDS
from memstream.schemas import ids
from memstream.schemas.collections import TURNS
from memstream.schemas.periods import Period

IDENTITY = EmbedderIdentity(name="bench", dimension=256)
QUARTERS = (1, 6, 14)
FIRST = Period(2023, 1)
OF_OWNER = models.Filter(must=[equals("owner_key", "acme/u")])
WORDS = [f"word{number}" for number in range(2_000)]
RARER = [1 / (1 + number) for number in range(len(WORDS))]
AT_ONCE = 100
FOUND = 100


@dataclass(slots=True)
class Memory:
    """One store, and the seconds of its reads."""

    quarters: int
    store: PeriodStore
    is_here: bool
    """True when the engine runs in this process."""
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    async def fill(self, messages: int) -> None:
        random, period, names = Random(1), FIRST, []
        await self.store.ensure(TURNS)
        for _ in range(self.quarters):
            names.append(await self.store.open_period(TURNS, period, newest=period))
            period = period.next
        for begin in range(0, messages, AT_ONCE):
            points: dict[str, list[Point]] = {}
            for number in range(begin, min(begin + AT_ONCE, messages)):
                points.setdefault(names[number * len(names) // messages], []).append(_message(random, number))
            for name, some in points.items():
                await self.store.insert(name, some)

    async def read(self, rankings: Sequence[Ranking]) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        fields = FIELDS["turns"]
        answers = await self.store.search(
            TURNS, tenant_id="acme", rankings=rankings, where=OF_OWNER, limit=FOUND, fields=fields
        )
        best = list(dict.fromkeys(each.id for found in answers for each in found))[:FOUND]
        if self.is_here:
            where = these(best, OF_OWNER)
            rows = await self.store.select(TURNS, tenant_id="acme", where=where, limit=len(best), fields=fields)
            assert len(rows) == FOUND
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)
        assert len(best) == FOUND


def _vector(random: Random) -> list[float]:
    return [random.gauss(0, 1) for _ in range(IDENTITY.dimension)]


def _words(random: Random, count: int) -> str:
    return " ".join(random.choices(WORDS, weights=RARER, k=count))


def _message(random: Random, number: int) -> Point:
    vector, text = _vector(random), _words(random, 20)
    payload = {"tenant_id": "acme", "owner_key": "acme/u", "session_place": number, "content": text}
    return Point(ids.message_id("bench", str(number), 0), payload, dense=vector, window=vector, text=text)


def _cue(random: Random) -> list[Ranking]:
    vector = _vector(random)
    return [DenseRanking(vector), DenseRanking(vector, "window"), LexicalRanking(_words(random, 6))]


@asynccontextmanager
async def _opened(server: str | None) -> AsyncIterator[PeriodStore]:
    with tempfile.TemporaryDirectory(prefix="memstream-bench-") as folder:
        url = server or f"embedded://{Path(folder)}"
        store = await open_store(url, embedder=IDENTITY, holds_folder=server is None)
        try:
            yield store
        finally:
            await store.drop_periods(TURNS, before=Period(2030, 1).begins)
            await store.close()


async def _measure(servers: Sequence[str], *, known: bool, messages: int, cues: int, rounds: int) -> list[Memory]:
    async with AsyncExitStack() as stack:
        memories = []
        for place, quarters in enumerate(QUARTERS):
            store = await stack.enter_async_context(_opened(servers[place] if servers else None))
            memories.append(Memory(quarters, store, is_here=not servers))
            await memories[-1].fill(messages)
        random = Random(5)
        asked = [_cue(random) for _ in range(cues)]
        for number in range(1 + rounds):
            if number and not known:
                asked = [_cue(random) for _ in range(cues)]
            for memory in memories if number % 2 else reversed(memories):
                for rankings in asked:
                    await memory.read(rankings)
        for memory in memories:  # the first round warms up
            del memory.wall[:cues], memory.cpu[:cues]
        return memories


@click.command()
@click.option("--server", "servers", multiple=True, help="An empty Qdrant server for each of 1, 6 and 14 quarters.")
@click.option("--messages", type=click.IntRange(FOUND * 4), default=6_000, show_default=True)
@click.option("--cues", type=click.IntRange(1), default=20, show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=6, show_default=True)
@click.option("--known", is_flag=True, help="Ask with the same words in each round; without it with other ones.")
def main(servers: tuple[str, ...], messages: int, cues: int, rounds: int, known: bool) -> None:
    """Compare reads over one, six and fourteen quarters."""
    if servers and len(servers) != len(QUARTERS):
        raise click.UsageError(f"--server is needed {len(QUARTERS)} times")
    memories = asyncio.run(_measure(servers, known=known, messages=messages, cues=cues, rounds=rounds))
    table = Table("quarters", "median, ms", "ratio", "best tenth, ms", "ratio", "CPU here, ms", "ratio")
    figures = [
        (statistics.median(m.wall), statistics.quantiles(m.wall, n=10)[0], statistics.mean(m.cpu)) for m in memories
    ]
    for memory, each in zip(memories, figures, strict=True):
        compared = [f"{1e3 * value:.1f}|{value / base:.2f}" for value, base in zip(each, figures[0], strict=True)]
        table.add_row(str(memory.quarters), *(cell for pair in compared for cell in pair.split("|")))
    Console().print(table)


if __name__ == "__main__":
    main()
