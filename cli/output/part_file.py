"""Output file that is written in parts: `PATH.part` while it is written, then `PATH`.

`PATH.part.cursor` names the selection, the length of the part that is certainly on the disk, and the cursor after it. A
command that is killed continues from there. An existing file is never overwritten.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from ...client.formats.final_name import give_final_name
from ..errors import usage

CHECKPOINT_BYTES: Final = 256 * 1024
"""Bytes after which the part is synced and its cursor is written."""
STATE_MAX: Final = 256 * 1024


@dataclass(slots=True)
class PartFile:
    """Open part of an output file. Only this process writes it, because it holds the file's lock."""

    target: Path
    selection: str
    """Text that identifies the content. A part with another selection is not continued."""
    cursor: str | None = None
    """The cursor after the written part. None: nothing is written."""
    _descriptor: int = field(default=-1, init=False)
    _length: int = field(default=0, init=False)
    _owned: bool = field(default=False, init=False)
    _finished: bool = field(default=False, init=False)
    _waiting: list[bytes] = field(default_factory=list, init=False)

    @property
    def part(self) -> Path:
        return part_path(self.target)

    @property
    def state(self) -> Path:
        return self.target.with_name(f"{self.target.name}.part.cursor")

    @property
    def is_kept(self) -> bool:
        """True when a later run can continue the part."""
        return self._length > 0 and not self._finished

    @classmethod
    @contextmanager
    def opened(cls, target: Path, *, selection: str) -> Iterator[Self]:
        """Open the part of `target`. Raises CommandFailed (exit 2) if the target exists, if another process writes the
        part, or if the part belongs to something else."""
        file = cls(target, selection)
        check_target(target)
        if forget_finished(file.part):
            file.state.unlink(missing_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file._descriptor = os.open(file.part, flags, 0o600)
        try:
            file._lock()
            file._continue()
            yield file
        finally:
            if file._owned and not file._finished and not file.is_kept:
                file.part.unlink(missing_ok=True)  # nothing that a later run could continue
                file.state.unlink(missing_ok=True)
            os.close(file._descriptor)

    def write(self, text: bytes, cursor: str) -> None:
        """Append a page. `cursor` is the cursor after it."""
        self._waiting.append(text)
        self.cursor = cursor
        if sum(map(len, self._waiting)) >= CHECKPOINT_BYTES:
            self.checkpoint()

    def checkpoint(self) -> None:
        """Make the part durable, then its cursor. A kill in between leaves the former cursor."""
        text = b"".join(self._waiting)
        self._waiting.clear()
        self._append(text)
        os.fsync(self._descriptor)
        self._length += len(text)
        self._write_state()

    def finish(self, text: bytes) -> None:
        """Append the end, and give the part its final name. Raises CommandFailed (exit 2) if the target exists now."""
        self._waiting.append(text)
        self._append(b"".join(self._waiting))
        self._waiting.clear()
        os.fsync(self._descriptor)
        give_name(self.part, self.target)
        self._finished = True
        self.state.unlink(missing_ok=True)

    # -------------------------------------------------------------------------------------------- within
    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise usage(f"another process writes {self.part}; wait until it has ended") from None

    def _continue(self) -> None:
        """Find the end of the durable part, and cut off what comes after it."""
        size = os.fstat(self._descriptor).st_size
        known = self._read_state()
        if size and (known is None or known.get("selection") != self.selection):
            raise usage(
                f"{self.part} belongs to another export; continue with the same options, delete it, or name another "
                "--out"
            )
        length, cursor = (known or {}).get("length"), (known or {}).get("cursor")
        if isinstance(length, int) and 0 < length <= size and isinstance(cursor, str):
            self._length, self.cursor = length, cursor
        os.ftruncate(self._descriptor, self._length)
        os.lseek(self._descriptor, 0, os.SEEK_END)
        self._write_state()
        self._owned = True

    def _read_state(self) -> dict[str, Any] | None:
        """Return the state of the part, or None if there is none. A state that a power cut has damaged is empty."""
        try:
            with self.state.open("rb") as file:
                raw = file.read(STATE_MAX)
        except FileNotFoundError:
            return None
        if not raw:
            return {"selection": self.selection}
        try:
            known = json.loads(raw)
        except ValueError:
            return None
        return known if isinstance(known, dict) else None

    def _write_state(self) -> None:
        known = {"selection": self.selection, "length": self._length, "cursor": self.cursor}
        fresh = self.state.with_name(f"{self.state.name}.new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(json.dumps(known).encode())
        fresh.replace(self.state)

    def _append(self, text: bytes) -> None:
        view = memoryview(text)
        while view:
            try:
                view = view[os.write(self._descriptor, view) :]
            except OSError as error:
                error.filename = os.fspath(self.part)
                raise


def part_path(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


def check_target(target: Path) -> None:
    """Raises CommandFailed (exit 2) if the target exists."""
    if os.path.lexists(target):
        raise _exists(target)


def forget_finished(part: Path) -> bool:
    """Remove the part of an earlier run that was killed between its two last steps: the part has a second name, so it
    is complete, and that file must not change. Return whether there was one."""
    if not os.path.lexists(part) or part.lstat().st_nlink == 1:
        return False
    part.unlink()
    return True


def give_name(part: Path, target: Path) -> None:
    """Give a complete part its final name. Raises CommandFailed (exit 2) if the target exists."""
    try:
        give_final_name(part, target)
    except FileExistsError:
        raise _exists(target) from None


def _exists(target: Path) -> Exception:
    return usage(f"{target} exists; name another --out, or move it away")
