"""Free disk space that a worker needs in each of its folders."""

from __future__ import annotations

from pathlib import Path

from ...adapters.durable_files import free_bytes
from ...adapters.vectors.engine import WRITE_ROOM
from ...schemas.errors import no_room
from ...streams.log.disk_room import LOG_ROOM, TABLES_ROOM
from .settings import Settings


def needed_room(settings: Settings) -> dict[Path, int]:
    """Return the number of bytes that must be free on the disk of each folder of a worker."""
    wanted = [
        (settings.datadir, TABLES_ROOM),
        (settings.broker_folder, LOG_ROOM),
        (settings.qdrant_folder, WRITE_ROOM),
    ]
    needed: dict[Path, int] = {}
    for folder, room in wanted:
        if folder is not None:
            needed[folder] = max(room, needed.get(folder, 0))
    return needed


def why_no_room(needed: dict[Path, int]) -> str:
    """Return a message that names the folders with too little space and their needs, or "" if all have enough."""
    short = [(folder, free) for folder in needed if (free := _free(folder)) is not None and free < needed[folder]]
    return "; ".join(str(no_room("disk", folder, free=free, needed=needed[folder])) for folder, free in short)


def _free(folder: Path) -> int | None:
    """Return the number of free bytes on the disk of a folder, which may not exist yet."""
    for each in (folder, *folder.absolute().parents):
        try:
            return free_bytes(each)
        except OSError:
            continue
    return None
