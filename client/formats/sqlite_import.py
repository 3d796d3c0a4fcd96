"""Reader of an export in a SQLite database. The file is hostile: only plain tables are read, and nothing in it is
executed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import chain
from typing import Any, Final

from ...schemas.front_door.json_text import NotJson, parse_text
from ...schemas.imports import ImportFault
from ..import_file import LINE_MAX, FileLine, ImportRefused, ImportSource
from .sqlite_export import APPLICATION_ID, SCHEMA_VERSION, TABLE_COLUMNS

MAGIC: Final = b"SQLite format 3\x00"
TAGS_MAX: Final = 1_000
"""Maximum number of tags that are read for a record. A record has at most 32; the contract then refuses it."""
_SELECT: Final = (
    "SELECT position, kind, id, length(CAST(record AS BLOB)), "
    "CASE WHEN length(CAST(record AS BLOB)) <= ? THEN record END FROM records "
)
AS_EXPORTED: Final = "restore the row as the export has it, or export again"


def is_export(head: bytes) -> bool:
    """Return whether the first bytes of a database have the mark of an export. SQLite writes it big-endian at 68."""
    return int.from_bytes(head[68:72], "big") == APPLICATION_ID


def read_sqlite(source: ImportSource, end: int, number: int) -> Iterator[FileLine | ImportFault]:
    """Yield the rows of `records` behind position `number`, each with the tags of the table `tags`. Raises
    ImportRefused."""
    try:
        with opened_database(source) as db:
            _check(db, source.name)
            yield from _rows(db, source, number)
    except sqlite3.Error as error:
        raise unreadable_database(source, error) from None


def _rows(db: sqlite3.Connection, source: ImportSource, position: int) -> Iterator[FileLine | ImportFault]:
    last = _number(db.execute("SELECT max(position) FROM records").fetchone()[0])
    for given, kind, name, size, record in chain(
        db.execute(_SELECT + "WHERE position > ? AND kind IS NOT 'end' ORDER BY position", (LINE_MAX, position)),
        _end(db, position, last),
    ):
        at = _number(given)
        end = source.size * at // max(1, last)
        text = record if isinstance(record, str) and isinstance(kind, str) else None
        if text is None:
            what = f"the record has {size} bytes, or is no text"
            yield ImportFault(file=source.name, line=at, what=what, what_to_do=AS_EXPORTED)
            continue
        try:
            line = _line(db, kind, name, text)
        except NotJson as error:
            what = f"the record {error}"
            yield ImportFault(file=source.name, line=at, what=what, what_to_do=AS_EXPORTED)
            continue
        yield FileLine(at, line, end, at)


def _number(value: Any) -> int:
    """Return a position. A hostile table may have anything else there."""
    return max(0, value) if isinstance(value, int) else 0


def _end(db: sqlite3.Connection, position: int, last: int) -> Iterator[tuple[Any, ...]]:
    """Yield the line `end` as the last one: rows that were added to an export are behind it."""
    for at, *row in db.execute(_SELECT + "WHERE kind = 'end' LIMIT 1", (LINE_MAX,)):
        if position < (behind := last if at == last else last + 1):
            yield (behind, *row)


def _line(db: sqlite3.Connection, kind: str, name: Any, text: str) -> bytes:
    """Return a line of an export. Raises NotJson."""
    record = parse_text(text)
    if isinstance(record, dict) and isinstance(tags := record.get("tags"), list) and isinstance(name, str):
        found = db.execute("SELECT tag FROM tags WHERE id = ? ORDER BY tag LIMIT ?", (name, TAGS_MAX))
        record["tags"] = [*tags, *(tag for (tag,) in found if isinstance(tag, str) and tag not in tags)]
    return json.dumps({"kind": kind, "record": record}).encode()


def unreadable_database(source: ImportSource, error: sqlite3.Error) -> ImportRefused:
    return ImportRefused(f"{source.name} cannot be read as a SQLite database ({error}): export again")


@contextmanager
def opened_database(source: ImportSource) -> Iterator[sqlite3.Connection]:
    """Open a database of any program to read it. Raises ImportRefused for a database with anything that could run, and
    sqlite3.Error."""
    if source.path is None:
        raise ImportRefused("a database is no body of a request: send its lines, as the client does")
    path, name = source.path, source.name
    for beside in ("-wal", "-journal"):
        other = path.with_name(path.name + beside)
        if other.exists() and other.stat().st_size:
            raise ImportRefused(f"{other} exists: close the program that writes {name}, or export again")
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as db:
        db.text_factory = lambda raw: raw.decode("utf-8", "replace")
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * LINE_MAX)
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA query_only = ON")
        db.execute("PRAGMA cell_size_check = ON")
        found = db.execute("SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'view') LIMIT 1").fetchone()
        if found is not None:
            raise ImportRefused(f"{name} has the {found[0]} {str(found[1])[:64]!r}: an export has none; remove it")
        yield db


def table_names(source: ImportSource) -> tuple[str, ...]:
    """Return the names of the tables of a database. Raises ImportRefused."""
    try:
        with opened_database(source) as db:
            return tuple(str(name) for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'"))
    except sqlite3.Error as error:
        raise unreadable_database(source, error) from None


def stored_columns(db: sqlite3.Connection, table: str) -> list[str]:
    """Return the columns of a plain table; nothing for a virtual or an absent table, and for a table with a column that
    is computed while it is read."""
    plain = "SELECT 1 FROM sqlite_schema WHERE name = ? AND type = 'table' AND sql LIKE 'CREATE TABLE%'"
    if db.execute(plain, (table,)).fetchone() is None:
        return []
    found = [(each[1], each[6]) for each in db.execute(f"PRAGMA table_xinfo({table})")]
    return [] if any(hidden for _, hidden in found) else [name for name, _ in found]


def _check(db: sqlite3.Connection, name: str) -> None:
    """Raises ImportRefused for a database of another version, or with other tables than an export has."""
    if (version := db.execute("PRAGMA user_version").fetchone()[0]) != SCHEMA_VERSION:
        raise ImportRefused(f"{name} has version {version}, known is {SCHEMA_VERSION}: use another memstream")
    for table, columns in TABLE_COLUMNS.items():
        if stored_columns(db, table) != list(columns):
            raise ImportRefused(f"{name} has not the table {table} of an export: export again")
