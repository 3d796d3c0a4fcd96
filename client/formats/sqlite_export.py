"""Writer of an export as a SQLite database. The table `records` has every line; the other tables are for queries.

A page and the cursor after it are written in one transaction, so a killed export continues from the database itself.
"""

from __future__ import annotations

import array
import json
import os
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from ...schemas import ids

APPLICATION_ID: Final = 0x6D737472
"""`mstr`: SQLite's mark of the program that wrote a database."""
SCHEMA_VERSION: Final = 1
TRANSACTION_BYTES: Final = 256 * 1024
"""Bytes of lines after which a transaction is committed."""
SCHEMA: Final = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE records (position INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT, record TEXT NOT NULL);
CREATE TABLE facts (
  id TEXT PRIMARY KEY, scope TEXT, owner TEXT, subject TEXT, predicate TEXT, content TEXT, category TEXT, slot TEXT,
  value TEXT, state TEXT, confidence REAL, sensitivity TEXT, trust TEXT, valid_from TEXT, valid_to TEXT,
  recorded_at TEXT, supersedes TEXT, superseded_by TEXT, reinforcement_count INTEGER, last_reinforced_at TEXT
);
CREATE TABLE changes (
  id TEXT, fact_id TEXT, version INTEGER, action TEXT, at TEXT, content TEXT, state TEXT, reason TEXT
);
CREATE TABLE episodes (
  id TEXT PRIMARY KEY, scope TEXT, owner TEXT, user_id TEXT, session_id TEXT, turn_id TEXT, subject TEXT, content TEXT,
  category TEXT, importance REAL, sensitivity TEXT, trust TEXT, occurred_at TEXT, recorded_at TEXT, archived_at TEXT,
  deleted_at TEXT
);
CREATE TABLE messages (
  id TEXT PRIMARY KEY, user_id TEXT, session_id TEXT, turn_id TEXT, message_index INTEGER, role TEXT, name TEXT,
  content TEXT, sensitivity TEXT, occurred_at TEXT
);
CREATE TABLE tags (id TEXT NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (id, tag));
CREATE TABLE links (one TEXT, other TEXT, weight REAL, grown_at TEXT);
CREATE TABLE vectors (id TEXT PRIMARY KEY, kind TEXT, embedder TEXT, dimensions INTEGER, vector BLOB);
CREATE INDEX records_of_kind ON records (kind);
CREATE INDEX records_by_id ON records (id);
CREATE INDEX facts_by_subject ON facts (subject, state);
CREATE INDEX changes_by_fact ON changes (fact_id, version);
CREATE INDEX messages_by_session ON messages (session_id, occurred_at);
CREATE INDEX tags_by_tag ON tags (tag);
CREATE INDEX links_by_one ON links (one);
CREATE INDEX links_by_other ON links (other);
CREATE VIRTUAL TABLE texts USING fts5 (text, id UNINDEXED, kind UNINDEXED);
"""
TABLE_COLUMNS: Final = {"records": ("position", "kind", "id", "record"), "tags": ("id", "tag")}
"""The columns of the tables that an import reads."""
UNFINISHED: Final = "CREATE TABLE unfinished (selection TEXT, cursor TEXT)"
Row = Mapping[str, Any]


class NotThisExport(Exception):
    """A part that belongs to something else, or that another process writes. The message says what to do."""


@dataclass(slots=True)
class SqliteExport:
    """A database that is being written. Only this process has it, because it holds SQLite's exclusive lock."""

    path: Path
    selection: str
    """Text that identifies the content. A database with another selection is not continued."""
    cursor: str | None = None
    """The cursor after the committed lines. None: there are none."""
    durable: bool = False
    """True when a later run can continue the database."""
    _db: sqlite3.Connection = field(init=False)
    _embedder: str | None = field(default=None, init=False)
    _waiting: int = field(default=0, init=False)

    @classmethod
    @contextmanager
    def opened(cls, path: Path, *, selection: str) -> Iterator[Self]:
        """Open a part, or create it. Raises NotThisExport."""
        file = cls(path, selection)
        _create(path)
        file._db = _connected(path)
        try:
            file._begin()
            yield file
        finally:
            file.close()

    @staticmethod
    @contextmanager
    def complete(path: Path) -> Iterator[sqlite3.Connection]:
        """Open a database that is complete."""
        with closing(_connected(path)) as db:
            yield db

    @property
    def connection(self) -> sqlite3.Connection:
        return self._db

    def write(self, lines: bytes, cursor: str) -> None:
        """Add lines of an export. `cursor` is the cursor after them."""
        for line in lines.splitlines():
            self._add(line)
        self._db.execute("UPDATE unfinished SET cursor = ?", (cursor,))
        self.cursor = cursor
        self._waiting += len(lines)
        if self._waiting >= TRANSACTION_BYTES:
            self.commit()

    def commit(self) -> None:
        """Make the lines and their cursor durable."""
        self._db.execute("COMMIT")
        self._waiting, self.durable = 0, self.cursor is not None
        self._db.execute("BEGIN IMMEDIATE")

    def end(self, line: bytes) -> None:
        """Add the last line. The part can still be continued, so this has no effect the second time."""
        self._db.execute("DELETE FROM records WHERE kind = 'end'")
        self._add(line)
        self.commit()

    def finish(self) -> None:
        """Make the part a database of its own, and close it."""
        self._db.execute("DROP TABLE unfinished")
        self._db.execute("COMMIT")
        self.close()

    def close(self) -> None:
        """Close the part. It keeps the committed lines."""
        self._db.close()

    # -------------------------------------------------------------------------------------------- within
    def _begin(self) -> None:
        other = NotThisExport(
            f"{self.path} belongs to another export; continue with the same options, delete it, or name another --out"
        )
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA trusted_schema = OFF")
            self._db.execute("BEGIN IMMEDIATE")
            if not self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
                self._create_tables()
            found = self._db.execute("SELECT selection, cursor FROM unfinished").fetchone()
            if found is None or found[0] != self.selection:
                raise other
            self.cursor, self.durable = found[1], found[1] is not None
            header = self._db.execute("SELECT record FROM records WHERE kind = 'export'").fetchone()
            self._embedder = None if header is None else json.loads(header[0]).get("embedder")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise NotThisExport(f"another process writes {self.path}; wait until it has ended") from None
            if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                raise
            raise other from None
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise
            raise other from None

    def _create_tables(self) -> None:
        for statement in (*SCHEMA.split(";\n"), UNFINISHED):
            self._db.execute(statement)
        self._db.execute("INSERT INTO unfinished VALUES (?, NULL)", (self.selection,))
        self.commit()

    def _add(self, line: bytes) -> None:
        """Add a line to `records`, and to the tables of its kind. Vectors are in their table only."""
        fields = json.loads(line)
        kind, record = str(fields["kind"]), fields["record"]
        if kind == "export":
            self._embedder = record.get("embedder")
        for owner_of_vector in (record, *record.get("messages", ())):
            self._add_vector(kind, owner_of_vector)
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        name = line_id(kind, record)
        self._db.execute("INSERT INTO records (kind, id, record) VALUES (?, ?, ?)", (kind, name, text))
        for add in _FURTHER.get(kind, ()):
            for table, row in add(record):
                marks = ", ".join("?" * len(row))
                self._db.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)
        texts = [(each, name) for each in texts_of(kind, record)]
        texts = texts or [(each["content"], each["message_id"]) for each in record.get("messages", ())]
        self._db.executemany("INSERT INTO texts VALUES (?, ?, ?)", [(*each, kind) for each in texts])

    def _add_vector(self, kind: str, record: dict[str, Any]) -> None:
        if not (vector := record.get("embedding")):
            return
        record["embedding"] = None
        name = record.get("message_id") or line_id(kind, record)
        row = (name, kind, self._embedder, len(vector), packed(vector))
        self._db.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?)", row)


def _connected(path: Path) -> sqlite3.Connection:
    """Connect to a database. Threads may use the connection one after the other."""
    uri = f"{path.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=0.2, check_same_thread=False)


def _create(path: Path) -> None:
    """Create the file with its owner's rights alone. Raises NotThisExport for anything else than a regular file."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise NotThisExport(f"{path} is not a regular file; move it away, or name another --out") from None


def packed(vector: Sequence[float]) -> bytes:
    """Return a vector as 32-bit floats, little-endian."""
    numbers = array.array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


_ID_FIELDS: Final = {
    "fact": "fact_id",
    "fact_change": "event_id",
    "episode": "episode_id",
    "archive": "archive_id",
    "digest": "digest_id",
    "procedure": "procedure_id",
    "block": "block_id",
    "task": "task_id",
    "links": "owner_key",
    "group": "group_id",
    "working": "entry_id",
}


def line_id(kind: str, record: Row) -> str | None:
    """Return the id of a record: of a turn, the id of its first message."""
    if kind == "turn":
        return str(record["messages"][0]["message_id"])
    if kind == "holdings":
        return ids.holdings_id(ids.session_key(record["tenant_id"], record["user_id"], record["session_id"]))
    return str(record[_ID_FIELDS[kind]]) if kind in _ID_FIELDS else None


def texts_of(kind: str, record: Row) -> list[str]:
    """Return the texts of a record that a person may search for, except the messages of a turn."""
    if kind in ("fact", "episode", "archive", "task", "working"):
        return [record["content"]]
    if kind == "digest":
        return [record["text"]]
    if kind == "procedure":
        return ["\n".join((record["name"], record["trigger"], *record["steps"]))]
    return [f"{record['name']}\n{record['value']}"] if kind == "block" else []


# ------------------------------------------------------------------------------------------------ tables for queries
Rows = Iterator[tuple[str, tuple[Any, ...]]]
_FACT: Final = (
    "subject", "predicate", "content", "category", "slot", "value", "state", "confidence", "sensitivity", "trust",
    "valid_from", "valid_to", "recorded_at", "supersedes", "superseded_by", "reinforcement_count", "last_reinforced_at",
)  # fmt: skip
_EPISODE: Final = (
    "user_id", "session_id", "turn_id", "subject", "content", "category", "importance", "sensitivity", "trust",
    "occurred_at", "recorded_at", "archived_at", "deleted_at",
)  # fmt: skip
_MESSAGE: Final = (
    "message_id", "user_id", "session_id", "turn_id", "message_index", "role", "name", "content", "sensitivity",
    "occurred_at",
)  # fmt: skip


def _owned(table: str, name: str, fields: Sequence[str]) -> Callable[[Row], Rows]:
    def rows(record: Row) -> Rows:
        owner = record["owner"]
        yield table, (record[name], owner["scope"], owner["id"], *(record.get(each) for each in fields))

    return rows


def _tags(name: str) -> Callable[[Row], Rows]:
    def rows(record: Row) -> Rows:
        for tag in record.get("tags", ()):
            yield "tags", (record[name], tag)

    return rows


def _changes(record: Row) -> Rows:
    fact = record["fact"]
    of_fact = (fact["fact_id"], fact["version"], record["action"], record["at"], fact["content"], fact["state"])
    yield "changes", (record["event_id"], *of_fact, record.get("reason"))


def _links(record: Row) -> Rows:
    for each in record["links"]:
        yield "links", (each["one"], each["other"], each["weight"], each["grown_at"])


def _messages(record: Row) -> Rows:
    for each in record["messages"]:
        yield "messages", tuple(each.get(name) for name in _MESSAGE)


_FURTHER: Final[Mapping[str, Sequence[Callable[[Row], Rows]]]] = {
    "fact": (_owned("facts", "fact_id", _FACT), _tags("fact_id")),
    "fact_change": (_changes,),
    "episode": (_owned("episodes", "episode_id", _EPISODE), _tags("episode_id")),
    "task": (_tags("task_id"),),
    "links": (_links,),
    "turn": (_messages,),
}
"""The tables of each kind, besides `records` and `texts`."""
