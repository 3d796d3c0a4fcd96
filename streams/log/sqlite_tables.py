"""SQL tables of the log on disk, and the statements on them: plain functions over a connection.

Each record is one row in one B-tree. The row id has the partition's number (`part`, which is never reused) in its high
bits and the offset in its low 40 bits. So a partition is one contiguous range, an append is one insert without a second
index, and a read is one range scan. `part.next` is the offset of the next record. It advances in the transaction of the
insert, so offsets are contiguous and never reused, even after retention has removed every record.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...schemas.errors import Fatal, StageError, Transient
from .port import Headers

FILE = "log.sqlite3"
OFFSET_BITS = 40
SCHEMA_VERSION = 1
#: Maximum seconds to wait for the write lock. Another process holds the lock for one short transaction, possibly with a
#: checkpoint.
BUSY_SECONDS = 10.0

_SCHEMA = (
    "CREATE TABLE layout (version INTEGER NOT NULL)",
    "INSERT INTO layout VALUES (0)",
    "CREATE TABLE topic (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, config TEXT NOT NULL)",
    """CREATE TABLE part (
        id INTEGER PRIMARY KEY AUTOINCREMENT, topic INTEGER NOT NULL, number INTEGER NOT NULL,
        first INTEGER NOT NULL DEFAULT 0,       -- first offset after retention
        next INTEGER NOT NULL DEFAULT 0,        -- offset of the next record
        cleaned INTEGER NOT NULL DEFAULT 0,     -- offset up to which compaction went
        kept INTEGER NOT NULL DEFAULT 0,        -- records left below `cleaned`
        horizon INTEGER NOT NULL DEFAULT 0,     -- tombstones below this offset …
        horizon_at INTEGER NOT NULL DEFAULT 0,  -- … were first passed by compaction at this time (ms)
        UNIQUE (topic, number))""",
    # the value is the last column, so a read of timestamps and keys does not read the overflow pages of a large value
    "CREATE TABLE record (at INTEGER PRIMARY KEY, timestamp INTEGER NOT NULL, key BLOB, headers BLOB, value BLOB)",
    """CREATE TABLE committed (consumer_group TEXT NOT NULL, part INTEGER NOT NULL, next INTEGER NOT NULL,
        PRIMARY KEY (consumer_group, part)) WITHOUT ROWID""",
)

_HEADER = struct.Struct(">II")


@dataclass(frozen=True, slots=True)
class LogTopic:
    """A topic with the database ids of its partitions, in order."""

    name: str
    config: Mapping[str, str]
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LogRow:
    """A record of a known partition. `timestamp` in milliseconds since 1970."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int


def row_id(part: int, offset: int) -> int:
    return part << OFFSET_BITS | offset


def offset_of(at: int) -> int:
    return at & (1 << OFFSET_BITS) - 1


def translate(exc: sqlite3.Error, folder: Path) -> StageError:
    """Translate an error of SQLite: Transient for a busy or full disk, Fatal for a damaged file."""
    code = getattr(exc, "sqlite_errorname", None) or ""
    if isinstance(exc, sqlite3.OperationalError) and not code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        remedy = {
            "SQLITE_FULL": "free some space on this disk",
            "SQLITE_READONLY": "make the folder writable for this user",
            "SQLITE_CANTOPEN": "check that the folder exists and is writable for this user",
            "SQLITE_BUSY": "another process has locked the log: find the process that writes for so long",
        }.get(code, "")
        return Transient("broker", f"the log in {folder} cannot be used: {exc}", remedy=remedy)
    return Fatal(f"the log in {folder} is damaged or not a memstream log: {exc}; restore the folder or move it away")


def connect(folder: Path, *, shared: bool = False) -> sqlite3.Connection:
    """Open the log; create it if it does not exist. Raises `Transient` or `Fatal`.

    `shared`: several threads use the connection, one at a time.
    """
    try:
        _make_folder(folder)
    except OSError as exc:
        raise Fatal(f"{folder} cannot be used as a folder for the log: {exc}; name another folder") from exc
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return _connect(folder, shared)
        except sqlite3.OperationalError as exc:
            # SQLite ignores the busy time-out when two processes switch to WAL at the same time.
            if "locked" not in str(exc) or time.monotonic() > deadline:
                raise translate(exc, folder) from exc
            time.sleep(0.02)
        except sqlite3.Error as exc:
            raise translate(exc, folder) from exc


def _make_folder(folder: Path) -> None:
    """Create the folder and its parents durably. SQLite syncs the content of the folder itself."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        descriptor = os.open(each.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _connect(folder: Path, shared: bool) -> sqlite3.Connection:
    conn = sqlite3.connect(folder / FILE, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=not shared)
    try:
        (mode,) = conn.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise Fatal(f"the file system of {folder} does not support the log (SQLite's WAL mode): use a local folder")
        sync_commits(conn, True)
        conn.execute("PRAGMA fullfsync = ON")  # on macOS, fsync alone does not flush the drive's cache
        conn.execute("PRAGMA journal_size_limit = 67108864")
        conn.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten, also what an erasure deletes
        (version,) = conn.execute("PRAGMA user_version").fetchone()
        if version == 0:
            version = _make_tables(conn)
        if version != SCHEMA_VERSION:
            raise Fatal(f"the log in {folder} was made by another version of memstream (format {version})")
    except BaseException:
        conn.close()
        raise
    return conn


def sync_commits(conn: sqlite3.Connection, wanted: bool) -> None:
    """Set whether a commit waits until this commit and all earlier commits are on the disk.

    With `wanted`, an acknowledged append survives a power cut. The call has no effect within a transaction.
    """
    conn.execute(f"PRAGMA synchronous = {'FULL' if wanted else 'NORMAL'}")


def _make_tables(conn: sqlite3.Connection) -> int:
    conn.execute("BEGIN IMMEDIATE")
    try:
        (version,) = conn.execute("PRAGMA user_version").fetchone()
        if version == 0:  # no other process has created the tables meanwhile
            for statement in _SCHEMA:
                conn.execute(statement)
            conn.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            version = SCHEMA_VERSION
        conn.execute("COMMIT")
    except BaseException:
        conn.execute("ROLLBACK")
        raise
    return int(version)


# ------------------------------------------------------------------------------------------------ layout and offsets


def layout_version(conn: sqlite3.Connection) -> int:
    return int(conn.execute("SELECT version FROM layout").fetchone()[0])


def topics(conn: sqlite3.Connection) -> dict[str, LogTopic]:
    parts: dict[int, list[int]] = {}
    for part, topic in conn.execute("SELECT id, topic FROM part ORDER BY topic, number"):
        parts.setdefault(topic, []).append(part)
    return {
        name: LogTopic(name, json.loads(config), tuple(parts.get(topic, ())))
        for topic, name, config in conn.execute("SELECT id, name, config FROM topic")
    }


def ends(conn: sqlite3.Connection) -> dict[int, int]:
    return dict(conn.execute("SELECT id, next FROM part"))


def starts(conn: sqlite3.Connection, parts: Iterable[int]) -> list[int]:
    first = dict(conn.execute("SELECT id, first FROM part"))
    return [first.get(part, 0) for part in parts]


def create(conn: sqlite3.Connection, name: str, partitions: int, config: Mapping[str, str]) -> None:
    """Create a topic within a transaction. An existing topic is not changed."""
    cursor = conn.execute("INSERT OR IGNORE INTO topic (name, config) VALUES (?, ?)", (name, json.dumps(dict(config))))
    if cursor.rowcount != 1:
        return
    rows = [(cursor.lastrowid, number) for number in range(partitions)]
    conn.executemany("INSERT INTO part (topic, number) VALUES (?, ?)", rows)
    conn.execute("UPDATE layout SET version = version + 1")


def add_partitions(conn: sqlite3.Connection, name: str, partitions: int) -> None:
    """Add the missing partitions of a topic within a transaction."""
    row = conn.execute(
        "SELECT topic.id, count(part.id) FROM topic LEFT JOIN part ON part.topic = topic.id WHERE name = ?", (name,)
    ).fetchone()
    if row[0] is None or row[1] >= partitions:
        return
    rows = [(row[0], number) for number in range(row[1], partitions)]
    conn.executemany("INSERT INTO part (topic, number) VALUES (?, ?)", rows)
    conn.execute("UPDATE layout SET version = version + 1")


def delete(conn: sqlite3.Connection, name: str) -> None:
    """Delete a topic and its committed offsets within a transaction.

    The committed offsets would be wrong for a later topic with the same name.
    """
    row = conn.execute("SELECT id FROM topic WHERE name = ?", (name,)).fetchone()
    if row is None:
        return
    for (part,) in conn.execute("SELECT id FROM part WHERE topic = ?", row).fetchall():
        conn.execute("DELETE FROM record WHERE at >= ? AND at < ?", (row_id(part, 0), row_id(part + 1, 0)))
        conn.execute("DELETE FROM committed WHERE part = ?", (part,))
    conn.execute("DELETE FROM part WHERE topic = ?", row)
    conn.execute("DELETE FROM topic WHERE id = ?", row)
    conn.execute("UPDATE layout SET version = version + 1")


def committed(conn: sqlite3.Connection, group: str, parts: Iterable[int]) -> list[int | None]:
    known = dict(conn.execute("SELECT part, next FROM committed WHERE consumer_group = ?", (group,)))
    return [known.get(part) for part in parts]


def commit(conn: sqlite3.Connection, group: str, offsets: Mapping[int, int]) -> None:
    conn.executemany(
        "INSERT INTO committed VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET next = excluded.next",
        [(group, part, offset) for part, offset in offsets.items()],
    )


# ----------------------------------------------------------------------------------------------------------- records


def pack_headers(headers: Headers) -> bytes | None:
    if not headers:
        return None
    packed = bytearray()
    for name, value in headers:
        raw = name.encode()
        packed += _HEADER.pack(len(raw), len(value)) + raw + value
    return bytes(packed)


def unpack_headers(packed: bytes | None) -> Headers:
    if not packed:
        return ()
    headers, at = [], 0
    while at < len(packed):
        name, value = _HEADER.unpack_from(packed, at)
        at += _HEADER.size
        headers.append((packed[at : at + name].decode(), packed[at + name : at + name + value]))
        at += name + value
    return tuple(headers)


def insert(conn: sqlite3.Connection, rows: Iterable[tuple[int, int, bytes | None, bytes | None, bytes | None]]) -> None:
    """Insert records, given as (row id, timestamp, key, packed headers, value)."""
    conn.executemany("INSERT INTO record (at, timestamp, key, headers, value) VALUES (?, ?, ?, ?, ?)", rows)


def read(
    conn: sqlite3.Connection, part: int, offset: int, end: int, max_records: int, max_bytes: int
) -> tuple[list[LogRow], int]:
    """Read records from `offset` to below `end`. The first record is read even if it exceeds `max_bytes`.

    Return the records with the offset of the next read. This is the offset after the last record, or `end` when no
    record is left below `end` (compaction leaves gaps).
    """
    rows: list[LogRow] = []
    size = 0
    cursor = conn.execute(
        "SELECT at, timestamp, key, headers, value FROM record WHERE at >= ? AND at < ? ORDER BY at LIMIT ?",
        (row_id(part, offset), row_id(part, end), max_records),
    )
    try:
        for at, timestamp, key, headers, value in cursor:
            rows.append(LogRow(offset_of(at), key, value, unpack_headers(headers), timestamp))
            size += len(key or b"") + len(value or b"") + len(headers or b"")
            if size >= max_bytes:
                break
        else:
            if len(rows) < max_records:
                return rows, max(offset, end)
    finally:
        cursor.close()  # an open cursor would block the WAL checkpoint
    return rows, rows[-1].offset + 1


def first_at_or_after(conn: sqlite3.Connection, part: int, offset: int) -> int | None:
    row = conn.execute(
        "SELECT at FROM record WHERE at >= ? AND at < ? ORDER BY at LIMIT 1",
        (row_id(part, offset), row_id(part + 1, 0)),
    ).fetchone()
    return None if row is None else offset_of(row[0])


def offset_at(conn: sqlite3.Connection, part: int, timestamp: int) -> int | None:
    """Return the offset of the first record with a timestamp of `timestamp` or later, or None.

    Timestamps have no index. They rise with offsets, so the search is a bisection.
    """
    low, high = row_id(part, 0), row_id(part + 1, 0)
    last = conn.execute("SELECT max(at) FROM record WHERE at >= ? AND at < ?", (low, high)).fetchone()[0]
    if last is None:
        return None
    high, found = last + 1, None
    while low < high:
        middle = (low + high) // 2
        at, stamp = conn.execute(
            "SELECT at, timestamp FROM record WHERE at >= ? ORDER BY at LIMIT 1", (middle,)
        ).fetchone()
        if stamp >= timestamp:
            high, found = middle, at
        else:
            low = at + 1
    return None if found is None else offset_of(found)
