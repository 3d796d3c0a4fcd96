"""Registry of the logs on disk that are open in this process: one log per folder, with any number of users."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

from .sqlite_log import SqliteLog


class _OpenLogs:
    """The open logs by folder, each with the number of its holders.

    All users of a folder in one process (the apps and the admin commands) must share one writer thread: the thread
    wakes their readers immediately, and one fsync serves all of them. The registry is global to the process, because
    Faust builds transports from a URL, so the log cannot be passed to a constructor.
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
        """Subtract one holder of a log. Return whether no holder is left; the caller must then stop the log."""
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
    """Open the log in a folder; create it if it does not exist. Each call needs one `close_log`."""
    opened = _OPEN.acquire(folder)
    try:
        await asyncio.to_thread(opened.start)
    except BaseException:
        if _OPEN.release(opened):
            await asyncio.to_thread(opened.stop)
        raise
    return opened


async def close_log(opened: SqliteLog) -> None:
    """End one use of a log from `open_log`. The last user stops the log."""
    if _OPEN.release(opened):
        await asyncio.to_thread(opened.stop)
