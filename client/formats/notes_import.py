"""Reader of an export in a folder of notes. The folder is hostile: symbolic links are not followed, and no name or link
in a note is used as a path."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from ...schemas.export import RECORD_KINDS
from ...schemas.front_door.json_text import NotJson, parse_text
from ...schemas.imports import ImportFault
from ..import_file import HEADER, FileLine, ImportRefused, ImportSource, read_ndjson
from .front_matter import NotFrontMatter, read_front_matter
from .note_bodies import FOLDERS
from .notes_export import DATA

NOTE_MAX: Final = 4 * 1024 * 1024
"""Maximum size of a note: a record of 900 KiB as escaped JSON, and its text."""
AS_EXPORTED: Final = "restore the file as the export has it, or export again"


class _Unreadable(Exception):
    """A file that is not read. The message says why."""


def size_of_notes(source: ImportSource) -> int:
    """Return the size of all files that are read."""
    return 0 if source.path is None else sum(_size(source.path, each) for each in _paths(source.path))


def read_notes(source: ImportSource, end: int, number: int) -> Iterator[FileLine | ImportFault]:
    """Yield the records of a folder, kind by kind, behind record `number`. Each line names its file."""
    if source.path is None:
        raise ImportRefused("a folder is no body of a request: send its lines, as the client does")
    count = begun = 0
    for path in _paths(source.path):
        shown = os.fsencode(path).decode("utf-8", "replace")
        begun += _size(source.path, path)
        if path.endswith(".md") and count < number:
            count += 1
            continue
        for each in _items(source.path, path, shown):
            count += 1
            if count <= number:
                continue
            if isinstance(each, FileLine):
                yield FileLine(count, each.text, begun, count, place=(shown, each.number))
            else:
                yield each


def _items(folder: Path, path: str, shown: str) -> Iterator[FileLine | ImportFault]:
    """Yield the record of a note, or the lines of a file in `data`."""
    try:
        with _opened(folder, path) as file:
            if path.endswith(".ndjson"):
                yield from read_ndjson(ImportSource(shown, file), 0, 0)
            else:
                yield FileLine(1, _line(file.read(NOTE_MAX + 1)), 0, 1)
    except (_Unreadable, NotFrontMatter) as error:
        yield ImportFault(file=shown, line=0, what=f"the file {error}", what_to_do=AS_EXPORTED)


def _line(raw: bytes) -> bytes:
    """Return the line of a note's record. Raises _Unreadable and NotFrontMatter."""
    if len(raw) > NOTE_MAX:
        raise _Unreadable(f"has more than {NOTE_MAX} bytes")
    fields = read_front_matter(raw)
    kind, record = fields.get("kind"), fields.get("record")
    if isinstance(record, str):
        try:
            record = parse_text(record)
        except NotJson as error:
            raise _Unreadable(f"has a record that {error}") from None
    if kind not in FOLDERS or not isinstance(record, dict):
        raise _Unreadable("has no kind and record in its front matter")
    return json.dumps({"kind": kind, "record": record}).encode()


# ------------------------------------------------------------------------------------------------ files
def _paths(folder: Path) -> Iterator[str]:
    """Yield the files of an export in the order of an export, relative to the folder. A symbolic link to a folder is
    yielded itself."""
    data = {name: f"{DATA}/{name}.ndjson" for name in _names(folder / DATA, ".ndjson")}
    yield HEADER
    for kind in RECORD_KINDS:
        if kind in data:
            yield data[kind]
        if (of_kind := FOLDERS.get(kind)) is None:
            continue
        if (folder / of_kind).is_symlink():
            yield of_kind
        else:
            yield from (f"{of_kind}/{each}.md" for each in _names(folder / of_kind, ".md"))
    yield from (path for name, path in data.items() if name not in (*RECORD_KINDS, "export", "end"))
    if "end" in data:
        yield data["end"]


def _names(folder: Path, suffix: str) -> Sequence[str]:
    """Return the sorted names of the files in a folder, without their suffix."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return sorted(each.removesuffix(suffix) for each in names if each.endswith(suffix) and not each.startswith("."))


def _size(folder: Path, path: str) -> int:
    try:
        return (folder / path).lstat().st_size
    except OSError:
        return 0


@contextmanager
def _opened(folder: Path, path: str) -> Iterator[BinaryIO]:
    """Open a regular file without following symbolic links below the folder. Raises _Unreadable."""
    of_kind, _, name = path.rpartition("/")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        within = os.open(folder / of_kind, flags | os.O_DIRECTORY)
        try:
            descriptor = os.open(name, flags, dir_fd=within)
        finally:
            os.close(within)
    except OSError as error:
        linked = (folder / of_kind).is_symlink() or (folder / path).is_symlink()
        raise _Unreadable("is a symbolic link" if linked else f"cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _Unreadable("is not a regular file")
    with open(descriptor, "rb") as file:
        yield file
