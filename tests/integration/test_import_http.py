"""`POST /v1/import`, and the client's import over it: rights, parts, and lines that cannot be read."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from memstream.api.credentials import Credentials
from memstream.client import Api, ImportRefused
from memstream.client import imports as client_imports
from memstream.schemas.commands import Command, CommandResult
from memstream.schemas.imports import FactsImport
from memstream.schemas.restore import RecordsRestore, RecordsRestored, RefusedRecord
from memstream.schemas.turns import Owner
from tests.support.api_server import NoCommands, app_over, called, entry
from tests.support.generated_memory import GeneratedMemory

ADMIN = entry("admin", scopes=["memory:admin"])
ANA = entry("ana", scopes=["memory:admin"], users=["ana"])
WRITER = entry("writer", scopes=["memory:write"])
MEMORY = GeneratedMemory(1, "acme")
MEM0 = Path(__file__).resolve().parents[1] / "data" / "foreign" / "mem0.json"
WITHOUT_TURNS = [line for line in MEMORY.lines() if not line.startswith('{"kind":"turn"')]
KINDS = {"restore.owner", "restore.upkeep", "restore.links", "restore.session"}


class Restoring(NoCommands):
    """Takes commands, and answers that each record is imported, except the refused lines."""

    def __init__(self, *refused: int) -> None:
        super().__init__()
        self.commands: list[Command] = []
        self.refused = refused

    async def ask(self, command: Command, *, patience: float) -> CommandResult | None:
        self.commands.append(command)
        foreign = command.kind == "facts.import"
        lines = [
            each.line
            for each in (
                FactsImport.from_payload(command.args).facts
                if foreign
                else RecordsRestore.from_payload(command.args).records
            )
        ]
        refused = tuple(RefusedRecord(line=line, why="no") for line in lines if line in self.refused)
        result = RecordsRestored(imported=len(lines) - len(refused), skipped=0, refused=refused)
        return CommandResult(
            command_id=command.command_id, status="applied", result=result.to_payload(), at=datetime.now(UTC)
        )


@asynccontextmanager
async def client(commands: Restoring, token: str = "admin") -> AsyncIterator[httpx.AsyncClient]:
    app = app_over(commands=commands, credentials=Credentials([ADMIN, ANA, WRITER]))
    async with called(app, token=token) as made:
        yield made


async def post(
    commands: Restoring, body: str, token: str = "admin", kind: str = "application/x-ndjson", **params: Any
) -> httpx.Response:
    async with client(commands, token) as made:
        return await made.post("/v1/import", params=params, content=body.encode(), headers={"Content-Type": kind})


def body_of(lines: list[str]) -> str:
    return "\n".join((MEMORY.header(), *lines))


async def test_records_become_commands_of_their_writers() -> None:
    commands = Restoring()
    answer = await post(commands, body_of(WITHOUT_TURNS))
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"imported": len(WITHOUT_TURNS) - 1, "skipped": 0, "errors": [], "more_errors": 0}
    assert {each.kind for each in commands.commands} == KINDS
    assert {each.issued_by for each in commands.commands} == {"admin"}
    once_more = Restoring()
    await post(once_more, body_of(WITHOUT_TURNS))
    assert [each.command_id for each in once_more.commands] == [each.command_id for each in commands.commands]


async def test_json_is_the_same_as_ndjson() -> None:
    commands = Restoring()
    answer = await post(commands, "[" + ",\n".join((MEMORY.header(), *WITHOUT_TURNS)) + "]", kind="application/json")
    assert answer.json()["imported"] == len(WITHOUT_TURNS) - 1


async def test_errors_name_the_lines_of_the_file() -> None:
    lines = [WITHOUT_TURNS[0], "{", WITHOUT_TURNS[1]]
    answer = await post(Restoring(102), body_of(lines), first_line=100, file="ana.ndjson")
    assert [(each["file"], each["line"]) for each in answer.json()["errors"]] == [
        ("ana.ndjson", 101), ("ana.ndjson", 102)
    ]  # fmt: skip
    assert answer.json()["imported"] == 1


async def test_the_file_of_another_memory_becomes_statements_of_a_tool() -> None:
    commands = Restoring()
    answer = await post(commands, MEM0.read_text(), kind="application/json", user_id="ana", file="mem0.json")
    async with client(commands) as made:
        api = Api(http=made, timeout=10.0)
        report = await api.import_file(MEM0, tenant_id="acme", user_id="ana", format="mem0", trust="user")
        with pytest.raises(ImportRefused, match="no format"):
            await api.import_file(MEM0, tenant_id="acme", format="toml")
        with pytest.raises(ImportRefused, match="is mem0, not csv"):
            await api.import_file(MEM0, tenant_id="acme", user_id="ana", format="csv")
    assert report.to_payload() == answer.json()
    assert (report.imported, [(each.file, each.line) for each in report.errors]) == (2, [("mem0.json", 5)])
    args = [FactsImport.from_payload(each.args) for each in commands.commands]
    assert [(each.kind, each.owner) for each in commands.commands] == [
        ("facts.import", Owner(scope="user", id="ana"))
    ] * 2
    assert [(each.file, each.trust, [fact.line for fact in each.facts]) for each in args] == [
        ("mem0.json", "tool", [3, 4]), ("mem0.json", "user", [3, 4])
    ]  # fmt: skip
    assert (await post(Restoring(), MEM0.read_text(), format="csv", user_id="ana")).status_code == 422
    assert (await post(Restoring(), "content\nHas a dog\n", kind="text/csv", user_id="ana")).json()["imported"] == 1


async def test_a_dry_run_sends_nothing() -> None:
    commands = Restoring()
    answer = await post(commands, body_of(WITHOUT_TURNS), dry_run=True)
    assert answer.json()["imported"] == len(WITHOUT_TURNS) - 1
    assert commands.commands == []


@pytest.mark.parametrize(
    ("token", "params", "status"),
    [
        ("writer", {}, 403),
        ("ana", {}, 200),
        ("ana", {"user_id": "u1"}, 403),
        ("admin", {"tenant_id": "other"}, 403),
        ("admin", {"user_id": "bob"}, 200),
        ("admin", {"scope": "group", "id": "team"}, 422),
    ],
)
async def test_the_token_decides_about_the_target(token: str, params: dict[str, Any], status: int) -> None:
    commands = Restoring()
    answer = await post(commands, body_of(WITHOUT_TURNS[:1]), token, **params)
    assert answer.status_code == status, answer.text
    named = {each.owner.id for each in commands.commands if each.owner is not None}
    assert named == ({params.get("user_id", "ana" if token == "ana" else "u1")} if status == 200 else set())


async def test_an_export_of_another_tenant_needs_access_to_a_target() -> None:
    other = GeneratedMemory(2, "other")
    body = "\n".join((other.header(), *other.lines()[:1]))
    commands = Restoring()
    answer = await post(commands, body)
    assert answer.status_code == 200
    assert {each.tenant_id for each in commands.commands} == {"acme"}, "the token's tenant"


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ("", "application/x-ndjson", 422),
        ("{}", "application/x-ndjson", 422),
        (WITHOUT_TURNS[0], "application/x-ndjson", 422),
        (body_of(WITHOUT_TURNS * 3), "application/x-ndjson", 422),
        (body_of(WITHOUT_TURNS), "text/plain", 415),
        (body_of(["x" * 4_300_000]), "application/x-ndjson", 413),
    ],
)
async def test_other_bodies_are_refused(body: str, kind: str, status: int) -> None:
    commands = Restoring()
    answer = await post(commands, body, kind=kind)
    assert answer.status_code == status, answer.text
    assert commands.commands == []


async def test_the_client_sends_a_file_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_imports, "PART_LINES", 7)
    commands = Restoring()
    lines = [*WITHOUT_TURNS[:20], "{", *WITHOUT_TURNS[20:]]
    (tmp_path / "ana.ndjson").write_text(body_of(lines))
    (tmp_path / "ana.json").write_text("[" + ",\n".join((MEMORY.header(), *WITHOUT_TURNS)) + "]")
    async with client(commands) as made:
        api = Api(http=made, timeout=10.0)
        report = await api.import_file(tmp_path / "ana.ndjson", tenant_id="acme")
        again = await api.import_file(tmp_path / "ana.json", tenant_id="acme", dry_run=True)
        with pytest.raises(ImportRefused):
            await api.import_file(tmp_path, tenant_id="acme")
    assert report.imported == again.imported == len(WITHOUT_TURNS) - 1
    assert [(each.file, each.line) for each in report.errors] == [("ana.ndjson", 22)]
    sent = [json.loads(json.dumps(each.args))["records"] for each in commands.commands]
    assert len([each for records in sent for each in records]) == len(WITHOUT_TURNS) - 1
