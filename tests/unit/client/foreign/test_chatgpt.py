"""Conversations of ChatGPT: the current branch, its texts and times, and conversations that are broken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .reading import FILES, check_each_place_continues, lines_of, read_file, read_json


def conversation(*texts: str, **more: Any) -> dict[str, Any]:
    """Return a conversation in which the user says these texts, one after the other."""
    nodes = {
        f"n{n}": {
            "parent": f"n{n - 1}" if n else None,
            "message": {"author": {"role": "user"}, "content": {"content_type": "text", "parts": [text]}},
        }
        for n, text in enumerate(texts)
    }
    return {"conversation_id": "c", "mapping": nodes, "current_node": f"n{len(texts) - 1}"} | more


def test_the_texts_of_the_current_branch_become_turns_of_their_time() -> None:
    found = lines_of(read_file("conversations.json", "chatgpt"))
    assert [(line, kind, record["session_id"]) for line, kind, record in found] == [
        (2, "imported_turn", "chatgpt-c1"),
        (2, "imported_turn", "chatgpt-c1"),
        (26, "imported_turn", "chatgpt-c2"),
    ]
    turns = [record for *_, record in found]
    assert [[(each["role"], each["content"]) for each in turn["messages"]] for turn in turns] == [
        [("user", "I moved to Lisbon in May."), ("assistant", "How do you like it?")],
        [("user", "This is my street."), ("assistant", "A quiet one.")],
        [("user", "My dog is called Nero.")],
    ]
    assert turns[0]["messages"][0]["created_at"] == "2024-06-01T10:00:00.250000+00:00"
    assert [turn["tags"] for turn in turns] == [["Moving to Lisbon"], ["Moving to Lisbon"], []]
    assert turns[2]["occurred_at"] == "2024-06-02T10:00:00+00:00", "the time of the conversation"


def test_ids_follow_from_the_content() -> None:
    once, again = (lines_of(read_json([conversation("a"), conversation("b")], "chatgpt")) for _ in range(2))
    changed = lines_of(read_json([conversation("a"), conversation("c")], "chatgpt"))
    assert once == again
    assert [a[2]["turn_id"] == b[2]["turn_id"] for a, b in zip(once, changed, strict=True)] == [True, False]


def test_a_reader_continues_behind_any_line() -> None:
    check_each_place_continues((FILES / "conversations.json").read_bytes(), "chatgpt")


@pytest.mark.parametrize(
    ("item", "what"),
    [
        ({"mapping": {}}, "has no conversation_id"),
        ({"id": "c"}, "has no mapping"),
        (conversation("a", current_node=None), "has no current_node"),
        (conversation("a", current_node="nothing"), "does not lead to its beginning"),
        (conversation("a") | {"mapping": {"n0": {"parent": "n0"}}}, "does not lead to its beginning"),
        (conversation("a", create_time="yesterday"), "time"),
    ],
)
def test_a_broken_conversation_costs_that_conversation(item: dict[str, Any], what: str) -> None:
    found = lines_of(read_json([conversation("before"), item, conversation("after")], "chatgpt"))
    assert [kind for _, kind, _ in found] == ["imported_turn", "fault", "imported_turn"]
    assert what in found[1][2]["what"]


def test_long_conversations_are_turns_within_the_limits() -> None:
    found = lines_of(
        read_json([conversation(*(str(n) for n in range(150))), conversation(*["é" * 60_000] * 4)], "chatgpt")
    )
    assert [len(record["messages"]) for *_, record in found] == [64, 64, 22, 2, 2]
    assert all(len(json.dumps(record, ensure_ascii=False).encode()) < 256 * 1024 for *_, record in found)
