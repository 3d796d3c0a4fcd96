"""`memstream import` as a user runs it: the commands of the how-to page, wrong files, and a run that was killed."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from pathlib import Path

import pytest

from tests.support.cli_process import InProcess
from tests.support.export_files import written
from tests.support.generated_memory import GeneratedMemory

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "move-a-user.md"
MEMORY = GeneratedMemory(1, "demo", user="ana")


@pytest.fixture
def command(tmp_path: Path) -> InProcess:
    return InProcess(tmp_path, {"MEMSTREAM_DATADIR": str(tmp_path / "new")})


@pytest.mark.long
def test_the_commands_of_the_page_move_a_user(command: InProcess, tmp_path: Path) -> None:
    old = {"MEMSTREAM_DATADIR": str(tmp_path / "old")}
    (tmp_path / "made.ndjson").write_text(MEMORY.text())
    assert command("import", "made.ndjson", env=old).code == 0
    export, restore = re.findall(r"```bash\nmemstream (.+)\n```", PAGE.read_text())
    assert command(*export.split(), env=old).code == 0
    done = command(*restore.split())
    assert (done.code, done.err) == (0, "")
    report = json.loads(done.out)
    assert report == {"imported": len(MEMORY.lines()) - 1, "skipped": 0, "errors": [], "more_errors": 0}
    assert report.keys() == json.loads(re.findall(r"```json\n(.+)\n```", PAGE.read_text())[0]).keys()
    assert command("export", "--tenant", "demo", "--user", "ana", "--out", "again.ndjson").code == 0
    before, after = ((tmp_path / name).read_text().splitlines()[1:] for name in ("ana.ndjson", "again.ndjson"))
    assert after == before
    assert not (tmp_path / "ana.ndjson.import").exists()


@pytest.mark.long
def test_the_commands_of_the_page_about_exports_write_what_can_be_imported(command: InProcess, tmp_path: Path) -> None:
    """Notes go from one folder to the next, then a database: the last export is equal to the first file."""
    page = PAGE.with_name("export-memories.md").read_text()
    exports = re.findall(r"```bash\nmemstream (export .+--format .+)\n```", page)
    memory = GeneratedMemory(2, "acme", user="ana")
    (tmp_path / "made.ndjson").write_text(memory.text())
    source = "made.ndjson"
    for number, export in enumerate(exports):
        folder = {"MEMSTREAM_DATADIR": str(tmp_path / f"folder-{number}")}
        done = command("import", source, env=folder)
        assert (done.code, json.loads(done.out)["errors"]) == (0, [])
        assert command(*export.split(), env=folder).code == 0
        source = export.split()[-1]
        assert command(*export.split(), env=folder).code == 2, "it exists"
    assert [each.name for each in tmp_path.glob("*.part*")] == []
    assert command("import", source).code == 0
    [search] = re.findall(r'sqlite3 ana.db "(.+ MATCH .+)"', page)
    assert sqlite3.connect(tmp_path / source).execute(search).fetchall()
    assert command("export", "--tenant", "acme", "--user", "ana", "--out", "again.ndjson").code == 0
    before, after = (sorted((tmp_path / name).read_text().splitlines()) for name in ("made.ndjson", "again.ndjson"))
    assert [each for each in after if '"kind":"export"' not in each] == [
        each for each in before if '"kind":"export"' not in each
    ]


def test_an_error_in_a_folder_names_the_note(command: InProcess, tmp_path: Path) -> None:
    notes = written(tmp_path / "notes", "markdown", [MEMORY.header(), *MEMORY.lines()])
    note = next((notes / "facts").iterdir())
    note.write_text(note.read_text().replace("  version: ", "  version: many"))
    done = command("import", "notes", "--dry-run")
    [error] = json.loads(done.out)["errors"]
    assert (done.code, error["file"], error["line"]) == (1, f"facts/{note.name}", 1)


def test_a_dry_run_checks_the_file_and_writes_nothing(command: InProcess, tmp_path: Path) -> None:
    lines = [MEMORY.header(), *MEMORY.lines()]
    (tmp_path / "a.ndjson").write_text("\n".join([*lines[:4], "{", *lines[5:-1]]))
    done = command("import", "a.ndjson", "--dry-run")
    report = json.loads(done.out)
    assert done.code == 1
    assert report["imported"] == len(lines) - 3
    assert [each["line"] for each in report["errors"]] == [5, len(lines) - 1]
    assert "not complete" in report["errors"][1]["what"]
    assert os.listdir(tmp_path) == ["a.ndjson"]


@pytest.mark.parametrize(
    ("text", "options", "advice"),
    [
        ("", (), "empty"),
        ("PK\x03\x04", (), "zip"),
        (MEMORY.lines()[0], (), "first line"),
        (MEMORY.text(), ("--format", "json"), "is ndjson"),
        (MEMORY.header().replace('"version":1', '"version":9'), (), "later version"),
        (GeneratedMemory(1, "demo", group=True).text(), ("--user", "ana"), "leave out the user"),
        (MEMORY.text(), ("--user", ""), "128"),
    ],
)
def test_wrong_usage_is_exit_2_and_writes_nothing(
    command: InProcess, tmp_path: Path, text: str, options: tuple[str, ...], advice: str
) -> None:
    (tmp_path / "a.ndjson").write_text(text)
    done = command("import", "a.ndjson", *options)
    assert (done.code, done.out) == (2, "")
    assert advice in done.err
    assert os.listdir(tmp_path) == ["a.ndjson"]
