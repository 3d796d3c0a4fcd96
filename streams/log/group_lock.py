"""The lock of a consumer group in the folder of the embedded log: only one live process works for a group.

The operating system holds the lock (`filelock`, flock) and releases it when the process ends, also after kill -9. No
heartbeat is needed. A file next to the lock has the holder's pid, for error messages.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Final
from urllib.parse import quote

from filelock import FileLock, Timeout

from ...schemas.errors import Fatal

WAIT_SECONDS: Final = 10.0
"""Maximum seconds to wait for the lock: a worker may start while the previous worker is still closing."""
POLL_SECONDS: Final = 0.05
PROBE_SECONDS: Final = 0.1
"""Maximum seconds that `held` waits for the lock. `held` itself takes the lock briefly, and a second call of `held`
must not mistake the first call for a worker."""
MODE: Final = 0o600
_held: Final[set[FileLock]] = set()
"""The locks that this process holds. Without a reference, garbage collection would release a lock."""


def lock_file(folder: Path, group: str) -> Path:
    """Return the path of a group's lock file. A name that is too long for a file system is replaced by a hash."""
    name = quote(group, safe="")
    if len(name) > 120:
        name = hashlib.sha256(group.encode()).hexdigest()
    return folder / "groups" / f"{name}.lock"


async def held(folder: Path, group: str) -> bool:
    """Return whether a live process works for the group."""
    path = lock_file(folder, group)
    if not path.exists():
        return False
    lock = _lock(path)
    if not await _acquire(lock, PROBE_SECONDS):
        return True
    lock.release()
    return False


async def hold(folder: Path, group: str, *, wait: float = WAIT_SECONDS) -> Callable[[], None]:
    """Take the group's lock and return the function that releases it.

    Raises:
        Fatal: another process still holds it after `wait` seconds.
    """
    path = lock_file(folder, group)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = _lock(path)
    if not await _acquire(lock, wait):
        raise Fatal(
            f"another process (pid {_holder(path)}) already works for {group} in {folder}: "
            "stop it, or use Kafka to run several workers"
        )
    _held.add(lock)
    _pid_file(path).touch(MODE)
    _pid_file(path).write_text(f"{os.getpid()}\n")

    def release() -> None:
        _held.discard(lock)
        lock.release()

    return release


def _lock(path: Path) -> FileLock:
    return FileLock(path, mode=MODE, thread_local=False)


async def _acquire(lock: FileLock, wait: float) -> bool:
    """Try to take the lock for `wait` seconds, at least once. Return whether it succeeded."""
    deadline = monotonic() + wait
    while True:
        try:
            lock.acquire(blocking=False)
        except Timeout:
            if monotonic() > deadline:
                return False
            await asyncio.sleep(POLL_SECONDS)
        else:
            return True


def _pid_file(path: Path) -> Path:
    return path.with_suffix(".pid")


def _holder(path: Path) -> str:
    try:
        return _pid_file(path).read_text().strip() or "unknown"
    except OSError:
        return "unknown"
