"""Speed of reads: `python -m bench.recall`.

- R4: recall p95 ÷ p95 of the identical raw query. The raw query repeats the captured engine requests with which recall
  searched and read its candidates. On a server, a bare HTTP client that does not decode the response repeats the
  searches, with the fields that recall reads in the response.
- R5: recall p95 with many facts ÷ recall p95 with 1 000.
- Stall: each kind of our reads ÷ the same bytes sent by that bare client.

Both sides alternate (A/B/B/A) in pairs, and the median counts. The cue's vector is known, so no embedder is measured.
Embedded collections have the graphs that a worker would have built by then.

"server" is the Qdrant that MEMSTREAM_TEST_QDRANT names; without it, only "embedded" is measured.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, cast

import click
from qdrant_client import models
from rich.console import Console

from memstream.adapters.vectors.embedded.edge import EdgeEngine
from memstream.adapters.vectors.embedded.edge_index import GraphBuilder
from memstream.adapters.vectors.engine import QdrantEngine
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.cli.process.garbage_collection import tune_garbage_collection
from memstream.memory.policies import RecallPolicy
from memstream.recall.payloads import FIELDS
from memstream.recall.request import RecallRequest
from memstream.recall.search import COLLECTION_OF
from memstream.recall.service import RecallService
from memstream.schemas.recall import TIERS, Tier

from . import recall_http, recall_mem0
from .alternation import Run, alternated, taken
from .qdrant_server import PrefixedEngine, given_server, prefixed_engine
from .read_stalls import stalls
from .recall_corpus import EACH, IDENTITY, MESSAGES_EACH, NOW, Cue, Embedded, Whose, cues, fill
from .recorded_requests import Recorder, SentRequest
from .report import Figure, as_json, as_markdown, as_table, machine
from .world import NotMeasured

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "bench" / "out"
PAGE = ROOT / "docs" / "notes" / "performance.md"
BEGIN, END = "<!-- recall: begin -->", "<!-- recall: end -->"
BASE: Final = 1_000
SIZES: Final = (1_000, 10_000, 100_000)
MILLION: Final = 1_000_000
SERVER_MOST: Final = 10_000
"""Maximum number of facts that are loaded over the network."""
TURNS: Final = 50_000
"""Number of messages of the owner with a large memory."""
SEARCH: Final = "query_batch_points"
ROWS: Final = "scroll"
ALLOWED: Final = 0.002
"""Seconds that recall may take in addition (R4)."""
TARGET_R4: Final = 1.3
TARGET_BARE: Final = 1.5
READERS: Final = 16
TARGET_READERS: Final = 250
TARGET_R5: Final = 3.0
MARK: Final = "filled"
"""File in the folder of a filled store, with the seconds that filling took."""


class Shape(StrEnum):
    """Distribution of facts: all for one owner, or a thousand for each owner."""

    ONE_OWNER = "one owner"
    ONE_TENANT = "one tenant"
    MANY_TENANTS = "many tenants"

    def owners(self, facts: int) -> Sequence[Whose]:
        many = range(max(1, facts // EACH))
        match self:
            case Shape.ONE_OWNER:
                return [Whose("tenant0", "u0")]
            case Shape.ONE_TENANT:
                return [Whose("tenant0", f"u{number}") for number in many]
            case Shape.MANY_TENANTS:
                return [Whose(f"tenant{number}", "u0") for number in many]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    cues: int = 30
    pairs: int = 5


QUICK: Final = Effort(cues=3, pairs=1)


@dataclass(slots=True)
class Caught:
    """An engine that records searches, and the reads of their result rows."""

    engine: QdrantEngine
    searches: list[Run] = field(default_factory=list)
    rows: list[Run] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        real = getattr(self.engine, name)

        def noted(*given: Any, **named: Any) -> Any:
            if name == SEARCH:
                self.searches.append(lambda: getattr(self.engine, name)(*given, **named))
            elif name == ROWS and _by_id(given[1]):
                self.rows.append(lambda: getattr(self.engine, name)(*given, **named))
            return real(*given, **named)

        return noted


def _with_fields(search: SentRequest) -> SentRequest:
    """Return the search changed so that the response has the records: the same candidates in one request."""
    collection = search.path.split("/")[2]
    [tier] = [tier for tier, name in COLLECTION_OF.items() if collection.endswith(name)]
    content = json.loads(search.content or b"")
    for each in content["searches"]:
        each["with_payload"] = ["tenant_id", *FIELDS[tier]]
    return search._replace(content=json.dumps(content).encode())


def _by_id(condition: Any) -> bool:
    if isinstance(condition, models.Filter):
        must = condition.must if isinstance(condition.must, list) else []
        return any(_by_id(each) for each in must)
    return isinstance(condition, models.HasIdCondition)


@dataclass(slots=True)
class Memory:
    """One filled store and the requests to it."""

    where: str
    shape: Shape
    facts: int
    engine: QdrantEngine
    cues: Sequence[Cue]
    seconds: float
    """Seconds that filling took."""
    recorder: Recorder | None = None
    """Recorder of the requests to a server; None for an embedded engine."""
    service: RecallService = field(init=False)
    """One recall service for all reads, as in a serving process: it checks once which collections exist."""

    def __post_init__(self) -> None:
        self.service = self._over(self.engine)

    def recall(
        self, cue: Cue, *, service: RecallService | None = None, tiers: tuple[Tier, ...] = TIERS
    ) -> Awaitable[Any]:
        request = RecallRequest(tenant_id=cue.whose.tenant_id, owner=cue.whose.owner, cue=cue.text, tiers=tiers)
        return (service or self.service).recall(request, now=NOW)

    async def raw(self, cue: Cue, *, tiers: tuple[Tier, ...] = TIERS) -> Run:
        """Capture recall's searches for this cue. Return a function that repeats them."""
        if self.recorder is not None:
            with self.recorder.taking() as sent:
                await self.recall(cue, tiers=tiers)
            searches = [_with_fields(each) for each in sent if each.path.endswith("/query/batch")]
            recorder = self.recorder
            return lambda: asyncio.gather(*(recorder.repeat(each) for each in searches))
        caught = Caught(self.engine)
        recalled = await self.recall(cue, service=self._over(cast(QdrantEngine, caught)), tiers=tiers)
        assert recalled.items, "nothing was found"
        assert not recalled.missing, recalled.missing

        async def again() -> None:
            await asyncio.gather(*(each() for each in caught.searches))
            await asyncio.gather(*(each() for each in caught.rows))

        return again

    def _over(self, engine: QdrantEngine) -> RecallService:
        return RecallService(
            store=PeriodStore(engine=engine, embedder=IDENTITY),
            embedder=Embedded(self.cues),
            policy=RecallPolicy(patience=60.0),
        )


# ------------------------------------------------------------------------------------------------ measuring
async def against_raw(memory: Memory, effort: Effort) -> Figure:
    """Compare recall with the raw query (R4). On a server `ALLOWED` is not subtracted; the target is `TARGET_BARE`."""
    bare = memory.recorder is not None
    allowed = 0.0 if bare else ALLOWED
    raw = [await memory.raw(cue) for cue in memory.cues]
    pairs = await alternated([_asking(memory, cue) for cue in memory.cues], raw, pairs=effort.pairs)
    what = "recall p95 ÷ p95 of its candidates by a bare client" if bare else "(recall p95 − 2 ms) ÷ raw query p95"
    return Figure(
        ratio="R4",
        what=f"{what}, {memory.facts} facts, {memory.shape.value}",
        on=memory.where,
        value=statistics.median(max(0.0, recall.p95 - allowed) / query.p95 for recall, query in pairs),
        target=TARGET_BARE if bare else TARGET_R4,
        better="lower",
        detail={
            "recall p50 ms": 1_000 * statistics.median(recall.p50 for recall, _ in pairs),
            "recall p95 ms": 1_000 * statistics.median(recall.p95 for recall, _ in pairs),
            "recall CPU ms": 1_000 * statistics.median(recall.cpu for recall, _ in pairs),
            "raw p50 ms": 1_000 * statistics.median(query.p50 for _, query in pairs),
            "raw p95 ms": 1_000 * statistics.median(query.p95 for _, query in pairs),
            "p50 ÷ p50": statistics.median(recall.p50 / query.p50 for recall, query in pairs),
            "CPU ÷ CPU": statistics.median(recall.cpu / query.cpu for recall, query in pairs),
            "filled in s": memory.seconds,
        },
    )


async def of_many_readers(memory: Memory, effort: Effort) -> Figure:
    """Measure many concurrent readers in this process. One core is one second of processor time per second."""
    took: list[float] = []

    async def reader(first: int) -> None:
        for cue in (*memory.cues[first:], *memory.cues[:first]):
            began = time.perf_counter()
            await memory.recall(cue)
            took.append(time.perf_counter() - began)

    tune_garbage_collection()
    cpu = time.process_time()
    await asyncio.gather(*(reader(number % len(memory.cues)) for number in range(READERS)))
    cpu = time.process_time() - cpu
    took.sort()
    return Figure(
        ratio="readers",
        what=f"recalls a second and core, {READERS} readers, {memory.facts} facts, {memory.shape.value}",
        on=memory.where,
        value=len(took) / cpu,
        target=TARGET_READERS,
        detail={"p50 ms": 1_000 * took[len(took) // 2], "p95 ms": 1_000 * took[int(0.95 * len(took))]},
    )


async def against_base(memory: Memory, base: Memory, effort: Effort, *, tiers: tuple[Tier, ...], what: str) -> Figure:
    def asked(of: Memory) -> list[Run]:
        return [_asking(of, cue, tiers) for cue in of.cues]

    pairs = await alternated(asked(memory), asked(base), pairs=effort.pairs)
    return Figure(
        ratio="R5",
        what=f"recall p95 at {memory.facts} facts ÷ at {base.facts}, {memory.shape.value}, {what}",
        on=memory.where,
        value=statistics.median(many.p95 / few.p95 for many, few in pairs),
        target=TARGET_R5,
        better="lower",
        detail={
            "many ms": 1_000 * statistics.median(many.p95 for many, _ in pairs),
            "few ms": 1_000 * statistics.median(few.p95 for _, few in pairs),
            "CPU ÷ CPU": statistics.median(many.cpu / few.cpu for many, few in pairs),
        },
    )


def _asking(memory: Memory, cue: Cue, tiers: tuple[Tier, ...] = TIERS) -> Run:
    return lambda: memory.recall(cue, tiers=tiers)


# ------------------------------------------------------------------------------------------------ worlds
@asynccontextmanager
async def filled(
    where: str, folder: Path, shape: Shape, facts: int, wanted: Wanted, stack: AsyncExitStack
) -> AsyncIterator[Memory]:
    engine: QdrantEngine
    recorder = None
    if where == "embedded":
        engine = EdgeEngine(folder=folder)
    else:
        server = given_server()
        assert server is not None, "there is no server"
        engine = prefixed_engine(server, f"memstream-bench-{uuid.uuid4().hex[:12]}-")
        recorder = await stack.enter_async_context(Recorder.of(engine.client, server))
        stack.push_async_callback(engine.drop)
        where = f"server, Qdrant {(await engine.info()).version}"
    store = PeriodStore(engine=engine, embedder=IDENTITY)
    try:
        await store.ensure()
        owners, mark = shape.owners(facts), folder / MARK
        if recorder is None and mark.exists():
            seconds = float(mark.read_text())
        else:
            messages = TURNS if len(owners) == 1 and facts >= SERVER_MOST else MESSAGES_EACH
            seconds = await fill(store, facts=facts, owners=owners, messages=messages)
        if recorder is None:
            mark.write_text(str(seconds))
        if wanted.graphs and isinstance(engine, EdgeEngine):
            await GraphBuilder(engine=engine).look()
        yield Memory(where, shape, facts, engine, cues(wanted.effort.cues, owners=owners), seconds, recorder)
    finally:
        if recorder is None:
            await store.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    sizes: Sequence[int]
    worlds: Sequence[str]
    shapes: Sequence[Shape]
    effort: Effort
    folder: Path
    """Folder of the stores. Filled stores are reused."""
    graphs: bool = True
    mem0: bool = False
    missing: dict[str, str] = field(default_factory=dict)
    """Reasons of the measurements that were not possible."""


async def measure(wanted: Wanted) -> AsyncIterator[Figure]:
    for where in wanted.worlds:
        for shape in wanted.shapes:
            async for figure in in_shape(where, shape, wanted):
                yield figure


async def in_shape(where: str, shape: Shape, wanted: Wanted) -> AsyncIterator[Figure]:
    """Yield the figures of a shape. The base has one owner; the other shapes also have an owner with 1 000 facts."""
    folder, effort = wanted.folder / where / shape.value.replace(" ", "-"), wanted.effort
    folder.mkdir(parents=True, exist_ok=True)
    least, *larger = sorted(wanted.sizes)
    async with AsyncExitStack() as stack:
        base = await stack.enter_async_context(filled(where, folder / str(least), shape, least, wanted, stack))
        if shape is Shape.ONE_OWNER:
            yield await against_raw(base, effort)
            if base.recorder is not None:
                store = PeriodStore(engine=base.engine, embedder=IDENTITY)
                yield await stalls(
                    store, base.recorder, base.cues[0], runs=effort.cues, pairs=effort.pairs, on=base.where
                )
        for facts in larger:
            if where != "embedded" and facts > SERVER_MOST:
                continue
            async with (
                AsyncExitStack() as inner,
                filled(where, folder / str(facts), shape, facts, wanted, inner) as memory,
            ):
                yield await against_raw(memory, effort)
                if shape is Shape.ONE_OWNER:
                    yield await of_many_readers(memory, effort)
                    async for figure in as_users_read(memory, folder, wanted):
                        yield figure
                yield await against_base(memory, base, effort, tiers=TIERS, what="all tiers")
                yield await against_base(memory, base, effort, tiers=("semantic",), what="facts alone")


async def as_users_read(memory: Memory, folder: Path, wanted: Wanted) -> AsyncIterator[Figure]:
    """Measure reads over HTTP and, on request, mem0 next to them; both need the server."""
    server = given_server()
    if memory.recorder is None or server is None:
        return
    what, on = f"{memory.facts} facts, {memory.shape.value}", memory.where
    prefix = cast(PrefixedEngine, memory.engine).prefix
    for figure in await recall_http.measure(
        server, prefix, folder, memory.cues, pairs=wanted.effort.pairs, what=what, on=on
    ):
        yield figure
    if wanted.mem0:
        aside = folder / "mem0"
        aside.mkdir(exist_ok=True)
        try:
            yield await recall_mem0.measure(
                server,
                f"{prefix}mem0",
                aside,
                memory.cues,
                facts=memory.facts,
                pairs=wanted.effort.pairs,
                ours=lambda: taken([_asking(memory, cue) for cue in memory.cues]),
                what=what,
                on=on,
            )
        except NotMeasured as error:
            wanted.missing["mem0"] = str(error)


async def _told(wanted: Wanted, console: Console) -> list[Figure]:
    """Measure, and print each figure immediately: with many facts the whole run takes long. Return the figures."""
    found = []
    async for figure in measure(wanted):
        console.log(figure.ratio, figure.on, figure.what, figure.shown, figure.shown_detail)
        found.append(figure)
    return found


@click.command()
@click.option("--sizes", help=f"Numbers of facts, separated by commas. [default: {','.join(map(str, SIZES))}]")
@click.option("--million", is_flag=True, help="Also a million facts: needs 6 GB and half an hour to load.")
@click.option("--on", "worlds", multiple=True, type=click.Choice(("embedded", "server")), help="Default: both.")
@click.option(
    "--shape", "shapes", multiple=True, type=click.Choice([each.value for each in Shape]), help="Default: all."
)
@click.option(
    "--folder", type=click.Path(file_okay=False, path_type=Path), help="Keep the stores here and use them again."
)
@click.option("--graphs/--no-graphs", default=True, help="--no-graphs: as before the first graph is built.")
@click.option("--mem0", "with_mem0", is_flag=True, help="Also `search` of mem0 on the server: pip installs it aside.")
@click.option("--quick", is_flag=True, help="Tiny numbers: shows that everything works and measures nothing.")
@click.option("--docs", is_flag=True, help="Write the table into docs/notes/performance.md.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=OUT, help="Folder for the JSON.")
def main(
    sizes: str | None,
    million: bool,
    worlds: tuple[str, ...],
    shapes: tuple[str, ...],
    folder: Path | None,
    graphs: bool,
    with_mem0: bool,
    quick: bool,
    docs: bool,
    out: Path,
) -> None:
    """Measure the speed of recall against the raw engine and against the number of facts."""
    console, facts, began = Console(), machine(), time.monotonic()
    wanted = [int(each) for each in sizes.split(",")] if sizes else [50, 100] if quick else list(SIZES)
    if million:
        wanted.append(MILLION)
    given = worlds or ("embedded", "server")
    missing: dict[str, str] = {}
    if "server" in given and given_server() is None:
        missing["server"] = "MEMSTREAM_TEST_QDRANT names no Qdrant server"
        given = tuple(each for each in given if each != "server")
    with tempfile.TemporaryDirectory(prefix="memstream-bench-") as fresh:
        what = Wanted(
            sizes=wanted,
            worlds=given,
            shapes=[Shape(name) for name in shapes] or list(Shape),
            effort=QUICK if quick else Effort(),
            folder=folder or Path(fresh),
            graphs=graphs,
            mem0=with_mem0,
            missing=missing,
        )
        found = asyncio.run(_told(what, console))
    out.mkdir(parents=True, exist_ok=True)
    report = as_json(facts, found, missing=missing, seconds=time.monotonic() - began)
    (out / "recall.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    console.print(as_table(found))
    for world, why in missing.items():
        console.print(f"{world}: not measured: {why}")
    if docs:
        page = PAGE.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}\n{as_markdown(facts, found)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
