"""A disk whose power can be cut: an ext4 file system in a file, mounted over a loop device (Linux, root).

`cut` shuts the file system down without its journal (EXT4_IOC_SHUTDOWN): what was not synced is gone, as after a power
cut, while the processes on it still run. `scatter` first writes some unsynced pages of its files to the disk, as the
kernel does at moments of its own, so that a later write may survive an earlier one. The file system syncs no file by
itself at a rename (`noauto_da_alloc`).

It cannot show a drive that loses or reorders what it said it had synced.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import random
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

SIZE = 2 << 30
"""Bytes; the file is sparse, and few of them are used."""
_SHUTDOWN = 0x8004587D
_NO_LOG_FLUSH = 2
_WRITE_AND_WAIT = 7
"""sync_file_range(2): wait before, write, wait after."""
_PAGE = 4096
_LIBC = ctypes.CDLL(None, use_errno=True)


class NoLoopDisk(Exception):
    """This machine or user cannot mount a file over a loop device."""


class LoopDisk:
    """One disk, mounted at `folder` between `mount` and `unmount`."""

    def __init__(self, folder: Path, *, size: int = SIZE) -> None:
        """Make the disk's file and its mount point in `folder`. Raises NoLoopDisk."""
        self._image = folder / "disk.img"
        self.folder = folder / "disk"
        if os.geteuid() or not shutil.which("mkfs.ext4") or not Path("/dev/loop-control").exists():
            raise NoLoopDisk("needs root, mkfs.ext4 and loop devices")
        self.folder.mkdir(parents=True)
        with self._image.open("wb") as file:
            file.truncate(size)
        _run("mkfs.ext4", "-q", "-F", str(self._image))

    def mount(self) -> None:
        options = "loop,commit=1,noauto_da_alloc"
        _run("mount", "-o", options, str(self._image), str(self.folder))

    def unmount(self) -> None:
        """Unmount, when the processes that used the disk have ended."""
        for _ in range(100):
            if not subprocess.run(["umount", str(self.folder)], capture_output=True, check=False).returncode:
                return
            time.sleep(0.05)
        _run("umount", str(self.folder))

    def scatter(self, random_: random.Random) -> None:
        """Write some dirty pages of some files, then what the file system's journal has."""
        files = [Path(at, name) for at, _, names in os.walk(self.folder) for name in names]
        for path in random_.sample(files, k=min(len(files), random_.randrange(1, 40))):
            with contextlib.suppress(OSError), path.open("rb") as file:
                pages = os.fstat(file.fileno()).st_size // _PAGE + 1
                for _ in range(random_.randrange(1, 5)):
                    first = random_.choice((0, random_.randrange(pages), random_.randrange(min(pages, 64))))
                    count = random_.choice((1, 1, 4, pages))
                    _LIBC.sync_file_range(
                        file.fileno(), ctypes.c_int64(first * _PAGE), ctypes.c_int64(count * _PAGE), _WRITE_AND_WAIT
                    )
        if random_.random() < 0.7:
            with contextlib.suppress(OSError), (self.folder / ".journal").open("wb") as file:
                file.write(b"x")
                file.flush()
                os.fsync(file.fileno())

    def cut(self) -> None:
        """Cut the power: from now on no write reaches the disk."""
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def loop_disk(folder: Path, *, size: int = SIZE) -> Iterator[LoopDisk]:
    """A mounted disk in `folder`, unmounted and deleted afterwards. Raises NoLoopDisk."""
    disk = LoopDisk(folder, size=size)
    try:
        disk.mount()
    except OSError as error:
        raise NoLoopDisk(str(error)) from error
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk.folder)], capture_output=True, check=False)
        disk._image.unlink()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
