"""Files that are on the disk, also after a power cut: syncs, and writes that replace a file as a whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SYNCS_AT_ONCE = 8
"""Syncs that run beside each other. A file system puts them into one write of its journal."""
_sync_data: Callable[[int], object] = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


def write_atomically(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace `path` by `data`. A reader sees the old content or the new one, also after a crash; when this returns,
    the new content is on disk.

    `mode` is the permissions of the new file. By default only the owner may read it, because files with tokens and
    addresses are written here.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        os.fchmod(descriptor, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def free_bytes(folder: Path) -> int:
    """Return the bytes that this user may still write on the disk of a folder."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def make_folder(folder: Path, *, mode: int = 0o777) -> None:
    """Create a folder with its parents, on the disk when this returns. FileExistsError when it exists."""
    made = [folder, *(parent for parent in folder.parents if not parent.exists())]
    folder.mkdir(mode=mode, parents=True)
    for each in made:
        sync_folder(each.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder`, and renames, survive a power cut."""
    _synced(folder, os.fsync)


def sync_file(path: Path) -> None:
    """Make the content of a file survive a power cut, also what was written through a mapping of it."""
    _synced(path, _sync_data)


def sync_tree(folder: Path) -> None:
    """Make a folder with everything in it survive a power cut. Its own name is its parent's to sync."""
    with ThreadPoolExecutor(SYNCS_AT_ONCE, thread_name_prefix="sync") as threads:
        for _ in threads.map(lambda path: _synced(path, os.fsync), _entries(folder)):
            pass


def _entries(folder: Path) -> Iterator[Path]:
    for at, _, names in os.walk(folder, topdown=False):
        yield from (Path(at, name) for name in names)
        yield Path(at)


def _synced(path: Path, sync: Callable[[int], object]) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)
