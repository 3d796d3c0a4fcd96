"""Hostile databases and folders: each is refused with a reason, or costs one record."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from memstream.client.formats.front_matter import NotFrontMatter, read_front_matter
from memstream.client.import_file import FileLine, ImportRefused
from memstream.schemas.imports import ImportFault
from tests.support.export_files import read_export, records_of, written
from tests.support.generated_memory import GeneratedMemory

MEMORY = GeneratedMemory(1, "acme")
LINES = [MEMORY.header(), *MEMORY.lines()]


# ------------------------------------------------------------------------------------------------ databases
@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return written(tmp_path_factory.mktemp("made") / "a.db", "sqlite", LINES).read_bytes()


def changed(tmp_path: Path, database: bytes, *statements: str) -> Path:
    path = tmp_path / "a.db"
    path.write_bytes(database)
    db = sqlite3.connect(path)
    for each in statements:
        db.execute(each)
    db.commit()
    db.close()
    return path


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (("CREATE TRIGGER t AFTER INSERT ON tags BEGIN SELECT 1; END",), "trigger 't'"),
        (("CREATE VIEW v AS SELECT 1",), "view 'v'"),
        (("DROP TABLE records", "CREATE VIEW records AS SELECT 1 position, 2 kind, 3 id, 4 record"), "view 'records'"),
        (
            ("DROP TABLE records", "CREATE VIRTUAL TABLE records USING fts5 (position, kind, id, record)"),
            "table records",
        ),
        (("ALTER TABLE records ADD COLUMN big AS (zeroblob(1000000000))",), "table records"),
        (("DROP TABLE tags",), "table tags"),
        (("PRAGMA application_id = 7",), "another program"),
        (("PRAGMA user_version = 9",), "version 9"),
    ],
)
def test_a_database_that_could_run_something_is_refused(
    tmp_path: Path, database: bytes, statements: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(ImportRefused, match=reason):
        read_export(changed(tmp_path, database, *statements))


def test_a_database_that_is_cut_or_in_use_is_refused(tmp_path: Path, database: bytes) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(database[: len(database) // 3])
    with pytest.raises(ImportRefused, match="export again"):
        read_export(path)
    path.write_bytes(database)
    (tmp_path / "a.db-wal").write_bytes(b"x" * 100)
    with pytest.raises(ImportRefused, match="close the program"):
        read_export(path)


def test_a_broken_row_costs_that_row(tmp_path: Path, database: bytes) -> None:
    path = changed(
        tmp_path,
        database,
        "UPDATE records SET record = '{' WHERE position = 3",
        "UPDATE records SET record = x'ff00' WHERE position = 5",
        "UPDATE records SET record = zeroblob(9000000) WHERE position = 7",
    )
    read = read_export(path)
    assert [each.line for each in read if isinstance(each, ImportFault)] == [3, 5, 7]
    assert len(read) == len(LINES)


def test_tags_of_two_merged_databases_are_united(tmp_path: Path, database: bytes) -> None:
    fact = MEMORY.records["fact"][0]
    other = tmp_path / "other.db"
    changed(tmp_path, database, f"INSERT INTO tags VALUES ('{fact.fact_id}', 'from the other one')").rename(other)
    path = changed(
        tmp_path,
        database,
        f"ATTACH '{other}' AS other",
        "INSERT OR IGNORE INTO tags SELECT * FROM other.tags",
        "INSERT INTO records (kind, id, record) SELECT kind, id, record FROM other.records "
        f"WHERE id = '{fact.fact_id}' AND kind = 'fact'",
    )
    kinds = [kind for kind, _ in records_of(read_export(path))]
    assert kinds[-2:] == ["fact", "end"]
    [found, again] = [
        record["tags"] for kind, record in records_of(read_export(path))
        if kind == "fact" and record["fact_id"] == fact.fact_id
    ]  # fmt: skip
    assert found == again == [*fact.tags, "from the other one"]


# ------------------------------------------------------------------------------------------------ notes
@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return written(tmp_path / "vault", "obsidian", LINES)


def a_note(notes: Path) -> Path:
    return sorted((notes / "facts").iterdir())[0]


def linked(note: Path) -> None:
    secret = note.parents[2] / "secret.md"
    note.rename(secret)
    note.symlink_to(secret)


NOT_A_NOTE: list[tuple[Callable[[Path], object], str]] = [
    (linked, "symbolic link"),
    (lambda note: (note.unlink(), os.mkfifo(note)), "regular file"),
    (lambda note: (note.unlink(), note.mkdir()), "regular file"),
    (lambda note: note.write_bytes(note.read_text().encode("utf-16")), "UTF-16"),
    (lambda note: note.write_bytes(note.read_bytes().replace(b"state", b"\xff")), "UTF-8"),
    (
        lambda note: note.write_text(
            note.read_text().replace("record:\n", "record: !!python/object/apply:os.system\n", 1)
        ),
        "YAML tag",
    ),
    (lambda note: note.write_text(note.read_text().replace('kind: "fact"', "kind: &a fact")), "anchor"),
    (lambda note: note.write_text(note.read_text().replace('kind: "fact"', "kind: link")), "no kind"),
    (lambda note: note.write_text("My own note, see [[../../../etc/passwd]]\n"), "no front matter"),
    (lambda note: note.write_text("---\nrecord: {\n---\n"), "no YAML"),
    (lambda note: note.write_text("---\nx: " + "[" * 5_000 + "\n---\n"), "nested"),
    (lambda note: note.write_text("x" * 5_000_000), "more than"),
]


@pytest.mark.parametrize(("change", "reason"), NOT_A_NOTE)
def test_a_hostile_note_costs_that_note(notes: Path, change: Callable[[Path], object], reason: str) -> None:
    note = a_note(notes)
    change(note)
    read = read_export(notes)
    [fault] = [each for each in read if isinstance(each, ImportFault)]
    assert (fault.file, reason in fault.what) == (f"facts/{note.name}", True), fault.what
    assert len(read) == len(LINES)


def test_a_linked_folder_costs_that_folder(notes: Path, tmp_path: Path) -> None:
    (notes / "facts").rename(tmp_path / "elsewhere")
    (notes / "facts").symlink_to(tmp_path / "elsewhere")
    read = read_export(notes)
    assert [each.what for each in read if isinstance(each, ImportFault)] == ["the file is a symbolic link"]
    assert len(read) == len(LINES) - len(MEMORY.records["fact"]) + 1


def test_other_files_of_a_vault_are_left_alone(notes: Path) -> None:
    (notes / ".obsidian").mkdir()
    (notes / ".obsidian" / "app.json").write_text("{}")
    (notes / "facts" / ".DS_Store").write_text("x")
    (notes / "mine.md").write_text("[[facts/x]]")
    assert len(records_of(read_export(notes))) == len(LINES)


def test_a_folder_without_an_export_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x")
    with pytest.raises(ImportRefused, match=r"data/export.ndjson"):
        read_export(tmp_path)


def test_a_note_that_obsidian_has_written_again_is_read(notes: Path) -> None:
    note = a_note(notes)
    before = read_export(notes)
    fields = yaml.safe_load(note.read_text().split("---\n")[1])
    text = yaml.safe_dump(fields | {"rating": 5}, sort_keys=False, allow_unicode=True).replace("'", '"')
    note.write_text(f"---\r\n{text}---\r\nMy words.\n---\n")
    after = read_export(notes)
    assert records_of(after) == records_of(before)
    assert isinstance(after[1], FileLine)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-01", "2026-01-01"), ("1", 1), ("-1.5e-7", -1.5e-7), ("1e-07", 1e-07), ("007", "007"), ("yes", "yes"),
        ("true", True), ("", None), ("~", None), ("'1'", "1"), ("0x1f", "0x1f"), ("1_000", "1_000"), (".inf", ".inf"),
        ("9" * 40, "9" * 40), ("{a: [1, b]}", {"a": [1, "b"]}), ("|\n  one\n  two\n", "one\ntwo\n"),
    ],
)  # fmt: skip
def test_plain_words_are_json_or_text(text: str, value: object) -> None:
    assert read_front_matter(f"---\na: {text}\n---\n".encode()) == {"a": value}


@pytest.mark.parametrize(
    "text", ["a: 1\na: 2", "? [1]\n: 2", "- 1", "a: 1\n--- {b: 1}", "a: &x [*x]", "%TAG ! x", "a: \x07"]
)
def test_other_yaml_is_refused(text: str) -> None:
    with pytest.raises(NotFrontMatter):
        read_front_matter(f"---\n{text}\n---\n".encode())
