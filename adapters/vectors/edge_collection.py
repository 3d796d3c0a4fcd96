"""One collection of the embedded engine: its shard on disk, and the replacement of that shard.

    <collection>/collection.json      configuration and metadata, as the server would report them
    <collection>/shard.json           the shard in use, and what had no graph when it was built; absent: `shard`
    <collection>/shard, shard-<n>     the engine's files; one that is not in use was left by a crash

A shard is replaced by a copy that another process has optimised (edge_index.py). Writes wait while the files are
copied. While the copy is optimised, writes go to the old shard and into a journal. Then they are applied to the copy
in the same order, and the copy is used. The condition of a write depends only on the content of a shard, and both
shards begin with the same content, so both end with the same. `shard.json` is replaced atomically: after a crash
either the old shard or the new one is in use.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import qdrant_edge as edge
from qdrant_client import models

from ..folder_lock import write_atomically
from .engine import EngineRefused

T = TypeVar("T")
DESCRIPTION, CURRENT, SHARD = "collection.json", "shard.json", "shard"
FLUSH_EVERY = 10_000
"""Writes between flushes."""
REPLAYED_AT_ONCE = 100
"""Journalled writes that are applied before other tasks get a turn."""
_NO_POINT = "No point with id"


def call(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function of the bindings. They raise a bare `Exception` for every request that the engine refuses."""
    try:
        return function(*arguments)
    except EngineRefused:
        raise
    except Exception as error:
        message = str(error)
        # "Service runtime error" is a failure of the engine itself (disk full, files missing). All other errors are the
        # request's.
        status = 500 if message.startswith("Service") else 404 if message.startswith(_NO_POINT) else 400
        raise EngineRefused(status, message) from error


@dataclass(frozen=True, slots=True)
class _Current:
    """The shard in use. `left` counts vectors without a graph after the last build; another build would not change
    them."""

    shard: str = SHARD
    left: int = 0


class EdgeCollection:
    """One collection, open from its construction until `close`."""

    def __init__(self, *, folder: Path) -> None:
        """Open the collection. `EngineRefused`: the shard cannot be opened. ValueError: a file does not have the
        expected content."""
        self._folder = folder
        self.described = models.CreateCollection.model_validate_json((folder / DESCRIPTION).read_bytes())
        self._current = _current(folder)
        for each in folder.glob(f"{SHARD}*"):
            if each.is_dir() and each.name != self._current.shard:
                shutil.rmtree(each)
        self.shard: edge.EdgeShard = call(edge.EdgeShard.load, str(folder / self._current.shard))
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
        """Write the files of a new collection into an existing, empty folder."""
        call(call(edge.EdgeShard.create, str(folder / SHARD), config).close)
        _describe(folder, described)

    async def update(self, operation: Any) -> None:
        """Apply a write. When this returns, it is in the engine's write-ahead log."""
        await self._open.wait()
        if self._journal is not None:
            self._journal.append(operation)
        call(self.shard.update, operation)
        self._writes += 1
        if self._writes % FLUSH_EVERY == 0:
            call(self.shard.flush)

    def describe(self, described: models.CreateCollection) -> None:
        self.described = described
        _describe(self._folder, described)

    def close(self) -> None:
        self.closed = True
        call(self.shard.flush)
        call(self.shard.close)

    # -------------------------------------------------------------------------------------------- another shard
    def without_graph(self) -> int:
        """Count the vectors that have no graph but could have one. Those that the last build left out are not
        counted."""
        info = call(self.shard.info)
        dense = self.described.vectors if isinstance(self.described.vectors, dict) else {}
        every = info.points_count * (len(dense) + len(self.described.sparse_vectors or {}))
        return max(0, every - info.indexed_vectors_count - self._current.left)

    def settle(self) -> None:
        """Record that vectors without a graph need none at present; counting begins again from here."""
        self._current = _Current(self._current.shard, left=self._current.left + self.without_graph())

    def journal_size(self) -> int:
        """Count the writes that wait for the copy."""
        return len(self._journal or ())

    async def copy_shard(self) -> Path:
        """Copy the shard. From then on writes are journalled, until `replace_shard` or `discard_copy`. Writes wait
        while the files are copied; reads do not."""
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
        """Put the copy in the shard's place after it has received the journalled writes. `EngineRefused`: the copy
        cannot be opened or written, and the old shard stays in use."""
        shard: edge.EdgeShard = call(edge.EdgeShard.load, str(copy))
        while self._journal:
            some, self._journal = self._journal[:REPLAYED_AT_ONCE], self._journal[REPLAYED_AT_ONCE:]
            for operation in some:
                _apply_again(shard, operation)
            await asyncio.sleep(0)
        old, self.shard, self._journal = self.shard, shard, None
        before, self._current = self._current, _Current(copy.name)
        self._current = _Current(copy.name, left=self.without_graph())
        contents = {"shard": self._current.shard, "left": self._current.left}
        write_atomically(self._folder / CURRENT, json.dumps(contents).encode())
        call(old.close)
        await asyncio.to_thread(shutil.rmtree, self._folder / before.shard)

    async def discard_copy(self, copy: Path) -> None:
        """Drop the copy and continue with the old shard."""
        self._journal = None
        await asyncio.to_thread(shutil.rmtree, copy, ignore_errors=True)


def _describe(folder: Path, described: models.CreateCollection) -> None:
    write_atomically(folder / DESCRIPTION, described.model_dump_json(exclude_none=True).encode())


def _current(folder: Path) -> _Current:
    path = folder / CURRENT
    return _Current(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else _Current()


def _apply_again(shard: edge.EdgeShard, operation: Any) -> None:
    """Apply a journalled write to the copy. The copy refuses the same writes as the old shard did."""
    try:
        call(shard.update, operation)
    except EngineRefused as refused:
        if refused.status >= 500:
            raise
