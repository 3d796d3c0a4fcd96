"""Exports that move to another owner: new ids that hang together, and nothing of the old names."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from memstream.agents.common.erased_events import happening_of_command
from memstream.agents.common.restored_turns import RestoredTurn
from memstream.memory.erasures import ErasedUsers
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.schemas import ids
from memstream.schemas.commands import Command
from memstream.schemas.erasures import ErasureMarker
from memstream.schemas.restore import RecordsRestore
from memstream.schemas.turns import Owner
from memstream.tools.importing.lines import ImportLine, ImportPlan, read_page
from tests.support.generated_memory import GeneratedMemory

ANA = Owner(scope="user", id="ana")
MEMORY = GeneratedMemory(1, "acme")


def moved(**target: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    plan = ImportPlan.of("f", MEMORY.header().encode(), **target)
    lines = [ImportLine(n, line.encode()) for n, line in enumerate(MEMORY.lines(), start=2)]
    page = read_page(plan, lines, SecretFilter(), ErasedUsers())
    assert page.tally.errors == []
    records = [each for restored in page.commands.values() for each in restored]
    return [{"kind": each.kind, **each.record} for each in sorted(records, key=lambda each: each.line)], page.turns


def test_a_restore_of_the_same_owner_changes_nothing() -> None:
    records, turns = moved()
    given = [json.loads(line) for line in MEMORY.lines()]
    expected = [{"kind": each["kind"], **each["record"]} for each in given if each["kind"] not in ("turn", "end")]
    for each in expected:
        each.pop("embedding", None)
    assert records == expected
    assert len(turns) == len(MEMORY.records["turn"])


def test_a_moved_memory_names_its_new_owner_everywhere() -> None:
    records, turns = moved(tenant_id="other", owner=ANA)
    text = json.dumps(records) + "".join(turn.model_dump_json() for _, turn in turns)
    assert "acme" not in text
    assert '"u1"' not in text
    assert {each["owner_key"] for each in records if "owner_key" in each} == {ANA.key("other")}


def test_ids_of_a_moved_memory_hang_together() -> None:
    records, _ = moved(tenant_id="other", owner=ANA)
    facts = {each["fact_id"] for each in records if each["kind"] == "fact"}
    assert facts.isdisjoint({each.fact_id for each in MEMORY.records["fact"]})
    for each in records:
        if each["kind"] == "fact_change":
            assert each["fact"]["fact_id"] in facts
            assert each["event_id"] == ids.event_id(each["fact"]["fact_id"], each["fact"]["version"])
        if each["kind"] == "archive":
            assert each["episode_id"] in {other["episode_id"] for other in records if other["kind"] == "episode"}
    assert moved(tenant_id="other", owner=ANA)[0] == records, "a repeated import finds its own records"


@pytest.mark.parametrize("owner", [Owner(scope="group", id="team"), Owner(scope="agent", id="a")])
def test_an_owner_of_another_scope_is_refused(owner: Owner) -> None:
    with pytest.raises(ValueError, match="the export is of a user: name a user"):
        ImportPlan.of("f", MEMORY.header().encode(), owner=owner)


def test_an_export_of_a_tenant_does_not_move_to_a_user() -> None:
    header = GeneratedMemory(1, "acme", group=True).header().encode()
    with pytest.raises(ValueError, match="leave out the user"):
        ImportPlan.of("f", header, owner=ANA)


def test_records_of_another_tenant_are_errors() -> None:
    plan = ImportPlan.of("f", MEMORY.header().encode())
    lines = [ImportLine(2, line.replace('"acme', '"evil').encode()) for line in MEMORY.lines()[:-1]]
    page = read_page(plan, lines, SecretFilter(), ErasedUsers())
    assert len(page.tally.errors) == len(lines)
    assert (page.commands, page.turns) == ({}, [])


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"{", "not valid JSON"),
        (b"[1]", "no record"),
        (b'{"kind":"fact"}', "no record"),
        (b'{"kind":"dream","record":{}}', "not known"),
        (b'{"kind":"fact","record":{}}', "fact_id"),
        (b'{"kind":"fact","record":' + b"[" * 5_000 + b"]" * 5_000 + b"}", "nested too deeply|not known"),
        (b"\xff\xff", "UTF-16|UTF-8"),
    ],
)
def test_a_line_that_is_no_record_is_an_error(line: bytes, what: str) -> None:
    plan = ImportPlan.of("f", MEMORY.header().encode())
    page = read_page(plan, [ImportLine(9, line)], SecretFilter(), ErasedUsers())
    [error] = page.tally.errors
    assert error.line == 9
    assert any(each in error.what for each in what.split("|")), error.what
    assert error.what_to_do


@pytest.mark.parametrize(
    "header",
    [b"{}", b"[]", b'{"kind":"fact","record":{}}', b'{"kind":"export","record":{}}', b"x"],
)
def test_a_file_without_a_header_is_refused(header: bytes) -> None:
    with pytest.raises(ValueError, match="the first line"):
        ImportPlan.of("f", header)


def test_a_later_major_version_is_refused() -> None:
    with pytest.raises(ValueError, match="later version of memstream"):
        ImportPlan.of("f", MEMORY.header().replace('"version":1', '"version":2').encode())


# ------------------------------------------------------------------------------------------------ erased users
def erased(tenant_id: str, user_id: str, *, at: datetime) -> ErasedUsers:
    users = ErasedUsers()
    users.set(ids.user_hash(tenant_id, user_id), ErasureMarker(erasure_id="e1", state="closed", at=at))
    return users


@pytest.mark.parametrize(("later", "comes_back"), [(timedelta(), False), (timedelta(seconds=-1), True)])
def test_an_export_from_before_an_erasure_brings_nobody_back(later: timedelta, comes_back: bool) -> None:
    plan = ImportPlan.of("f", MEMORY.header().encode())
    lines = [ImportLine(n, line.encode()) for n, line in enumerate(MEMORY.lines(), start=2)]
    page = read_page(plan, lines, SecretFilter(), erased("acme", "u1", at=plan.header.at + later))
    assert bool(page.commands or page.turns) is comes_back
    assert {each.what.partition(": ")[2] for each in page.tally.errors} == (
        set() if comes_back else {"it names a user who was erased"}
    )
    assert read_page(plan, lines, SecretFilter(), erased("other", "u1", at=plan.header.at)).tally.errors == []
    renamed = ImportPlan.of("f", MEMORY.header().encode(), tenant_id="beta", owner=ANA)
    page = read_page(renamed, lines, SecretFilter(), erased("acme", "u1", at=plan.header.at + later))
    assert bool(page.commands or page.turns) is comes_back, "under another name"


def test_a_shared_fact_with_evidence_of_an_erased_user_is_an_error() -> None:
    plan = ImportPlan.of("f", MEMORY.header().encode())
    facts = [each for each in map(json.loads, MEMORY.lines()) if each["kind"] == "fact" and each["record"]["evidence"]]
    facts[0]["record"]["evidence"][0]["user_id"] = "bob"
    lines = [ImportLine(n, json.dumps(each).encode()) for n, each in enumerate(facts, start=2)]
    page = read_page(plan, lines, SecretFilter(), erased("acme", "bob", at=plan.header.at))
    assert [each.line for each in page.tally.errors] == [2]
    assert sum(map(len, page.commands.values())) == len(facts) - 1


def test_a_restore_happens_at_the_moment_of_its_export() -> None:
    plan = ImportPlan.of("f", MEMORY.header().encode())
    lines = [ImportLine(n, line.encode()) for n, line in enumerate(MEMORY.lines(), start=2)]
    page = read_page(plan, lines, SecretFilter(), ErasedUsers())
    assert {RestoredTurn(turn).happening.at for _, turn in page.turns} == {plan.header.at}
    for target, records in page.commands.items():
        args = RecordsRestore(source=plan.source, exported_at=plan.header.at, records=tuple(records[:50]))
        command = Command(
            command_id="c",
            kind=target.kind,
            tenant_id="acme",
            owner=target.owner,
            session=target.session,
            args=args.to_payload(),
            issued_by="cli",
            issued_at=plan.header.at + timedelta(days=1),
        )
        assert happening_of_command(command).at == plan.header.at
        wrong = command.model_copy(update={"args": {"exported_at": "soon"}})
        assert happening_of_command(wrong).at == command.issued_at
