"""Lines of foreign files: for which user, under which line, and which are refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from memstream.memory.erasures import ErasedUsers
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.schemas import ids
from memstream.schemas.erasures import ErasureMarker
from memstream.schemas.export import ExportHeader, ExportLine
from memstream.schemas.imports import FactToImport
from memstream.schemas.turns import Owner
from memstream.tools.importing.lines import ImportLine, ImportPlan, PageRecords, read_page

AT = datetime(2026, 11, 20, tzinfo=UTC)
ANA = Owner(scope="user", id="ana")
TURN = {
    "session_id": "s",
    "turn_id": "t",
    "messages": [{"role": "user", "content": "I moved.", "created_at": 1717236000}],
}


def page(
    *records: dict[str, Any], kind: str = "imported_turn", owner: Owner | None = ANA, erased: ErasedUsers | None = None
) -> PageRecords:
    header = ExportHeader(at=AT, tenant_id="acme", owner=owner, ceiling="secret", conversations=True)
    plan = ImportPlan.of("f.json", ExportLine.of("export", header).to_line().encode())
    lines = [json.dumps({"kind": kind, "line": 40 + n, "record": each}).encode() for n, each in enumerate(records)]
    numbered = [ImportLine(2 + n, line) for n, line in enumerate(lines)]
    return read_page(plan, numbered, SecretFilter(), erased or ErasedUsers())


def erased_at(at: datetime) -> ErasedUsers:
    erased = ErasedUsers()
    erased.set(ids.user_hash("acme", "ana"), ErasureMarker(erasure_id="e", state="closed", at=at))
    return erased


def faults(found: PageRecords) -> list[tuple[int, str]]:
    return [(each.line, each.what) for each in found.tally.report().errors]


def test_a_turn_belongs_to_the_target_and_has_its_own_time() -> None:
    found = page(TURN | {"user_id": "eve", "tenant_id": "other"})
    [turn] = found.said
    assert (turn.tenant_id, turn.user_id) == ("acme", "ana")
    assert turn.occurred_at == datetime.fromtimestamp(1717236000, UTC)


def test_secrets_of_a_turn_are_masked() -> None:
    token = "ghp_" + "a1B2" * 9
    [turn] = page(TURN | {"messages": [{"role": "user", "content": f"My token is {token}"}]}).said
    assert token not in turn.messages[0].text


def test_wrong_turns_are_errors_with_the_line_of_the_file() -> None:
    found = page(TURN, {"session_id": "s"}, TURN | {"messages": [{"role": "user", "content": "x" * 300_000}]})
    assert [line for line, _ in faults(found)] == [41, 42]
    assert "the turn has" in faults(found)[1][1]
    assert len(found.said) == 1
    assert "a group" in faults(page(TURN, owner=Owner(scope="group", id="team")))[0][1]


def test_an_erased_user_does_not_come_back() -> None:
    assert "erased" in faults(page(TURN, erased=erased_at(AT)))[0][1]
    early = datetime(2025, 1, 1, tzinfo=UTC)
    assert "erased" in faults(page(TURN, erased=erased_at(early)))[0][1], "the turn is from before the erasure"
    late = TURN | {"messages": [{"role": "user", "content": "I am back.", "created_at": "2026-11-19T00:00:00Z"}]}
    assert len(page(late, erased=erased_at(early)).said) == 1


FACT = {"content": "Works at Google", "said_at": "2024-06-01T10:00:00+02:00", "category": None}


def test_statements_become_a_command_for_their_owner() -> None:
    found = page(FACT, FACT | {"user_id": "eve"}, kind="imported_fact")
    [(target, facts)] = found.commands.items()
    assert (target.kind, target.owner) == ("facts.import", ANA)
    assert [each.line for each in facts if isinstance(each, FactToImport)] == [40, 41]


def test_without_a_named_user_the_file_names_the_users() -> None:
    found = page(FACT | {"user_id": "eve"}, FACT, kind="imported_fact", owner=None)
    assert [target.owner for target in found.commands] == [Owner(scope="user", id="eve")]
    assert faults(found) == [(41, "imported_fact: it names no user: give the user of the import")]


def test_wrong_statements_are_errors_with_the_line_of_the_file() -> None:
    wrong = FACT | {"metadata": {"waits_for": "x"}}
    found = page(
        {}, FACT | {"content": "x" * 2001}, wrong, FACT | {"metadata": {"a": "x" * 4000}}, kind="imported_fact"
    )
    assert [line for line, _ in faults(found)] == [40, 41, 42, 43]
    assert "the name waits_for is reserved" in faults(found)[2][1]


def test_a_statement_from_before_an_erasure_does_not_come_back() -> None:
    later = FACT | {"said_at": "2026-11-19T00:00:00Z"}
    found = page(FACT, later, kind="imported_fact", erased=erased_at(datetime(2025, 1, 1, tzinfo=UTC)))
    assert [line for line, _ in faults(found)] == [40]
    assert sum(len(each) for each in found.commands.values()) == 1


def test_what_a_reader_leaves_out_counts_as_skipped() -> None:
    report = page({}, {}, kind="left_out").tally.report()
    assert (report.imported, report.skipped, report.errors) == (0, 2, ())
