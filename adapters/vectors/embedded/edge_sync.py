"""Syncs of the embedded engine's write-ahead log.

The engine writes its log through a memory mapping and does not sync it. `kill -9` loses no write, but a power cut loses
all writes since the last flush. A flush syncs every file of a shard (about twenty), and holds the GIL meanwhile. A sync
of the log alone is enough: after a power cut, the engine replays its log from the last flush. Therefore a write waits
for one sync of the log, in a thread. All waiting writes share this sync (group commit).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Final

from ....schemas.errors import Fatal
from ...durable_files import sync_file, sync_folder

LOG: Final = "wal"
_SEGMENTS: Final = ("open-", "closed-")
"""Name prefixes of the engine's log files. The engine renames a full file from `open-<n>` to `closed-…` and no longer
writes it. It creates the next open file in advance."""
_HEAD, _LENGTH = 8, 8
"""Bytes of a log file's header, and bytes of the following field, the length of the first entry (zero: no entry)."""


class WriteAheadLog:
    """Log files of one shard. Only one thread may call `sync` at a time; the engine may write meanwhile."""

    def __init__(self, shard: Path) -> None:
        self._folder = shard / LOG
        self._names: frozenset[str] = frozenset()
        """Names of the files whose folder entry is synced."""
        self._whole: frozenset[str] = frozenset()
        """Names of closed files that are synced."""

    def sync(self) -> None:
        """Return when all present content of the log is durable. Blocks. Raise OSError when a sync fails."""
        while True:
            try:
                return self._sync()
            except FileNotFoundError:  # the engine renamed or deleted the file in the meantime
                if not self._folder.is_dir():
                    raise

    def _sync(self) -> None:
        names = frozenset(name for name in os.listdir(self._folder) if name.startswith(_SEGMENTS))
        if not names:
            raise OSError(f"{self._folder} has no log files of the engine")
        for name in names - self._whole:
            if name not in self._names or not _is_blank(self._folder / name):
                sync_file(self._folder / name)
        if names != self._names:
            sync_folder(self._folder)
        self._names = names
        self._whole = frozenset(name for name in names if not name.startswith("open-"))


def _is_blank(path: Path) -> bool:
    """Return whether a log file has no entry yet. Such a file needs no sync, and each sync flushes the disk's cache."""
    with path.open("rb", buffering=0) as file:
        return os.pread(file.fileno(), _LENGTH, _HEAD) == bytes(_LENGTH)


class GroupSync:
    """Group commit: each caller waits for a sync that began after its call, and all waiting callers share one sync.

    After a failed sync, the content of the disk is unknown. Therefore every later call fails too.
    """

    def __init__(self, sync: Callable[[], None], *, threads: Executor) -> None:
        self._sync = sync
        self._threads = threads
        self._waiting: list[asyncio.Future[None]] = []
        self._running: asyncio.Task[None] | None = None
        self._failed: OSError | None = None

    def check(self) -> None:
        """Raise `Fatal` after a failed sync."""
        if self._failed is not None:
            raise Fatal(
                f"the disk of the embedded Qdrant failed to sync: {self._failed}; check the disk, then start again"
            ) from self._failed

    async def synced(self) -> None:
        """Return when all writes before this call are durable. Raise `Fatal` after a failed sync."""
        self.check()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        await waiter
        self.check()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            try:
                await loop.run_in_executor(self._threads, self._sync)
            except OSError as error:
                self._failed = self._failed or error
            for waiter in waiting:
                if not waiter.done():  # its caller may have been cancelled
                    waiter.set_result(None)
        self._running = None
