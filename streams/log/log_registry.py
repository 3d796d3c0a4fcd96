"""The logs on disk that are open in this process: one for a folder, however many use it."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

from .sqlite_log import SqliteLog


class _OpenLogs:
    """The logs that are open in this process, by folder, with how many hold each.

    Several apps and the admin side of one process must share one writing thread: that is what wakes their readers at
    once and lets one fsync serve all of them. Faust builds transports from a URL alone, so there is no constructor
    to hand it through; like SQLite's own list of open files, this has to be one for the process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, tuple[SqliteLog, int]] = {}

    def acquire(self, folder: Path) -> SqliteLog:
        name = os.path.realpath(folder)
        with self._lock:
            opened, holders = self._open.get(name, (None, 0))
            opened = opened or SqliteLog(folder=Path(name))
            self._open[name] = (opened, holders + 1)
            return opened

    def release(self, opened: SqliteLog) -> bool:
        """True for the last holder, who stops it."""
        name = str(opened.folder)
        with self._lock:
            _, holders = self._open[name]
            if holders > 1:
                self._open[name] = (opened, holders - 1)
                return False
            del self._open[name]
            return True


_OPEN = _OpenLogs()


async def open_log(folder: Path) -> SqliteLog:
    """The log in this folder, made if there is none. To be closed with `close_log`, as often as it was opened."""
    opened = _OPEN.acquire(folder)
    try:
        await asyncio.to_thread(opened.start)
    except BaseException:
        if _OPEN.release(opened):
            await asyncio.to_thread(opened.stop)
        raise
    return opened


async def close_log(opened: SqliteLog) -> None:
    if _OPEN.release(opened):
        await asyncio.to_thread(opened.stop)
