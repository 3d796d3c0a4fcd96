"""Reader of the file of an import: one line or list item at a time, in bounded memory.

An export is NDJSON, or the same objects as one JSON list. A line that cannot be read costs that line.
`import_formats.py` has the table of formats.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from ..schemas.front_door.json_text import BOM, DEPTH_MAX
from ..schemas.imports import ImportFault, ImportReport

LINE_MAX: Final = 8 * 1024 * 1024
"""Maximum length of a line or list item. The longest line is a turn with the vectors of 64 messages."""
CHUNK: Final = 1024 * 1024
NAME_MAX: Final = 64
"""Bytes of the name of a field that are compared."""
_OUTSIDE: Final = re.compile(rb'["{}\[\]]')
_INSIDE: Final = re.compile(rb'["\\]')
HEADER: Final = "data/export.ndjson"
"""The file with the header of an export in a folder of notes."""
_FILL: Final = b" \t\r\n,"


class ImportRefused(ValueError):
    """A file that cannot be imported. The message says what to do."""


@dataclass(frozen=True, slots=True)
class FileLine:
    """A line of an NDJSON file, an item of a JSON list, a row of a database, or a note. `end` and `last`: the offset in
    the source behind it, and the number of its last line. `place`: its file and line, if the source is a folder."""

    number: int
    text: bytes
    end: int
    last: int
    place: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class ImportSource:
    """An open file of an import, a folder of notes, or the body of a request. `name`: for errors."""

    name: str
    file: BinaryIO
    """The file itself, or the file with the header of a folder."""
    path: Path | None = None
    """None: the body of a request."""
    is_folder: bool = False

    @property
    def size(self) -> int:
        """The size of the file with which the source begins."""
        return os.fstat(self.file.fileno()).st_size

    @property
    def changed_at(self) -> datetime | None:
        """The file's time of change; None for a body."""
        return None if self.path is None else datetime.fromtimestamp(int(self.path.stat().st_mtime), UTC)


@contextmanager
def opened_source(path: Path, *, name: str | None = None) -> Iterator[ImportSource]:
    """Open a file to read it, or a folder of notes. Raises ImportRefused for anything else."""
    try:
        if path.is_dir():
            if not (path / HEADER).exists():
                raise ImportRefused(f"{path} is a folder without {HEADER}: name a file, or the folder of an export")
            with opened_source(path / HEADER, name=name or str(path)) as header:
                yield replace(header, path=path, is_folder=True)
            return
        if not stat.S_ISREG(path.stat().st_mode):  # before it is opened: a named pipe would wait for a writer
            raise ImportRefused(f"{path} is not a regular file: name the file of an export")
        with path.open("rb") as file:
            yield ImportSource(name or str(path), file, path)
    except OSError as error:
        raise ImportRefused(
            f"{path} cannot be read ({error.strerror or error}): check its path and its rights"
        ) from None


def located(report: ImportReport, lines: Iterable[FileLine]) -> ImportReport:
    """Return a report in which each error of these lines names the file of its line."""
    places = {each.number: each.place for each in lines if each.place is not None}
    if not places or not report.errors:
        return report

    def in_its_file(fault: ImportFault) -> ImportFault:
        file, line = places.get(fault.line) or (fault.file, fault.line)
        return fault.model_copy(update={"file": file, "line": line})

    return report.model_copy(update={"errors": tuple(map(in_its_file, report.errors))})


def read_ndjson(source: ImportSource, end: int, number: int) -> Iterator[FileLine | ImportFault]:
    """Yield the lines of NDJSON from offset `end` on, which is behind line `number`. Empty lines are left out."""
    yield from _lines(source.file, source.name, _begin(source.file, end), number)


def read_list(source: ImportSource, end: int, number: int) -> Iterator[FileLine | ImportFault]:
    """Yield the items of a JSON list from offset `end` on, which is behind line `number`."""
    begin = _begin(source.file, end)
    yield from _ListScanner(source.name, begin, number, begun=end > 0).read(source.file)


def read_items(source: ImportSource, names: Collection[str], end: int, number: int) -> Iterator[FileLine | ImportFault]:
    """Yield the items of a JSON list, or of the lists with these names in a JSON object, from offset `end` on.

    Raises ImportRefused for an object without such a list.
    """
    begin = _begin(source.file, 0)
    first = source.file.read(CHUNK).lstrip()[:1]
    if first == b"[":
        yield from read_list(source, end, number)
        return
    source.file.seek(begin)
    lists = [each for each in _MemberScanner(begin).read(source.file) if each.name in names]
    if not lists:
        raise ImportRefused(f"{source.name} has no list {' or '.join(sorted(names))}: name another file or --format")
    for n, each in enumerate(lists):
        if n + 1 < len(lists) and end >= lists[n + 1].begin:
            continue
        at, line = (end, number) if end > each.begin else (each.begin, each.line)
        source.file.seek(at)
        yield from _ListScanner(source.name, at, line, begun=True, inner=True).read(source.file)


@dataclass(frozen=True, slots=True)
class _MemberList:
    """A list in a JSON object: the name of its field, the offset behind its bracket, and the line of the bracket."""

    name: str
    begin: int
    line: int


@dataclass(slots=True)
class _MemberScanner:
    """Scanner of the lists that are fields of a JSON object. It looks at brackets and quotes only."""

    at: int
    line: int = 1
    depth: int = 0
    in_text: bool = False
    escaped: bool = False
    text: bytes = b""
    """The beginning of the last text among the fields of the object. Before a value, it is the name of the field."""

    def read(self, file: BinaryIO) -> Iterator[_MemberList]:
        while chunk := file.read(CHUNK):
            yield from self._chunk(chunk)
            self.at += len(chunk)

    def _chunk(self, chunk: bytes) -> Iterator[_MemberList]:
        place = 0
        while place < len(chunk):
            if self.escaped:
                self.escaped, place = False, place + 1
                continue
            found = (_INSIDE if self.in_text else _OUTSIDE).search(chunk, place)
            stop = len(chunk) if found is None else found.start()
            self.line += chunk.count(b"\n", place, stop)
            if self.in_text and self.depth == 1 and len(self.text) < NAME_MAX:
                self.text += chunk[place : min(stop, place + NAME_MAX)]
            if found is None:
                return
            token, place = found[0], found.end()
            if self.in_text:
                self.in_text, self.escaped = token == b"\\", token == b"\\"
            elif token == b'"':
                self.in_text = True
                self.text = b"" if self.depth == 1 else self.text
            elif token in (b"{", b"["):
                if self.depth == 1 and token == b"[":
                    yield _MemberList(self.text.decode("utf-8", "replace"), self.at + place, self.line)
                self.depth += 1
            else:
                self.depth -= 1


def _begin(file: BinaryIO, end: int) -> int:
    """Go to offset `end`, or behind the byte order mark at the beginning of the file. Return the offset."""
    file.seek(0)
    begin = end or (len(BOM) if file.read(len(BOM)) == BOM else 0)
    file.seek(begin)
    return begin


def _lines(file: BinaryIO, name: str, end: int, number: int) -> Iterator[FileLine | ImportFault]:
    while line := file.readline(LINE_MAX + 1):
        number += 1
        end += len(line)
        if len(line) > LINE_MAX and not line.endswith(b"\n"):
            while (rest := file.readline(CHUNK)) and not rest.endswith(b"\n"):
                end += len(rest)
            end += len(rest)
            yield too_long(name, number)
        elif text := line.strip():
            yield FileLine(number, text, end, number)


def too_long(name: str, number: int) -> ImportFault:
    return ImportFault(
        file=name,
        line=number,
        what=f"the line has more than {LINE_MAX} bytes",
        what_to_do="export it again, without --embeddings if it has vectors",
    )


@dataclass(slots=True)
class _ListScanner:
    """Scanner of the items of a JSON list. It looks at brackets and quotes only; the item is parsed later."""

    name: str
    at: int
    """Offset of the next byte."""
    line: int
    begun: bool
    inner: bool = False
    """True for a list within an object. What follows the list is not read."""
    ended: bool = False
    depth: int = 0
    deepest: int = 0
    in_text: bool = False
    escaped: bool = False
    size: int = 0
    began: int = 0
    parts: list[bytes] = field(default_factory=list)

    def read(self, file: BinaryIO) -> Iterator[FileLine | ImportFault]:
        self.line = max(self.line, 1)
        while not (self.inner and self.ended) and (chunk := file.read(CHUNK)):
            yield from self._chunk(chunk)
        if self.depth or self.in_text or not self.ended:
            yield self._fault("the list does not end: the file is cut", "export it again, or copy the whole file")

    def _chunk(self, chunk: bytes) -> Iterator[FileLine | ImportFault]:
        place, start = 0, 0
        while place < len(chunk):
            if self.escaped:
                self.escaped, place = False, place + 1
                continue
            found = (_INSIDE if self.in_text else _OUTSIDE).search(chunk, place)
            if found is None:
                break
            token, place = found[0], found.end()
            if self.in_text:
                self.in_text, self.escaped = token == b"\\", token == b"\\"
                start = start if self.depth else place
                continue
            if self.depth == 0:
                yield from self._between(chunk[start : found.start()])
                start = found.start()
                if not self.begun and token == b"[":
                    self.begun, start = True, place
                elif token == b"]" and not self.ended:
                    self.ended, start = True, place
                    if self.inner:
                        return
                elif token in (b"{", b"["):
                    self.depth, self.deepest, self.size, self.parts, self.began = 1, 1, 0, [], self.line
                else:
                    self.in_text, start = token == b'"', place
                    yield self._fault("the list has something else than a record", "remove it from the list")
            elif token == b'"':
                self.in_text = True
            else:
                self.depth += 1 if token in (b"{", b"[") else -1
                self.deepest = max(self.deepest, self.depth)
                if self.depth == 0:
                    self._keep(chunk[start:place])
                    yield self._item(self.at + place)
                    start = place
        rest = chunk[start:]
        if self.depth:
            self._keep(rest)
        elif not self.in_text:
            yield from self._between(rest)
        self.at += len(chunk)

    def _keep(self, part: bytes) -> None:
        self.size += len(part)
        self.line += part.count(b"\n")
        self.parts = [*self.parts, part] if self.size <= LINE_MAX else []

    def _between(self, fill: bytes) -> Iterator[ImportFault]:
        self.line += fill.count(b"\n")
        if fill.strip(_FILL):
            yield self._fault("the list has something else than a record", "remove it from the list")

    def _item(self, end: int) -> FileLine | ImportFault:
        if self.size > LINE_MAX:
            return too_long(self.name, self.began)
        if self.deepest > DEPTH_MAX:
            return ImportFault(
                file=self.name,
                line=self.began,
                what=f"the record is nested deeper than {DEPTH_MAX} levels",
                what_to_do="restore the line as the export has it",
            )
        return FileLine(self.began, b"".join(self.parts), end, self.line)

    def _fault(self, what: str, what_to_do: str) -> ImportFault:
        return ImportFault(file=self.name, line=self.line, what=what, what_to_do=what_to_do)
