"""Construction of log, embedder and store from the settings. stages.py and worker.py use this module.

One process holds the lock of an embedded folder. A command takes the lock if it is free. If another process holds the
lock, the command appends to the same log and reaches the engine through the loopback endpoint of the other process.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from ...adapters.batching.embedder import LOCAL, REMOTE, BatchingEmbedder
from ...adapters.embedders.factory import create_embedder
from ...adapters.folder_lock import FolderLock
from ...adapters.ports import Embedder, EmbedderIdentity, Usage, UsageSink
from ...adapters.vectors.factory import open_store
from ...adapters.vectors.periods.period_store import PeriodStore
from ...schemas.errors import Transient
from ...streams.log.port import Log
from ..errors import CommandFailed, unreachable, usage
from .broker import opened_log, require_memory
from .settings import Settings

FOLDER_PATIENCE = 10.0
"""Seconds that a worker waits for a folder that another process holds."""


class NoUsage:
    """Usage sink of commands, which have no metrics."""

    def record(self, *, tenant_id: str, task: str, model: str, usage: Usage) -> None:
        return


def secret(value: SecretStr | None) -> str | None:
    return None if value is None else value.get_secret_value()


def new_embedder(settings: Settings, *, sink: UsageSink) -> Embedder:
    try:
        embedder = create_embedder(
            settings.embedder,
            api_key=secret(settings.openai_api_key),
            base_url=settings.openai_base_url,
            timeout=settings.model_timeout,
            sink=sink,
        )
    except ValueError as error:
        raise usage(str(error)) from error
    return batching(embedder, settings.embedder)


def batching(embedder: Embedder, name: str) -> Embedder:
    """Wrap an embedder so that concurrent events share its calls, with fair shares for tenants.

    The hashing embedder gains nothing from batches and is returned unchanged.
    """
    policy = {"openai": REMOTE, "fastembed": LOCAL}.get(name.partition(":")[0])
    return embedder if policy is None else BatchingEmbedder(embedder=embedder, policy=policy)


# ------------------------------------------------------------------------------------------------ folders
@dataclass(frozen=True, slots=True)
class Folders:
    """Embedded folders whose lock this process holds."""

    held: frozenset[Path]

    def holds(self, folder: Path | None) -> bool:
        return folder in self.held


@asynccontextmanager
async def tried_folders(settings: Settings, *, purpose: str) -> AsyncIterator[Folders]:
    """Lock the free folders for a command. Folders that another process holds stay unlocked."""
    locks = [FolderLock(folder=folder, purpose=purpose) for folder in settings.folders]
    try:
        held = frozenset(lock.folder for lock in locks if _try(lock))
        yield Folders(held)
    finally:
        for lock in locks:
            lock.release()


@asynccontextmanager
async def own_folders(settings: Settings, *, purpose: str, patience: float = FOLDER_PATIENCE) -> AsyncIterator[Folders]:
    """Lock every folder for a worker.

    Raises CommandFailed (exit 2) if another process still holds a folder after `patience` seconds. The error names this
    process.
    """
    locks: list[FolderLock] = []
    try:
        for folder in settings.folders:
            lock = FolderLock(folder=folder, purpose=purpose)
            if not await _acquire(lock, patience):
                raise usage(
                    f"{folder} is held by {lock.holder()}: only one worker at a time can use an embedded folder. Stop "
                    "that process, run all stages in it (memstream worker all), or set MEMSTREAM_BROKER to Kafka"
                )
            locks.append(lock)
        yield Folders(frozenset(lock.folder for lock in locks))
    finally:
        for lock in reversed(locks):
            lock.release()


def unwritable(folder: Path, error: OSError) -> CommandFailed:
    """Return the CommandFailed for a folder that cannot be locked: exit 3 on a full disk, else exit 2."""
    why = f"{folder} cannot be written: {error.strerror or error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return unreachable(Transient("disk", why, remedy="free some space on its disk; nothing is lost"))
    return usage(why)


def _try(lock: FolderLock) -> bool:
    try:
        return lock.try_acquire()
    except OSError as error:
        raise unwritable(lock.folder, error) from error


async def _acquire(lock: FolderLock, patience: float) -> bool:
    try:
        return await lock.acquire(timeout=patience)
    except OSError as error:
        raise unwritable(lock.folder, error) from error


# ------------------------------------------------------------------------------------------------ the store
def reader_identity(settings: Settings) -> EmbedderIdentity:
    """Return a placeholder identity for commands that never embed, so that they work without the embedder's server.

    A store with this identity must not create collections.
    """
    return EmbedderIdentity(name=settings.embedder, dimension=0)


async def new_store(
    settings: Settings, *, identity: EmbedderIdentity, folders: Folders, serve_loopback: bool = False
) -> PeriodStore:
    """Open the store without checking its collections."""
    return await open_store(
        settings.qdrant,
        embedder=identity,
        api_key=secret(settings.qdrant_api_key),
        ca=settings.qdrant_ca,
        holds_folder=folders.holds(settings.qdrant_folder),
        serve_loopback=serve_loopback,
        consistency=settings.qdrant_consistency,
        sharding=settings.qdrant_sharding,
    )


@dataclass(frozen=True, slots=True)
class OpenPorts:
    """Log and store of a command that reads."""

    log: Log
    store: PeriodStore


@asynccontextmanager
async def open_ports(settings: Settings, *, purpose: str) -> AsyncIterator[OpenPorts]:
    """Open log and store for a command that reads. Raises CommandFailed (exit 2) for a folder without memory."""
    if settings.qdrant_folder is not None:
        require_memory(settings.qdrant_folder, settings.broker_folder)
    async with AsyncExitStack() as stack:
        folders = await stack.enter_async_context(tried_folders(settings, purpose=purpose))
        log = await stack.enter_async_context(opened_log(settings))
        store = await new_store(settings, identity=reader_identity(settings), folders=folders)
        stack.push_async_callback(store.close)
        yield OpenPorts(log, store)
