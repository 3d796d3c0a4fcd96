"""Check of free disk space before a write: a full disk stops RocksDB, and kills a process with mapped files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ...schemas.errors import no_room

LOG_ROOM: Final = 64 << 20
"""Bytes that appends leave free: handling earlier records, committing offsets, clean-up and a start need space. The
store's limit is higher, so the store stops first and its work waits in the log."""
TABLES_ROOM: Final = 64 << 20
"""Bytes that rows leave free: RocksDB merges its files, and fails without space for a new file."""


def check_room(component: str, folder: Path, *, needed: int) -> None:
    """Raise `Transient` when the disk of a folder has less than `needed` bytes left. Costs a microsecond."""
    try:
        disk = os.statvfs(folder)
    except OSError:  # the write reports it
        return
    free = disk.f_bavail * disk.f_frsize
    if free < needed:
        raise no_room(component, folder, free=free, needed=needed)
