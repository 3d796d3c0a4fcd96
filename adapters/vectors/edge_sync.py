"""Syncs of the embedded engine's write-ahead log.

The engine writes its log through a mapping of the file and leaves the rest to the kernel: `kill -9` loses nothing, a
power cut everything since the last flush. A flush syncs every file of a shard, some twenty, and holds the GIL
meanwhile. The log alone is enough: after a power cut the engine applies what its log has behind the last flush. So a
write waits for one sync of the log, in a thread, and all writes that wait share it (group commit).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Final

from ...schemas.errors import Fatal
from ..durable_files import sync_file, sync_folder

LOG: Final = "wal"
_SEGMENTS: Final = ("open-", "closed-")
"""Names of the engine's log files. A full one is renamed from `open-<n>` and is not written any more. The engine makes
the next one before it needs it."""
_HEAD, _LENGTH = 8, 8
"""Bytes of a log file's head, and of the length of its first entry behind it, which is zero until then."""


class WriteAheadLog:
    """The files of one shard's log. `sync` is called by one thread at a time; the engine writes meanwhile."""

    def __init__(self, shard: Path) -> None:
        self._folder = shard / LOG
        self._names: frozenset[str] = frozenset()
        """The names that the disk has."""
        self._whole: frozenset[str] = frozenset()
        """Closed files that were synced."""

    def sync(self) -> None:
        """Return when all that the log has now is on the disk. Blocks. Raises OSError."""
        while True:
            try:
                return self._sync()
            except FileNotFoundError:  # renamed or deleted meanwhile by the engine
                if not self._folder.is_dir():
                    raise

    def _sync(self) -> None:
        names = frozenset(name for name in os.listdir(self._folder) if name.startswith(_SEGMENTS))
        if not names:
            raise OSError(f"{self._folder} has no log of the engine")
        for name in names - self._whole:
            if name not in self._names or not _is_blank(self._folder / name):
                sync_file(self._folder / name)
        if names != self._names:
            sync_folder(self._folder)
        self._names = names
        self._whole = frozenset(name for name in names if not name.startswith("open-"))


def _is_blank(path: Path) -> bool:
    """Whether a log file has no entry yet. A sync of it would cost a flush of the disk's cache for nothing."""
    with path.open("rb", buffering=0) as file:
        return os.pread(file.fileno(), _LENGTH, _HEAD) == bytes(_LENGTH)


class GroupSync:
    """Group commit: each caller waits for a sync that began after its call, and all callers that wait share one.

    After a sync that failed nobody knows what the disk has, so every later call fails too.
    """

    def __init__(self, sync: Callable[[], None], *, threads: Executor) -> None:
        self._sync = sync
        self._threads = threads
        self._waiting: list[asyncio.Future[None]] = []
        self._running: asyncio.Task[None] | None = None
        self._failed: OSError | None = None

    def check(self) -> None:
        """Raise `Fatal` after a failure."""
        if self._failed is not None:
            raise Fatal(
                f"the disk of the embedded Qdrant refused a sync: {self._failed}; check the disk, then start again"
            ) from self._failed

    async def synced(self) -> None:
        """Return when all writes before this call are on the disk. Raises `Fatal`."""
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
