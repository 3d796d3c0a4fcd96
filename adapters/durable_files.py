"""Durable file operations: fsync of files and folders, and atomic replacement of a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SYNCS_AT_ONCE = 8
"""Maximum number of concurrent syncs. The file system joins concurrent syncs into one journal write."""
_sync_data: Callable[[int], object] = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


def write_atomically(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace the content of `path` by `data`.

    A reader sees the old content or the new content, never a mixture, even after a crash. The new content is durable
    when this function returns.

    `mode` has the permissions of the new file. By default, only the owner may read the file, because callers write
    tokens and addresses.
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
    """Return the free bytes of the folder's disk that this user may use."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def make_folder(folder: Path, *, mode: int = 0o777) -> None:
    """Create a folder and its missing parents durably. Raise FileExistsError when the folder exists."""
    made = [folder, *(parent for parent in folder.parents if not parent.exists())]
    folder.mkdir(mode=mode, parents=True)
    for each in made:
        sync_folder(each.parent)


def sync_folder(folder: Path) -> None:
    """Make the creation, renaming and deletion of entries in `folder` durable."""
    _synced(folder, os.fsync)


def sync_file(path: Path) -> None:
    """Make the content of a file durable, including writes through a memory mapping."""
    _synced(path, _sync_data)


def sync_tree(folder: Path) -> None:
    """Make a folder and everything in it durable. The folder's own name is synced with its parent."""
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
