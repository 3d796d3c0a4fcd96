"""Graphs for the embedded engine's collections, built beside their use.

Without a graph the engine compares a cue with every vector of a tenant: 0.3 ms for a thousand, 0.4 s for a million. One
is built in `optimize()` alone, which holds the GIL from its beginning to its end; so the holder of a folder has it done
by a process of its own, on a copy of the shard (edge_collection.py), which then takes the shard's place. One collection
at a time, at low priority. Nothing depends on it: a process that dies leaves the old shard, and a holder that stops
ends it.

`python -m memstream.adapters.vectors.edge_index COLLECTION SHARD` is that process.
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

from ...schemas.collections import TENANT_FIELD
from . import edge_models as translate
from .edge import EdgeEngine
from .edge_collection import DESCRIPTION, EdgeCollection, call
from .engine import EngineRefused

log = structlog.get_logger(__name__)

NICENESS: Final = 10
END_WITH_PARENT: Final = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""


@dataclass(frozen=True, slots=True)
class GraphPolicy:
    """When a graph is built."""

    vectors: int = 20_000
    """Vectors that have none, at least …"""
    share: float = 0.1
    """… and this share of all: each building does all anew, so all of them together cost eleven times the last."""
    of_tenant: int = 20_000
    """Records of the greatest tenant, at least: comparing with fewer is as quick as a graph."""
    full_scan: int = 10_000
    """Points: when a filter leaves so few, all are compared."""
    journal: int = 100_000
    """Writes while it is built that are kept for the copy; beyond, the building is given up."""
    look: float = 30.0
    """Seconds between two looks."""


POLICY: Final = GraphPolicy()


class Graphs:
    """Looks after one engine's collections, from `start` to `stop`."""

    def __init__(self, *, engine: EdgeEngine, policy: GraphPolicy = POLICY) -> None:
        self._engine = engine
        self._policy = policy
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._looking = asyncio.create_task(self._look())

    async def stop(self) -> None:
        """A building under way is given up. Calling again has no effect."""
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            await asyncio.wait((looking,))

    async def look(self) -> tuple[str, ...]:
        """Build what is due; the names of the collections that have a new graph."""
        found = self._engine.collections()
        return tuple([name for name, each in found if self._due(each) and await self._built(name, each)])

    # -------------------------------------------------------------------------------------------- inside
    async def _look(self) -> None:
        while True:
            await asyncio.sleep(self._policy.look)
            try:
                await self.look()
            except EngineRefused as error:  # told by whoever reads and writes, too
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
        collection.settle()  # looked at again when as many more have come
        return False

    async def _built(self, name: str, collection: EdgeCollection) -> bool:
        began, without = time.monotonic(), collection.without_graph()
        log.info("graph_building", collection=name, vectors=without)
        copy: Path | None = None
        try:
            copy = await collection.copied()
            await self._optimized(collection, copy)
            await collection.replaced(copy)
        except (EngineRefused, OSError, _GivenUp) as error:
            log.warning("graph_not_built", collection=name, why=str(error))
            if not collection.closed:
                collection.settle()
            if copy is not None:
                await collection.abandoned(copy)
            return False
        except asyncio.CancelledError:
            if copy is not None:
                await collection.abandoned(copy)
            raise
        log.info("graph_built", collection=name, vectors=without, seconds=round(time.monotonic() - began, 1))
        return True

    async def _optimized(self, collection: EdgeCollection, copy: Path) -> None:
        """By a process of its own. Raises _GivenUp."""
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
                    raise _GivenUp("the collection is gone")
                if collection.journalled() > self._policy.journal:
                    raise _GivenUp(f"more than {self._policy.journal} writes came meanwhile")
            if process.returncode:
                raise _GivenUp(f"its process ended with {process.returncode}")
        finally:
            if not ended.done():
                process.kill()
            await ended


class _GivenUp(Exception):
    """A building that does not come to its end."""


def optimize(shard: Path, described: models.CreateCollection, *, full_scan: int) -> None:
    """Build the graphs of a shard that nobody else has open. It blocks, the GIL held, for a minute per 50 000 vectors
    or so."""
    opened = call(edge.EdgeShard.load, str(shard), translate.config_with_graph(described, full_scan=full_scan))
    call(opened.optimize)
    call(opened.flush)
    call(opened.close)


@click.command()
@click.argument("collection", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("shard")
@click.option("--full-scan", type=int, default=POLICY.full_scan)
def main(collection: Path, shard: str, full_scan: int) -> None:
    """Build the graphs of a collection's shard, for the process that started this one."""
    parent = os.getppid()
    with contextlib.suppress(AttributeError, OSError):  # Linux alone; elsewhere it goes on in a copy that nobody wants
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit(1)
    os.nice(NICENESS)
    described = models.CreateCollection.model_validate_json((collection / DESCRIPTION).read_bytes())
    optimize(collection / shard, described, full_scan=full_scan)


if __name__ == "__main__":
    main()
