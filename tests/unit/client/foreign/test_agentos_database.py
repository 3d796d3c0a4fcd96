"""Databases of AgentOS: what becomes a statement, what is left out, and databases that are hostile."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from memstream.client.import_file import FileLine, ImportRefused
from tests.support.agentos_database import agentos_database

from .reading import lines_of, read_path

MEMORY = {
    "_summary": "Signed a lease",
    "_description": "Signed a lease in Porto",
    "_occurredAt": "2024-03-20T10:00:00Z",
}
AT = 1_711_234_567_890
ROWS: dict[str, list[dict[str, Any]]] = {
    "memory_traces": [
        {"type": "semantic", "scope": "user", "content": "Works at Northwind", "created_at": AT, "tags": ["work"],
         "metadata": {"source": "crm", "content_hash": "ab", "decay": {"stability": 1}}, "deleted": 0},
        {"type": "semantic", "scope": "user", "content": "Deleted", "created_at": AT, "deleted": 1},
        {"type": "semantic", "scope": "user", "content": "Page 1", "created_at": AT, "metadata": {"document_id": "d"}},
        {"type": "semantic", "scope": "persona", "content": "Is an assistant", "created_at": AT},
    ],
    "knowledge_nodes": [
        {"type": "organization", "label": "Northwind", "properties": {}, "created_at": AT},
        {"type": "memory", "label": "Signed", "properties": MEMORY, "created_at": AT},
        {"type": "memory", "label": "Moved", "properties": {"_description": "x" * 2_001}, "created_at": AT},
    ],
    "documents": [{"path": "a.md", "content_hash": "ab", "chunk_count": 1}],
    "document_images": [{"mime_type": "image/png", "data": b"\xff"}],
}  # fmt: skip


def test_traces_and_memories_become_statements_and_documents_are_left_out(tmp_path: Path) -> None:
    time = "2024-03-23T22:56:07.890000+00:00"
    expected = [
        (1, "imported_fact", {"content": "Works at Northwind", "said_at": time, "tags": ["work"],
                              "metadata": {"source": "crm", "type": "semantic"}}),
        (3, "left_out", {}),
        (4, "fault", {"what": "the item has the scope persona, which is not the user's"}),
        (6, "imported_fact", {"content": "Signed a lease in Porto", "category": "event", "said_at": time,
                              "valid_from": "2024-03-20T10:00:00+00:00", "metadata": {"type": "memory"}}),
        (7, "imported_fact", {"content": "Moved", "category": "event", "said_at": time,
                              "metadata": {"type": "memory"}}),
        (8, "left_out", {}),
        (9, "left_out", {}),
    ]  # fmt: skip
    assert lines_of(read_path(agentos_database(tmp_path / "brain.sqlite", ROWS))) == expected
    lists = dict(zip(("traces", "nodes", "documents", "images"), ROWS.values(), strict=True))
    lists["images"] = [{"mime_type": "image/png", "data": "/w=="}]
    (tmp_path / "brain.json").write_text(json.dumps({"meta": {}, **lists}))
    assert [each[1:] for each in lines_of(read_path(tmp_path / "brain.json"))] == [each[1:] for each in expected]


def test_a_database_continues_behind_any_row(tmp_path: Path) -> None:
    path = agentos_database(tmp_path / "brain.sqlite", ROWS)
    lines = [each for each in read_path(path) if isinstance(each, FileLine)]
    assert [each.number for each in lines] == [1, 3, 6, 7, 8, 9, 9]
    assert lines[-1].end == path.stat().st_size
    for n, each in enumerate(lines[:-1]):
        rest = [line for line in read_path(path, end=each.end, number=each.last) if isinstance(line, FileLine)]
        assert rest == lines[n + 1 :]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON documents BEGIN SELECT 1; END", "trigger 't'"),
        ("CREATE VIEW v AS SELECT 1", "view 'v'"),
        ("DROP TABLE memory_traces", "of another program"),
        ("ALTER TABLE memory_traces RENAME COLUMN content TO text", "no table memory_traces"),
        ("ALTER TABLE memory_traces ADD COLUMN big AS (zeroblob(1000000000))", "no table memory_traces"),
    ],
)
def test_a_database_that_could_run_something_is_refused(tmp_path: Path, statement: str, reason: str) -> None:
    with pytest.raises(ImportRefused, match=reason):
        read_path(agentos_database(tmp_path / "brain.sqlite", ROWS, statement))


def test_a_database_in_use_is_refused(tmp_path: Path) -> None:
    path = agentos_database(tmp_path / "brain.sqlite", ROWS)
    (tmp_path / "brain.sqlite-wal").write_bytes(b"x" * 100)
    with pytest.raises(ImportRefused, match="close the program"):
        read_path(path)


@pytest.mark.parametrize(
    "value", ["zeroblob(9000000)", "printf('%.*c', 9000000, 'x')", "x'ff00'", "7", "NULL", "9e999"]
)
def test_a_row_without_a_text_costs_that_row(tmp_path: Path, value: str) -> None:
    statement = f"UPDATE memory_traces SET content = {value} WHERE rowid = 1"
    found = lines_of(read_path(agentos_database(tmp_path / "brain.sqlite", ROWS, statement)))
    assert found[0][:2] == (1, "fault")
    assert len(found) == 7


def test_a_row_that_sqlite_refuses_ends_the_import_with_a_reason(tmp_path: Path) -> None:
    path = agentos_database(tmp_path / "brain.sqlite", ROWS)
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(ImportRefused, match="cannot be read as a SQLite database"):
        read_path(path)


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    sqlite3.connect(path).execute("CREATE TABLE records (position, kind, id, record)").connection.close()
    with pytest.raises(ImportRefused, match="of another program"):
        read_path(path)
