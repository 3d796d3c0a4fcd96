"""Who works for a consumer group in the embedded folder: whoever holds its lock file.

The lock is the operating system's (flock), so it is gone at the same moment as its process, also after kill -9; no
heartbeat that could be late. The file names the holder's pid for messages.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from urllib.parse import quote

from ...schemas.errors import Fatal

#: A restarted worker may come while the one before it is still closing.
WAIT_SECONDS = 10.0


def lock_file(folder: Path, group: str) -> Path:
    name = quote(group, safe="")
    if len(name) > 120:
        name = hashlib.sha256(group.encode()).hexdigest()
    return folder / "groups" / f"{name}.lock"


def held(folder: Path, group: str) -> bool:
    """True while a live process works for the group."""
    try:
        with lock_file(folder, group).open("rb") as file:
            return not _try(file.fileno(), fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


async def hold(folder: Path, group: str, *, wait: float = WAIT_SECONDS) -> Callable[[], None]:
    """Take the group's lock; returns what releases it. Raises `Fatal` when another process keeps it."""
    path = lock_file(folder, group)
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    deadline = monotonic() + wait
    try:
        while not _try(fd, fcntl.LOCK_EX):
            if monotonic() > deadline:
                pid = os.pread(fd, 32, 0).decode(errors="replace").strip() or "unknown"
                raise Fatal(
                    f"another process (pid {pid}) already works for {group} in {folder}: "
                    "stop it, or use Kafka to run several workers"
                )
            await asyncio.sleep(0.05)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    except BaseException:
        os.close(fd)
        raise
    return lambda: os.close(fd)


def _try(fd: int, mode: int) -> bool:
    try:
        fcntl.flock(fd, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
