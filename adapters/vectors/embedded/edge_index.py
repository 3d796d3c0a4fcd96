"""Builder of search graphs for the embedded engine's collections, while the collections are in use.

Without a graph, the engine compares a cue with every vector of a tenant: 0.3 ms for a thousand, 0.4 s for a million.
Only `optimize()` builds graphs, and it holds the GIL throughout. Therefore the process that holds the folder starts a
second process, which optimises a copy of the shard (edge_collection.py). The copy then replaces the shard. Graphs are
built for one collection at a time, at low priority. When the second process fails, the old shard stays in use. When the
holder stops, it ends the second process.

`python -m memstream.adapters.vectors.embedded.edge_index COLLECTION SHARD` runs that process.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import qdrant_edge as edge
import structlog
from qdrant_client import models

from ....schemas.collections import TENANT_FIELD
from ..engine import EngineRefused
from . import edge_models as translate
from .edge import EdgeEngine
from .edge_collection import DESCRIPTION, EdgeCollection, call

log = structlog.get_logger(__name__)

NICENESS: Final = 10
END_WITH_PARENT: Final = 1
"""PR_SET_PDEATHSIG for the Linux call prctl."""


@dataclass(frozen=True, slots=True)
class GraphPolicy:
    """Thresholds for building a graph. A collection must reach all three minimums."""

    vectors: int = 20_000
    """Minimum number of vectors without a graph."""
    share: float = 0.1
    """Minimum share of vectors without a graph. Each build starts from scratch. With 0.1, all builds of a growing
    collection together cost eleven times the last build."""
    of_tenant: int = 20_000
    """Minimum number of records of the largest tenant. With fewer records, comparing all of them is as fast as
    searching a graph."""
    full_scan: int = 10_000
    """Number of filtered points below which the engine compares all points."""
    journal: int = 100_000
    """Maximum number of journalled writes during a build. With more writes, the build is aborted."""
    look: float = 30.0
    """Seconds between two checks."""


POLICY: Final = GraphPolicy()


class GraphBuilder:
    """Builder of graphs for one engine's collections, from `start` to `stop`."""

    def __init__(self, *, engine: EdgeEngine, policy: GraphPolicy = POLICY) -> None:
        self._engine = engine
        self._policy = policy
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._looking = asyncio.create_task(self._look())

    async def stop(self) -> None:
        """Stop, and abort a build in progress. No effect when called again."""
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            await asyncio.wait((looking,))

    async def look(self) -> tuple[str, ...]:
        """Build the graphs that are due. Return the names of the collections with a new graph."""
        found = self._engine.collections()
        return tuple([name for name, each in found if self._due(each) and await self._built(name, each)])

    # -------------------------------------------------------------------------------------------- internals
    async def _look(self) -> None:
        while True:
            await asyncio.sleep(self._policy.look)
            try:
                await self.look()
            except EngineRefused as error:  # reads and writes of the collection report this error too
                log.warning("graph_not_looked_at", why=str(error))

    def _due(self, collection: EdgeCollection) -> bool:
        if collection.closed or not collection.described.vectors:
            return False
        without, points = collection.without_graph(), call(collection.shard.info).points_count
        if without < max(self._policy.vectors, self._policy.share * points):
            return False
        hits = call(collection.shard.facet, edge.FacetRequest(TENANT_FIELD, limit=1)).hits
        if hits and hits[0].count >= self._policy.of_tenant:
            return True
        collection.settle()  # later checks count only later vectors
        return False

    async def _built(self, name: str, collection: EdgeCollection) -> bool:
        began, without = time.monotonic(), collection.without_graph()
        log.info("graph_building", collection=name, vectors=without)
        copy: Path | None = None
        try:
            copy = await collection.copy_shard()
            await self._optimized(collection, copy)
            await collection.replace_shard(copy)
        except (EngineRefused, OSError, _BuildAborted) as error:
            log.warning("graph_not_built", collection=name, why=str(error))
            if not collection.closed:
                collection.settle()
            if copy is not None:
                await collection.discard_copy(copy)
            return False
        except asyncio.CancelledError:
            if copy is not None:
                await collection.discard_copy(copy)
            raise
        log.info("graph_built", collection=name, vectors=without, seconds=round(time.monotonic() - began, 1))
        return True

    async def _optimized(self, collection: EdgeCollection, copy: Path) -> None:
        """Optimise the copy in a separate process. Raise `_BuildAborted` when the build must end."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __name__, str(collection.folder), copy.name),
            *("--full-scan", str(self._policy.full_scan)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
        )
        ended = asyncio.create_task(process.wait())
        try:
            while not ended.done():
                await asyncio.wait((ended,), timeout=1.0)
                if collection.closed:
                    raise _BuildAborted("the collection was closed")
                if collection.journal_size() > self._policy.journal:
                    raise _BuildAborted(f"more than {self._policy.journal} writes arrived during the build")
            if process.returncode:
                raise _BuildAborted(f"the build process exited with status {process.returncode}")
        finally:
            if not ended.done():
                process.kill()
            await ended


class _BuildAborted(Exception):
    """A build that ended before it was complete."""


def optimize(shard: Path, described: models.CreateCollection, *, full_scan: int) -> None:
    """Build the graphs of a shard that no other process has open. This blocks and holds the GIL. It takes about a
    minute for 50 000 vectors."""
    opened = call(edge.EdgeShard.load, str(shard), translate.config_with_graph(described, full_scan=full_scan))
    call(opened.optimize)
    call(opened.flush)
    call(opened.close)


@click.command()
@click.argument("collection", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("shard")
@click.option("--full-scan", type=int, default=POLICY.full_scan)
def main(collection: Path, shard: str, full_scan: int) -> None:
    """Build the graphs of a collection's shard, for the parent process."""
    parent = os.getppid()
    with contextlib.suppress(AttributeError, OSError):  # Linux only; elsewhere an orphan completes an unused copy
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit(1)
    os.nice(NICENESS)
    described = models.CreateCollection.model_validate_json((collection / DESCRIPTION).read_bytes())
    optimize(collection / shard, described, full_scan=full_scan)


if __name__ == "__main__":
    main()
