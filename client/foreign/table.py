"""Reader of a CSV file: the column `content` has statements, and other columns become metadata."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from ...schemas.front_door.json_text import BOM
from ...schemas.imports import ImportFault
from ..import_file import LINE_MAX, FileLine, ImportRefused, ImportSource
from .items import END, statement

CONTENT: Final = "content"
DELIMITERS: Final = ",;\t"
_CORRECT: Final = "correct the row, or remove it from the file"


def columns_of(first: bytes) -> tuple[str, list[str]] | None:
    """Return the delimiter and the column names of a first line with the column `content`; None for another line."""
    try:
        text = first.removeprefix(BOM).decode()
    except UnicodeDecodeError:
        return None
    for delimiter in DELIMITERS:
        try:
            names = [each.strip() for each in next(csv.reader([text], delimiter=delimiter), [])]
        except csv.Error:
            continue
        if CONTENT in names:
            return delimiter, names
    return None


def read_table(source: ImportSource, end: int, number: int) -> Iterator[FileLine | ImportFault]:
    """Yield one line for each row. Raises ImportRefused for a file without the column `content`."""
    source.file.seek(0)
    first = source.file.readline(LINE_MAX)
    found = columns_of(first)
    if found is None:
        raise ImportRefused(f"{source.name} has no column {CONTENT} in its first line: name the column of the texts so")
    delimiter, names = found
    if len(set(names)) < len(names):
        raise ImportRefused(f"{source.name} has two columns with the same name: rename one")
    source.file.seek(end or len(first))
    text = _Text(source.file, source.name, end or len(first), number or 1)
    rows = csv.reader(text, delimiter=delimiter, strict=True)
    while True:
        begin = text.line + 1
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield ImportFault(file=source.name, line=begin, what=f"the row {error}"[:500], what_to_do=_CORRECT)
            continue
        yield from text.take_faults()
        if row is None:
            break
        if any(row):
            yield _line(row, names, text, begin)
    yield FileLine(text.line, END, text.end, text.line)


def _line(row: list[str], names: list[str], text: _Text, begin: int) -> FileLine | ImportFault:
    what = None
    if any("\udc80" <= each <= "\udcff" for cell in row for each in cell):
        what = "the row is not UTF-8"
    elif len(row) > len(names):
        what = f"the row has {len(row)} cells, and the first line has {len(names)}"
    else:
        cells = dict(zip(names, row, strict=False))
        metadata = {name: each for name, each in cells.items() if name and name != CONTENT and each}
        try:
            kind, record = statement(cells.get(CONTENT), metadata=metadata)
        except ValueError as error:
            what = f"the row {error}"
    if what is not None:
        return ImportFault(file=text.name, line=begin, what=what, what_to_do=_CORRECT)
    fields = json.dumps({"kind": kind, "line": begin, "record": record}, ensure_ascii=False)
    return FileLine(begin, fields.encode(), text.end, text.line)


@dataclass(slots=True)
class _Text:
    """The lines of a file as text. A line that is too long is left out, and is a fault. Bytes that are not UTF-8 become
    surrogates."""

    file: BinaryIO
    name: str
    end: int
    line: int
    faults: list[ImportFault] = field(default_factory=list)

    def __iter__(self) -> Iterator[str]:
        while raw := self.file.readline(LINE_MAX + 1):
            self.line += 1
            self.end += len(raw)
            if len(raw) <= LINE_MAX or raw.endswith(b"\n"):
                yield raw.decode("utf-8", "surrogateescape")
                continue
            while (rest := self.file.readline(LINE_MAX)) and not rest.endswith(b"\n"):
                self.end += len(rest)
            self.end += len(rest)
            what = f"the line has more than {LINE_MAX} bytes"
            self.faults.append(ImportFault(file=self.name, line=self.line, what=what, what_to_do=_CORRECT))

    def take_faults(self) -> list[ImportFault]:
        """Return the faults since the last call."""
        taken, self.faults = self.faults, []
        return taken
