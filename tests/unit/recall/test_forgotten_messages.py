"""Messages that only say what was forgotten, and requests to forget."""

from __future__ import annotations

import pytest

from memstream.adapters.ports import StoredPoint
from memstream.recall.forgotten_messages import is_quoted, only_asks_to_forget, quotes_in

QUOTES = quotes_in(
    [
        StoredPoint("f1", {"evidence": [{"session_id": "s1", "turn_id": "t1", "quote": "I collect Stamps"}]}),
        StoredPoint("f2", {"evidence": [{"session_id": "s1", "turn_id": "t2", "quote": ""}]}),
        StoredPoint("f3", {"evidence": None}),
    ]
)


@pytest.mark.parametrize(
    ("session", "turn", "content", "quoted"),
    [
        ("s1", "t1", "Well, i  collect stamps!", True),
        ("s1", "t1", "I collect coins", False),
        ("s2", "t1", "I collect stamps", False),
        ("s1", "t2", "I collect stamps", False),
    ],
)
def test_a_message_is_quoted_by_its_own_turn(session: str, turn: str, content: str, quoted: bool) -> None:
    assert is_quoted({"session_id": session, "turn_id": turn}, content, QUOTES) is quoted


@pytest.mark.parametrize(
    ("role", "content", "asks"),
    [
        ("user", "Forget that I collect stamps.", True),
        ("user", "Please forget that I collect stamps. Also forget my address!", True),
        ("user", "Forget that I collect stamps. I collect coins.", False),
        ("user", "I will never forget that day", False),
        ("assistant", "Forget that I collect stamps.", False),
        ("user", "", False),
    ],
)
def test_a_request_to_forget(role: str, content: str, asks: bool) -> None:
    assert only_asks_to_forget({"role": role}, content) is asks
