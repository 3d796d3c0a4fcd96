"""The backends of the vector store's contract tests: embedded engine, loopback server, Qdrant itself."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from qdrant_client import models

from memstream.adapters.folder_lock import FolderLock
from memstream.adapters.ports import EmbedderIdentity, Payload, Point
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.schemas.collections import Sharding

from .qdrant import GIVEN, given_qdrant, has_real_qdrant, has_shards, real_qdrant_url

EMBEDDER = EmbedderIdentity(name="hashing", dimension=4)
MOSTLY_ZEROS = EmbedderIdentity(name="hashing", dimension=4, mostly_zeros=True)
"""The same embedder; collections that are made for it store its vectors as sparse ones."""


class Backend(Protocol):
    """A place to open stores. A store that is opened after the first one was closed finds what was written."""

    name: str
    many: bool
    """Whether several stores can be open at once."""

    async def open(self, embedder: EmbedderIdentity | None = None) -> PeriodStore:
        """Open a store of the place's embedder, or of another one."""
        ...


class EmbeddedBackend:
    name = "embedded"
    many = False

    def __init__(self, folder: Path, embedder: EmbedderIdentity) -> None:
        self._folder = folder
        self._embedder = embedder

    async def open(self, embedder: EmbedderIdentity | None = None) -> PeriodStore:
        embedder = embedder or self._embedder
        return await open_store(f"embedded://{self._folder}", embedder=embedder, holds_folder=True)


class AttachedBackend:
    """Stores that reach the holder of a folder through the loopback server it announces."""

    name = "loopback"
    many = True

    def __init__(self, folder: Path, embedder: EmbedderIdentity) -> None:
        self._folder = folder
        self._embedder = embedder

    async def open(self, embedder: EmbedderIdentity | None = None) -> PeriodStore:
        return await open_store(f"embedded://{self._folder}", embedder=embedder or self._embedder)


class ServerBackend:
    name = "qdrant"
    many = True

    def __init__(self, url: str, embedder: EmbedderIdentity, sharding: Sharding = "auto") -> None:
        self._url = url
        self._embedder = embedder
        self._sharding = sharding

    async def open(self, embedder: EmbedderIdentity | None = None) -> PeriodStore:
        return await open_store(self._url, embedder=embedder or self._embedder, sharding=self._sharding)


SHARDED = "sharded"
"""Qdrant itself in cluster mode, with collections that can have a shard for a tenant."""
PLACES = (
    "embedded",
    "loopback",
    *(("qdrant",) if has_real_qdrant() else ()),
    *((SHARDED,) if has_shards() else ()),
)
SPARSE = "-sparse"
FORMS = (*PLACES, *(f"{each}{SPARSE}" for each in PLACES if each != "loopback"))
"""The places, and those engines again with collections that store embeddings as sparse vectors."""


@asynccontextmanager
async def place(name: str, folder: Path) -> AsyncIterator[Backend]:
    """Yield one of `FORMS`, without any collection."""
    embedder = MOSTLY_ZEROS if name.endswith(SPARSE) else EMBEDDER
    name = name.removesuffix(SPARSE)
    if name in ("qdrant", SHARDED):
        with given_qdrant(real_qdrant_url()) as part:
            yield ServerBackend(part.url, embedder, "tenant" if name == SHARDED else "auto")
        return
    with FolderLock(folder=folder) as lock:
        assert lock.try_acquire()
        if name == "embedded":
            yield EmbeddedBackend(folder, embedder)
            return
        holder = await open_store(f"embedded://{folder}", embedder=EMBEDDER, holds_folder=True, serve_loopback=True)
        try:
            yield AttachedBackend(folder, embedder)
        finally:
            await holder.close()


@contextmanager
def store_url(folder: Path) -> Iterator[str]:
    """Yield the address of an empty store for one process: in `folder`, or on the server that is given."""
    if server := os.environ.get(GIVEN):
        with given_qdrant(server) as part:
            yield part.url
        return
    with FolderLock(folder=folder) as lock:
        assert lock.try_acquire()
        yield f"embedded://{folder}"


def make_id(name: object) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, str(name)))


def make_point(name: object, *, tenant: str = "acme", text: str | None = None, **fields: Any) -> Point:
    payload: Payload = {"tenant_id": tenant, **fields}
    return Point(id=make_id(name), payload=payload, dense=[1.0, 0.0, 0.0, 0.0], text=text)


def make_row(name: object, version: int, *applied: str, tenant: str = "acme", **fields: Any) -> Point:
    return make_point(name, tenant=tenant, version=version, applied=list(applied), **fields)


def match(key: str, value: str | int) -> models.Filter:
    return models.Filter(must=[models.FieldCondition(key=key, match=models.MatchValue(value=value))])
