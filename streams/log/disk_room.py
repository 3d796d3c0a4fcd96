"""Free space of a disk, checked before a write: a full disk ends RocksDB, and a mapped file ends the process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ...schemas.errors import no_room

LOG_ROOM: Final = 64 << 20
"""Bytes that appends leave free, for what was appended before: its handling, its offsets, the clean-up, and a start.
The store stops earlier, so what it cannot take yet waits in the log."""
TABLES_ROOM: Final = 64 << 20
"""Bytes that rows leave free: RocksDB merges its files, and ends when it has no room for a new one."""


def check_room(component: str, folder: Path, *, needed: int) -> None:
    """Raise `Transient` when the disk of a folder has less than `needed` bytes left. Costs a microsecond."""
    try:
        disk = os.statvfs(folder)
    except OSError:  # the write reports it
        return
    free = disk.f_bavail * disk.f_frsize
    if free < needed:
        raise no_room(component, folder, free=free, needed=needed)
