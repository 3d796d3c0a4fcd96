"""The formats of an import: a table of readers, and the detection of the format of a file.

A reader yields the lines of an export lazily: one `FileLine` for each record, and an `ImportFault` for each item that
cannot be read. It can begin behind any line that it yielded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, get_args

from ..schemas.export import ExportHeader, ExportLine, FileFormat
from ..schemas.front_door.json_text import BOM
from ..schemas.imports import ImportFault
from ..schemas.turns import Owner
from .foreign.agentos import TRACES, read_agentos
from .foreign.chatgpt import read_chatgpt
from .foreign.letta import read_letta
from .foreign.mem0 import read_mem0
from .foreign.table import columns_of, read_table
from .foreign.zep import read_zep
from .formats.notes_import import read_notes, size_of_notes
from .formats.sqlite_import import MAGIC, is_export, read_sqlite, table_names
from .import_file import CHUNK, FileLine, ImportRefused, ImportSource, read_list, read_ndjson

ForeignFormat = Literal["chatgpt", "csv", "agentos", "mem0", "zep", "letta"]
FormatName = Literal[FileFormat, ForeignFormat]
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
    keys: tuple[str, ...] = ()
    """The names of the fields of the object, or of the first object of the list, as far as the first bytes have
    them; of a database, the table by which it is known."""

    def has(self, container: Container, *keys: str) -> bool:
        """Return whether the file is such a container with these fields."""
        return self.container == container and set(keys) <= set(self.keys)

    @property
    def first_line(self) -> bytes:
        return self.head.partition(b"\n")[0]

    @property
    def seen(self) -> str:
        """Description for a person."""
        if self.container == "text":
            return "a text that is not JSON, and its first line has no column content"
        named = f" with the fields {', '.join(each[:40] for each in self.keys[:8])}" if self.keys else ""
        return f"a JSON object{named}" if self.container == "object" else f"a JSON list of objects{named}"

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
            if is_export(head):
                return cls("database", head, ("records",))
            if TRACES not in table_names(source):
                raise ImportRefused(f"{source.name} is a SQLite database of another program: export it as JSON or CSV")
            return cls("database", head, (TRACES,))
        if head[:1] == b"\0" or head[1:2] == b"\0":
            raise ImportRefused(f"{source.name} is UTF-16 or binary: convert it to UTF-8")
        head = head.removeprefix(BOM).lstrip()
        if not head:
            raise ImportRefused(f"{source.name} is empty: export it again")
        if head[:1] not in (b"{", b"["):
            return cls("text", head)
        container: Container = "object" if head[:1] == b"{" else "list"
        return cls(container, head, tuple(_keys(head, depth=1 if container == "object" else 2)))


_TOKEN: Final = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]', re.DOTALL)


def _keys(head: bytes, *, depth: int) -> Iterator[str]:
    """Yield the names of the fields of the first object at this depth."""
    at = 0
    for token in _TOKEN.finditer(head):
        if token[0] in (b"{", b"["):
            at += 1
        elif token[0] in (b"}", b"]"):
            if at == depth:
                return
            at -= 1
        elif at == depth and token[2]:
            yield token[1].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class ImportFormat:
    """A format: its name, the test whether a file has it, and its reader."""

    name: FormatName
    matches: Callable[[Beginning], bool]
    read: Reader
    size: Callable[[ImportSource], int] = lambda source: source.size
    """The offset behind the last line, for the progress."""
    foreign: bool = True
    """True if the file is of another memory: it has no line `export`, and the target is named by the caller."""
    names_users: bool = False
    """True if the file has the user of each memory, so that the caller may leave out the user."""

    def header(self, source: ImportSource, *, tenant_id: str | None, owner: Owner | None) -> bytes:
        """Return the line `export` of a file. For a foreign file, make it: the file's time of change is the moment of
        the export. Raises ImportRefused, also for a file that the reader refuses."""
        first = next(self.read(source, 0, 0), None)
        if not self.foreign:
            if not isinstance(first, FileLine):
                raise ImportRefused(f"{source.name} does not begin with the header of an export")
            return first.text
        if tenant_id is None or (owner is None and not self.names_users):
            needed = "--tenant (tenant_id)" if self.names_users else "--tenant and --user (tenant_id and user_id)"
            raise ImportRefused(f"{source.name} is of the format {self.name}: give {needed}")
        header = ExportHeader(
            at=source.changed_at or datetime.now(UTC),
            tenant_id=tenant_id,
            owner=owner,
            ceiling="secret",
            conversations=True,
        )
        return ExportLine.of("export", header).to_line().encode()


FORMATS: Final = (
    ImportFormat("ndjson", lambda begin: begin.has("object", "kind"), read_ndjson, foreign=False),
    ImportFormat("json", lambda begin: begin.has("list", "kind"), read_list, foreign=False),
    ImportFormat("sqlite", lambda begin: begin.has("database", "records"), read_sqlite, foreign=False),
    ImportFormat("markdown", lambda begin: begin.container == "folder", read_notes, size_of_notes, foreign=False),
    ImportFormat("obsidian", lambda begin: begin.container == "folder", read_notes, size_of_notes, foreign=False),
    ImportFormat("chatgpt", lambda begin: begin.has("list", "mapping"), read_chatgpt),
    ImportFormat(
        "csv", lambda begin: begin.container == "text" and columns_of(begin.first_line) is not None, read_table
    ),
    ImportFormat(
        "agentos",
        lambda begin: (
            begin.has("database", TRACES)
            or begin.has("object", "traces")
            or begin.has("list", "content", "type", "scope")
        ),
        read_agentos,
    ),
    ImportFormat(
        "mem0",
        lambda begin: begin.has("list", "memory") or (begin.has("object", "results") and b'"memory"' in begin.head),
        read_mem0,
        names_users=True,
    ),
    ImportFormat(
        "zep",
        lambda begin: (
            begin.has("list", "fact")
            or begin.has("list", "summary", "labels")
            or (
                "traces" not in begin.keys and any(begin.has("object", each) for each in ("edges", "episodes", "nodes"))
            )
        ),
        read_zep,
    ),
    ImportFormat(
        "letta",
        lambda begin: (
            begin.has("object", "agents")
            or (begin.has("list", "text") and any(begin.has("list", each) for each in ("archive_id", "is_deleted")))
        ),
        read_letta,
    ),
)


def format_of(source: ImportSource, given: GivenFormat = "auto") -> ImportFormat:
    """Return the format of a file. A given format is believed if the file has no other format.

    Raises ImportRefused for an unknown file, for a file of several formats, and for another format than the given.
    """
    begin = Beginning.of(source)
    fitting = [each for each in FORMATS if each.matches(begin)]
    if begin.container == "folder":  # both forms of notes have one reader
        fitting = [each for each in fitting if given in ("auto", each.name)][:1] or fitting
    if given == "auto" and len(fitting) == 1:
        return fitting[0]
    for each in FORMATS:
        if each.name == given and (each in fitting or not fitting):
            return each
    found = " or ".join(each.name for each in fitting)
    if given != "auto":
        raise ImportRefused(f"{source.name} is {found}, not {given}: leave out the format, or give --format {found}")
    if fitting:
        raise ImportRefused(f"{source.name} is {begin.seen}, so it may be {found}: give --format")
    formats = "|".join(FORMAT_NAMES[1:])
    raise ImportRefused(f"{source.name} is {begin.seen}. No format begins so: correct it, or give --format {formats}")
