"""The report of `memstream trace --turn` names what a turn said that nobody will find in memory."""

from __future__ import annotations

import pytest

from memstream.cli.output.trace_report import show_turn
from memstream.memory.policies import MemoryPolicy
from memstream.recall.statement_outcomes import TurnFacts, statement_outcomes
from memstream.recall.turn_trace import TurnOutcome
from memstream.schemas.observations import Observed, ObservedBy, OverCap, RefusedStatement, RefusedStatements, TurnCut
from memstream.schemas.turns import Owner, UnreadMessage

REFUSED = RefusedStatement(subject="user", content="Works at Acme", why="invented")


def report_of(capsys: pytest.CaptureFixture[str], cause: ObservedBy) -> str:
    observed = Observed(
        tenant_id="acme",
        user_id="u1",
        session_id="s1",
        turn_id="t1",
        turn_number=1,
        owner=Owner(scope="user", id="u1"),
        occurred_at="2026-06-01T10:00:00Z",
        cause=cause,
    )
    turn = TurnFacts({})
    statements = statement_outcomes(observed, turn, MemoryPolicy(), reflected=True, ceiling="internal")
    found = TurnOutcome("u1", "s1", "t1", messages=(), observed=observed, stage="reflected", statements=statements)
    show_turn(found)
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("cause", "line"),
    [
        (
            ObservedBy(unread=(UnreadMessage(index=1, why="role wizard"),)),
            "message 2 was not read: role wizard",
        ),
        (ObservedBy(repaired_characters=3), "broken characters that were replaced or removed: 3"),
        (ObservedBy(cut=TurnCut(messages=1, tokens=900)), "the model did not see 900 tokens of 1 messages"),
        (
            ObservedBy(refused=RefusedStatements(statements=1, listed=(REFUSED,))),
            "refused Works at Acme its quote is not in the turn",
        ),
        (
            ObservedBy(over_cap=OverCap(observations=2, statements=("Likes tea",))),
            "and 1 refused statements that the record does not list",
        ),
    ],
)
def test_what_was_left_out_is_named(capsys: pytest.CaptureFixture[str], cause: ObservedBy, line: str) -> None:
    assert line in report_of(capsys, cause)


def test_a_turn_of_which_everything_was_read_names_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    report = report_of(capsys, ObservedBy())
    assert "not read" not in report
    assert "broken characters" not in report
