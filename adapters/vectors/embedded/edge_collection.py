"""One collection of the embedded engine: its shard on disk, and the replacement of that shard.

    <collection>/collection.json      configuration and metadata, as the server would report them
    <collection>/shard.json           name of the current shard (default: `shard`), number of vectors without a graph
    <collection>/shard, shard-<n>     the engine's files; an unused folder is left over from a crash

Another process optimises a copy of the shard (edge_index.py), and the copy then replaces the shard. Writes wait while
the files are copied. While the copy is optimised, writes go to the old shard and into a journal. Then the journal is
applied to the copy in the same order, and the copy becomes the current shard. The condition of a write depends only on
the content of a shard, and both shards begin with the same content. Therefore both end with the same content.
`shard.json` is replaced atomically: after a crash, either the old shard or the new shard is current.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import qdrant_edge as edge
from qdrant_client import models

from ....schemas.errors import no_room
from ...durable_files import free_bytes, sync_tree, write_atomically
from ..engine import NO_ROOM, WRITE_ROOM, EngineRefused
from .edge_sync import GroupSync, WriteAheadLog

T = TypeVar("T")
DESCRIPTION, CURRENT, SHARD = "collection.json", "shard.json", "shard"
FLUSH_EVERY = 10_000
"""Writes between flushes."""
COPIES = 2
"""Disk space for a build, as a multiple of the shard's size: the copy has its old segments and the optimised segments
at the same time."""
REPLAYED_AT_ONCE = 100
"""Number of journalled writes that are applied before other tasks can run."""
_NO_POINT = "No point with id"


def call(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function of the bindings. The bindings raise a bare `Exception` for every request that the engine
    refuses."""
    try:
        return function(*arguments)
    except EngineRefused:
        raise
    except Exception as error:
        message = str(error)
        # "Service runtime error" is a failure of the engine itself (disk full, missing files). All other errors are
        # caused by the request.
        status = 500 if message.startswith("Service") else 404 if message.startswith(_NO_POINT) else 400
        raise EngineRefused(status, message) from error


def check_engine_room(folder: Path, *, needed: int) -> None:
    """Raise `EngineRefused` when the folder's disk has less than `needed` free bytes."""
    free = free_bytes(folder)
    if free < needed:
        raise EngineRefused(NO_ROOM, str(no_room("store", folder, free=free, needed=needed)))


@dataclass(frozen=True, slots=True)
class _Current:
    """The current shard. `left` is the number of vectors that had no graph after the last build. They do not count for
    the next build, because it would not give them a graph either."""

    shard: str = SHARD
    left: int = 0


class EdgeCollection:
    """One collection. It is open from its construction until `close`."""

    def __init__(self, *, folder: Path, threads: Executor) -> None:
        """Open the collection; `threads` sync its files. Raise `EngineRefused` when the shard cannot be opened; OSError
        or ValueError when a file cannot be read or synced, or has unexpected content."""
        self._folder = folder
        self._threads = threads
        self.described = models.CreateCollection.model_validate_json((folder / DESCRIPTION).read_bytes())
        self._current = _current(folder)
        for each in folder.glob(f"{SHARD}*"):
            if each.is_dir() and each.name != self._current.shard:
                shutil.rmtree(each)
        self.shard: edge.EdgeShard = call(edge.EdgeShard.load, str(folder / self._current.shard))
        log = WriteAheadLog(folder / self._current.shard)
        log.sync()  # writes of a killed process become readable here, so they must be durable
        self._sync = GroupSync(log.sync, threads=threads)
        self._writes = 0
        self._open = asyncio.Event()
        self._open.set()
        self._journal: list[Any] | None = None
        self.closed = False

    @property
    def folder(self) -> Path:
        return self._folder

    @staticmethod
    def create(folder: Path, described: models.CreateCollection, config: Any) -> None:
        """Write the files of a new collection durably into an existing, empty folder."""
        call(call(edge.EdgeShard.create, str(folder / SHARD), config).close)
        _describe(folder, described)
        sync_tree(folder)

    async def update(self, operation: Any, *, durably: bool = True) -> None:
        """Apply a write. On return, the write is in the engine's write-ahead log and, with `durably`, synced to disk.
        Raise `Fatal` when a sync failed, and `EngineRefused` when the disk has too little space."""
        await self._open.wait()
        self._sync.check()
        check_engine_room(self._folder, needed=WRITE_ROOM)
        if self._journal is not None:
            self._journal.append(operation)
        call(self.shard.update, operation)
        self._writes += 1
        if self._writes % FLUSH_EVERY == 0:
            call(self.shard.flush)
        if durably:
            await self._sync.synced()

    async def synced(self) -> None:
        """Return when every earlier write is durable."""
        await self._open.wait()  # during a replacement, `replace_shard` syncs the old shard and deletes it
        await self._sync.synced()

    def describe(self, described: models.CreateCollection) -> None:
        self.described = described
        _describe(self._folder, described)

    def close(self) -> None:
        self.closed = True
        call(self.shard.flush)
        call(self.shard.close)

    # -------------------------------------------------------------------------------------------- replacement
    def without_graph(self) -> int:
        """Return the number of vectors without a graph, except the vectors that the last build left out."""
        return max(0, _without_graph(self.shard, self.described) - self._current.left)

    def settle(self) -> None:
        """Record that the present vectors without a graph need no graph. `without_graph` then counts later vectors
        only."""
        self._current = _Current(self._current.shard, left=self._current.left + self.without_graph())

    def journal_size(self) -> int:
        """Return the number of journalled writes."""
        return len(self._journal or ())

    async def copy_shard(self) -> Path:
        """Copy the shard. From then on writes are journalled, until `replace_shard` or `discard_copy`. Writes wait
        while the files are copied; reads do not. Raise `EngineRefused` when the disk has too little space for the copy
        and its graphs."""
        files = [path.stat().st_size for path in self._folder.rglob("*") if path.is_file()]
        check_engine_room(self._folder, needed=WRITE_ROOM + COPIES * sum(files))
        number = int(self._current.shard.partition("-")[2] or 0) + 1
        copy = self._folder / f"{SHARD}-{number}"
        self._open.clear()
        try:
            call(self.shard.flush)
            await asyncio.to_thread(shutil.copytree, self._folder / self._current.shard, copy)
            self._journal = []
        finally:
            self._open.set()
        return copy

    async def replace_shard(self, copy: Path) -> None:
        """Apply the journal to the copy, and make the copy the current shard. New writes wait during the last sync.
        Raise `EngineRefused` or OSError when the copy cannot be opened or written; then the old shard stays in use."""
        shard: edge.EdgeShard = call(edge.EdgeShard.load, str(copy))
        await asyncio.to_thread(sync_tree, copy)
        while self._journal:
            some, self._journal = self._journal[:REPLAYED_AT_ONCE], self._journal[REPLAYED_AT_ONCE:]
            for operation in some:
                check_engine_room(copy, needed=WRITE_ROOM)
                _apply_again(shard, operation)
            await asyncio.sleep(0)
        self._open.clear()
        try:
            await self._sync.synced()  # callers that wait for the old shard's log return before its files are deleted
            log = WriteAheadLog(copy)
            await asyncio.to_thread(log.sync)
            used = _Current(copy.name, left=_without_graph(shard, self.described))
            contents = {"shard": used.shard, "left": used.left}
            write_atomically(self._folder / CURRENT, json.dumps(contents).encode())
            old, self.shard, self._journal = self.shard, shard, None
            before, self._current = self._current, used
            self._sync = GroupSync(log.sync, threads=self._threads)
        finally:
            self._open.set()
        call(old.close)
        await asyncio.to_thread(shutil.rmtree, self._folder / before.shard)

    async def discard_copy(self, copy: Path) -> None:
        """Delete the copy and continue with the old shard. No effect when the copy is already in use."""
        if copy.name == self._current.shard:
            return
        self._journal = None
        await asyncio.to_thread(shutil.rmtree, copy, ignore_errors=True)


def _describe(folder: Path, described: models.CreateCollection) -> None:
    write_atomically(folder / DESCRIPTION, described.model_dump_json(exclude_none=True).encode())


def _without_graph(shard: edge.EdgeShard, described: models.CreateCollection) -> int:
    info = call(shard.info)
    dense = described.vectors if isinstance(described.vectors, dict) else {}
    every: int = info.points_count * (len(dense) + len(described.sparse_vectors or {}))
    return max(0, every - info.indexed_vectors_count)


def _current(folder: Path) -> _Current:
    path = folder / CURRENT
    return _Current(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else _Current()


def _apply_again(shard: edge.EdgeShard, operation: Any) -> None:
    """Apply a journalled write to the copy. A refusal is ignored, because the old shard refused the same write."""
    try:
        call(shard.update, operation)
    except EngineRefused as refused:
        if refused.status >= 500:
            raise
