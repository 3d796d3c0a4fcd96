"""Check of free disk space before a write: a full disk stops RocksDB, and kills a process with mapped files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ...schemas.errors import no_room

LOG_ROOM: Final = 64 << 20
"""Bytes that appends must leave free on the disk. Handling earlier records, committing offsets, the clean-up and a
start need this space. The store's limit is higher, so the store stops first, and the work for the store waits in the
log."""
TABLES_ROOM: Final = 64 << 20
"""Bytes that table rows must leave free on the disk: RocksDB merges its files, and fails without space for a new
file."""


def check_room(component: str, folder: Path, *, needed: int) -> None:
    """Raise `Transient` when the disk of a folder has less than `needed` bytes left. Costs a microsecond."""
    try:
        disk = os.statvfs(folder)
    except OSError:  # the following write will report the error
        return
    free = disk.f_bavail * disk.f_frsize
    if free < needed:
        raise no_room(component, folder, free=free, needed=needed)
