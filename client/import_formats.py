"""The formats of an import: a table of readers, and the detection of the format of a file.

A reader yields the lines of an export lazily: one `FileLine` for each record, and an `ImportFault` for each item that
cannot be read. It can begin behind any line that it yielded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, get_args

from ..schemas.export import FileFormat
from ..schemas.front_door.json_text import BOM
from ..schemas.imports import ImportFault
from .formats.notes_import import read_notes, size_of_notes
from .formats.sqlite_import import MAGIC, read_sqlite
from .import_file import CHUNK, FileLine, ImportRefused, ImportSource, read_list, read_ndjson

FormatName = FileFormat
GivenFormat = Literal["auto", FormatName]
FORMAT_NAMES: Final[tuple[str, ...]] = ("auto", *get_args(FormatName))
Container = Literal["object", "list", "text", "database", "folder"]
Reader = Callable[[ImportSource, int, int], Iterator[FileLine | ImportFault]]
"""A function of the source, and of the offset and the line number behind which it begins; both are 0 at first."""
_REFUSED: Final = (
    (b"\x1f\x8b", "is compressed with gzip: decompress it first (gunzip)"),
    (b"PK\x03\x04", "is a zip archive: unpack it first, and name the file in it"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd: decompress it first"),
    (b"\xff\xfe", "is UTF-16: convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"),
    (b"\xfe\xff", "is UTF-16: convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"),
)


@dataclass(frozen=True, slots=True)
class Beginning:
    """The beginning of a file, from which its format is detected."""

    container: Container
    head: bytes
    """The first bytes, without a byte order mark."""

    @classmethod
    def of(cls, source: ImportSource) -> Beginning:
        """Read the first bytes, and go back to the beginning. Raises ImportRefused for a file that no format has."""
        if source.is_folder:
            return cls("folder", b"")
        head = source.file.read(CHUNK)
        source.file.seek(0)
        for beginning, what in _REFUSED:
            if head.startswith(beginning):
                raise ImportRefused(f"{source.name} {what}")
        if head.startswith(MAGIC):
            return cls("database", head)
        if head[:1] == b"\0" or head[1:2] == b"\0":
            raise ImportRefused(f"{source.name} is UTF-16 or binary: convert it to UTF-8")
        head = head.removeprefix(BOM).lstrip()
        if not head:
            raise ImportRefused(f"{source.name} is empty")
        return cls({b"{": "object", b"[": "list"}.get(head[:1], "text"), head)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class ImportFormat:
    """A format: its name, the test whether a file has it, and its reader."""

    name: FormatName
    matches: Callable[[Beginning], bool]
    read: Reader
    size: Callable[[ImportSource], int] = lambda source: source.size
    """The offset behind the last line, for the progress."""


FORMATS: Final = (
    ImportFormat("ndjson", lambda begin: begin.container == "object", read_ndjson),
    ImportFormat("json", lambda begin: begin.container == "list", read_list),
    ImportFormat("sqlite", lambda begin: begin.container == "database", read_sqlite),
    ImportFormat("markdown", lambda begin: begin.container == "folder", read_notes, size_of_notes),
    ImportFormat("obsidian", lambda begin: begin.container == "folder", read_notes, size_of_notes),
)


def format_of(source: ImportSource, given: GivenFormat = "auto") -> ImportFormat:
    """Return the format of a file. Raises ImportRefused for an unknown file, and for another format than the given."""
    begin = Beginning.of(source)
    fitting = [each for each in FORMATS if each.matches(begin)]
    chosen = [each for each in fitting if given in ("auto", each.name)]
    if len(chosen) == 1 or (chosen and begin.container == "folder"):  # both forms of notes have one reader
        return chosen[0]
    if given == "auto":
        raise ImportRefused(f"{source.name} is of no known format: name the file of an export")
    seen = " or ".join(each.name for each in fitting) or "of no known format"
    raise ImportRefused(f"{source.name} is {seen}: leave out the format, or give --format {seen}")
