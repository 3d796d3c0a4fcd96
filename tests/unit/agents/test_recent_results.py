"""Results that a row keeps for commands that are sent again."""

from __future__ import annotations

from datetime import UTC, datetime

from memstream.agents.common.recent_results import RESULTS_KEPT, RESULTS_MAX_CHARACTERS, RecentResults
from memstream.schemas.commands import Command, CommandResult
from memstream.schemas.turns import Owner

AT = datetime(2026, 11, 20, 10, tzinfo=UTC)


def command(command_id: str) -> Command:
    return Command(
        command_id=command_id,
        kind="facts.forget",
        tenant_id="acme",
        owner=Owner(scope="user", id="u1"),
        issued_at=AT,
    )


def result(command_id: str, text: str = "") -> CommandResult:
    return CommandResult(command_id=command_id, status="applied", result={"text": text}, at=AT)


def test_a_repeated_command_gets_the_result_that_it_got() -> None:
    results = RecentResults().add(result("c1"), of=command("c1")).add(result("c2", "second"), of=command("c2"))
    assert results.again(command("c1")) == result("c1")
    assert results.again(command("c2")) == result("c2", "second")


def test_the_oldest_results_leave_and_the_answer_says_so() -> None:
    results = RecentResults()
    for n in range(RESULTS_KEPT + 1):
        results = results.add(result(f"c{n}"), of=command(f"c{n}"))
    answer = results.again(command("c0"))
    assert answer.status == "refused"
    assert answer.error is not None
    assert answer.error.code == "repeated"
    assert results.again(command("c1")).status == "applied"


def test_results_are_bounded_in_characters() -> None:
    results = RecentResults()
    for n in range(4):
        results = results.add(result(f"c{n}", "x" * (RESULTS_MAX_CHARACTERS // 3)))
    assert sum(map(len, results.kept)) <= RESULTS_MAX_CHARACTERS
    assert results.again(command("c3")).status == "applied"
    assert RecentResults().add(result("long", "x" * RESULTS_MAX_CHARACTERS)).kept == ()


def test_another_request_under_the_same_id_is_refused() -> None:
    first, other = (command("c1").model_copy(update={"request_hash": each * 64}) for each in "ab")
    results = RecentResults().add(result("c1"), of=first)
    assert results.again(first).status == "applied"
    assert results.again(command("c1")).status == "applied"  # of a sender that gives no hash
    answer = results.again(other)
    assert answer.status == "refused"
    assert answer.error is not None
    assert answer.error.code == "key_reused"
