"""A database that is written: killed and continued, refused, and read by any SQLite."""

from __future__ import annotations

import json
import sqlite3
import struct
from pathlib import Path

import pytest

from memstream.client.formats import sqlite_export
from memstream.client.formats.sqlite_export import NotThisExport, SqliteExport
from tests.support.export_files import read_export, records_of, written
from tests.support.generated_memory import GeneratedMemory

MEMORY = GeneratedMemory(1, "acme")
LINES = [MEMORY.header(), *MEMORY.lines()]


class Killed(BaseException):
    """Stands for SIGKILL."""


def write_and_die(path: Path, pages: list[list[str]], after: int) -> None:
    with SqliteExport.opened(path, selection="all") as file:
        for number, page in list(enumerate(pages))[int(file.cursor or 0) : after]:
            file.write("\n".join(page).encode(), str(number + 1))
        raise Killed


def test_a_killed_export_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_export, "TRANSACTION_BYTES", 20_000)
    pages = [LINES[n : n + 10] for n in range(0, len(LINES) - 1, 10)]
    path = tmp_path / "a.part"
    for kill_after in (1, 7, 12):
        with pytest.raises(Killed):
            write_and_die(path, pages, kill_after)
    assert path.stat().st_mode & 0o777 == 0o600
    with SqliteExport.opened(path, selection="all") as file:
        assert int(file.cursor or 0) > 5
        for number, page in list(enumerate(pages))[int(file.cursor or 0) :]:
            file.write("\n".join(line for line in page if line != LINES[-1]).encode(), str(number + 1))
        file.end(LINES[-1].encode())
        file.end(LINES[-1].encode())  # a run that was killed between the end and its name
        file.finish()
    assert records_of(read_export(path)) == records_of(LINES)
    assert [each.name for each in tmp_path.iterdir()] == ["a.part"]


def test_a_part_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.part"
    path.write_text("somebody's file, which is longer than the header of a database" * 9)
    with pytest.raises(NotThisExport, match="belongs to another export"), SqliteExport.opened(path, selection="all"):
        pass
    assert path.read_text().startswith("somebody's")
    path.unlink()
    with SqliteExport.opened(path, selection="one") as file:
        file.write(LINES[0].encode(), "1")
        file.commit()
        with pytest.raises(NotThisExport, match="another process"), SqliteExport.opened(path, selection="one"):
            pass
    with pytest.raises(NotThisExport, match="the same options"), SqliteExport.opened(path, selection="two"):
        pass
    path.unlink()
    path.symlink_to(tmp_path / "precious")
    with pytest.raises(NotThisExport, match="regular"), SqliteExport.opened(path, selection="all"):
        pass
    assert not (tmp_path / "precious").exists()


def test_the_tables_are_for_queries(tmp_path: Path) -> None:
    fact = json.loads(LINES[1])
    fact["record"] |= {"content": "Plays the cello", "state": "active", "tags": ["music"], "embedding": [0.5, -1.0]}
    header = json.loads(LINES[0])
    header["record"]["embedder"] = "hashing"
    path = written(tmp_path / "a.db", "sqlite", [json.dumps(header), json.dumps(fact), *LINES[2:]])
    db = sqlite3.connect(path)
    [(name, subject)] = db.execute("SELECT id, subject FROM facts WHERE content = 'Plays the cello'")
    assert (name, subject) == (fact["record"]["fact_id"], fact["record"]["subject"])
    assert db.execute("SELECT tag FROM tags WHERE id = ?", (name,)).fetchall() == [("music",)]
    found = db.execute("SELECT id, kind FROM texts WHERE texts MATCH 'plays'").fetchall()
    assert found == [(name, "fact")]
    [(embedder, dimensions, vector)] = db.execute("SELECT embedder, dimensions, vector FROM vectors")
    assert (embedder, dimensions, struct.unpack("<2f", vector)) == ("hashing", 2, (0.5, -1.0))
    for table in ("changes", "episodes", "messages", "links"):
        assert db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] > 0
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert not db.execute("SELECT 1 FROM sqlite_schema WHERE type IN ('view', 'trigger')").fetchall()
