"""`memstream import` of the files of other memories, as a user runs it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.support.agentos_database import agentos_database
from tests.support.cli_process import InProcess

FILES = Path(__file__).resolve().parents[1] / "data" / "foreign"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "come-from-another-memory.md"
WHOSE = ("--tenant", "demo", "--user", "ana")


@pytest.fixture
def command(tmp_path: Path) -> InProcess:
    shutil.copytree(FILES, tmp_path, dirs_exist_ok=True)
    traces = [
        {"type": "semantic", "scope": "user", "content": "Rows on the river", "created_at": 1_711_234_567_890},
        {"type": "semantic", "scope": "user", "content": "Page 1", "metadata": {"document_id": "d"}},
    ]
    agentos_database(tmp_path / "brain.sqlite", {"memory_traces": traces})
    return InProcess(tmp_path, {"MEMSTREAM_DATADIR": str(tmp_path / "memory")})


def test_conversations_become_turns_once(command: InProcess, tmp_path: Path) -> None:
    for imported, skipped in ((3, 0), (0, 3)):
        done = command("import", "conversations.json", *WHOSE)
        assert done.code == 0, done.err
        assert json.loads(done.out) == {"imported": imported, "skipped": skipped, "errors": [], "more_errors": 0}
    shown = command("show", "turns", *WHOSE, "--json").records
    assert [(each["occurred_at"], each["content"]) for each in shown] == [
        ("2024-06-01T10:00:00.250000Z", "I moved to Lisbon in May."),
        ("2024-06-01T10:00:20Z", "How do you like it?"),
        ("2024-06-01T10:01:20Z", "This is my street."),
        ("2024-06-01T10:01:30.500000Z", "A quiet one."),
        ("2024-06-02T10:00:00Z", "My dog is called Nero."),
    ]
    assert not (tmp_path / "conversations.json.import").exists()


@pytest.mark.long
def test_statements_of_each_format_become_facts_once(command: InProcess) -> None:
    reports = {}
    for name in ("knowledge.csv", "mem0.json", "zep.json", "agentos.json", "agent.af", "passages.json", "brain.sqlite"):
        done = command("import", name, *WHOSE)
        report = json.loads(done.out)
        assert done.code == (1 if report["errors"] else 0), done.err
        reports[name] = (report["imported"], report["skipped"], [each["line"] for each in report["errors"]])
    assert reports == {
        "knowledge.csv": (2, 0, [4]),
        "mem0.json": (1, 1, [5]),
        "zep.json": (5, 1, [10]),
        "agentos.json": (1, 1, [7]),
        "agent.af": (3, 1, []),
        "passages.json": (1, 0, []),
        "brain.sqlite": (1, 1, []),
    }
    shown = command("show", "facts", *WHOSE, "--state", "all", "--json").records
    places = {each["content"]: each["evidence"][0].get("imported") for each in shown}
    assert places["Works at Northwind"] == {"file": "knowledge.csv", "line": 2}
    assert places["Prefers tea to coffee"] == {"file": "mem0.json", "line": 4}
    assert command("import", "agent.af", *WHOSE).code == 0
    assert command("show", "facts", *WHOSE, "--state", "all", "--json").records == shown


@pytest.mark.long
def test_the_commands_of_the_page_import_every_file(command: InProcess) -> None:
    check, first, *others = re.findall(r"^memstream (.+)$", PAGE.read_text(), re.MULTILINE)
    report = json.loads(re.findall(r"```json\n(.+)\n```", PAGE.read_text())[0])
    for each in (check, first):
        done = command(*each.split())
        assert (json.loads(done.out), done.code) == (report, 1)
    for each in others:
        assert json.loads(command(*each.split()).out)["imported"] > 0, each


def test_a_file_that_names_its_users_needs_no_user(command: InProcess) -> None:
    done = command("import", "mem0.json", "--tenant", "demo", "--trust", "user")
    assert (json.loads(done.out)["imported"], done.code) == (2, 1)
    shown = command("show", "facts", *WHOSE, "--json").records
    assert {each["trust"] for each in shown} == {"user"}
    assert {each["content"] for each in shown} == {"Works at Northwind", "Prefers tea to coffee"}


@pytest.mark.parametrize(
    ("name", "text", "options", "advice"),
    [
        ("conversations.json", None, (), "is of the format chatgpt: give --tenant and --user"),
        ("conversations.json", None, ("--format", "json", *WHOSE), "is chatgpt, not json"),
        ("mem0.json", None, (), r"is of the format mem0: give --tenant \(tenant_id\)"),
        ("absent.json", None, WHOSE, "check its path"),
        ("empty.json", "", WHOSE, "export it again"),
        ("table.csv", "name,text\nAna,tea\n", WHOSE, "no column content"),
        ("other.json", '{"users": []}', WHOSE, "a JSON object with the fields users. .* give --format"),
        ("other.json", '{"users": []}', ("--format", "letta", *WHOSE), "no list agents or blocks: name another file"),
        ("conversations.zip", "PK\x03\x04", WHOSE, "unpack it first"),
    ],
)
def test_wrong_usage_is_exit_2_and_says_what_to_do(
    command: InProcess, tmp_path: Path, name: str, text: str | None, options: tuple[str, ...], advice: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    done = command("import", name, *options)
    assert (done.code, done.out) == (2, "")
    assert re.search(advice, done.err), done.err
    assert not (tmp_path / "memory").exists()
