"""The reader of the BEAM format, on an invented chat with the oddities of the published ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bench.retrieval import beam
from bench.retrieval.conversations import NotReadable, Question

CHAT: list[dict[str, Any]] = [
    {
        "batch_number": 1,
        "turns": [
            [
                {"role": "user", "id": 0, "time_anchor": "March-15-2024", "content": "Where do I begin? ->-> 1,1"},
                {"role": "assistant", "id": 1, "content": "With a plan."},
            ],
            [
                {"role": "user", "id": 2, "content": "The kiln arrives on Friday. ->-> 1,6)"},
                {"role": "assistant", "id": 3, "content": " "},
                {"role": "user", "id": 2, "content": "once more"},
            ],
        ],
    },
    {"batch_number": 2, "turns": [[{"role": "user", "id": 4, "content": "x" * (beam.TEXT_MAX + 1)}]]},
]
ASKED: dict[str, list[dict[str, Any]]] = {
    "abstention": [{"question": "What is my shoe size?"}],
    "event_ordering": [{"question": "In which order?", "source_chat_ids": [[0, 2], 4, 99]}],
    "knowledge_update": [
        {"question": "When does the kiln come?", "source_chat_ids": {"original_info": [0], "updated_info": [2]}},
        {"question": " ", "source_chat_ids": [0]},
    ],
}


def written(folder: Path, chat: Any = CHAT, asked: Any = ASKED) -> Path:
    (folder / "7" / "probing_questions").mkdir(parents=True)
    (folder / "7" / "chat.json").write_text(json.dumps(chat))
    (folder / "7" / "probing_questions" / "probing_questions.json").write_text(json.dumps(asked))
    return folder


def test_messages_become_lines_of_their_role_in_sessions_of_their_day(tmp_path: Path) -> None:
    corpus = beam.read(written(tmp_path))
    [chat] = corpus.conversations
    assert chat.id == "chat-7"
    first, second = chat.sessions
    assert [(each.id, each.role, each.text) for each in first.lines] == [
        ("0", "user", "Where do I begin?"),
        ("1", "assistant", "With a plan."),
        ("2", "user", "The kiln arrives on Friday."),
    ]
    assert [each.text for each in second.lines] == ["x" * beam.TEXT_MAX]
    assert first.begins == second.begins == datetime(2024, 3, 15, tzinfo=UTC)


def test_evidence_is_named_as_a_list_as_lists_or_by_name(tmp_path: Path) -> None:
    corpus = beam.read(written(tmp_path))
    assert corpus.conversations[0].questions == [
        Question("In which order?", frozenset({"0", "2", "4"}), "event_ordering"),
        Question("When does the kiln come?", frozenset({"0", "2"}), "knowledge_update"),
    ]
    assert {what: count for what, count in corpus.skipped.items() if count} == {
        "messages without words or of another role": 1,
        "messages of an id that was there": 1,
        f"ends of messages over {beam.TEXT_MAX:,} characters": 1,
        "questions without words": 1,
        "questions without evidence": 1,
        "evidence of no message": 1,
    }


@pytest.mark.parametrize(("chat", "asked"), [({}, ASKED), (CHAT, [])])
def test_another_form_is_refused_with_its_place(tmp_path: Path, chat: Any, asked: Any) -> None:
    with pytest.raises(NotReadable, match="7"):
        beam.read(written(tmp_path, chat, asked))
    (tmp_path / "7" / "chat.json").write_text("{")
    with pytest.raises(NotReadable, match=r"chat\.json"):
        beam.read(tmp_path)


def test_a_folder_without_chats_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotReadable, match=r"no folder with chat.json"):
        beam.read(tmp_path)
