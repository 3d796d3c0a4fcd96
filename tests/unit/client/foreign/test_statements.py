"""Statements and turns of mem0, Zep, Letta, AgentOS and of tables: fields, times, lines, and items that are broken."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from memstream.client.import_file import ImportRefused, ImportSource
from memstream.client.import_formats import FormatName, format_of

from .reading import FILES, check_each_place_continues, lines_of, read_bytes, read_file, read_json

NAMES: list[tuple[str, FormatName]] = [
    ("knowledge.csv", "csv"),
    ("mem0.json", "mem0"),
    ("agent.af", "letta"),
    ("zep.json", "zep"),
    ("passages.json", "letta"),
    ("agentos.json", "agentos"),
]


def facts_of(name: str, form: FormatName) -> list[tuple[int, dict[str, Any]]]:
    """Return line and fields of the statements, and the reason of a fault."""
    return [(line, record) for line, kind, record in lines_of(read_file(name, form)) if kind != "imported_turn"]


def test_rows_of_a_table() -> None:
    assert facts_of("knowledge.csv", "csv") == [
        (2, {"content": "Works at Northwind", "metadata": {"source": "crm", "confidence": "high"}}),
        (3, {"content": "Lives in Porto, near the river", "metadata": {"source": "form"}}),
        (4, {"what": "the row has no text"}),
    ]


def test_memories_of_mem0() -> None:
    assert facts_of("mem0.json", "mem0") == [
        (
            3,
            {
                "content": "Works at Northwind",
                "user_id": "ana",
                "said_at": "2024-11-01T19:33:44.116920-07:00",
                "metadata": {"category": "work", "agent_id": "helper"},
            },
        ),
        (
            4,
            {
                "content": "Prefers tea to coffee",
                "user_id": "ana",
                "said_at": "2024-11-02T08:00:00-07:00",
                "tags": ["food"],
            },
        ),
        (5, {"what": "the item has no text"}),
    ]
    alone = json.loads((FILES / "mem0.json").read_text())["results"]
    assert [record for *_, record in lines_of(read_json(alone, "mem0"))] == [
        record for _, record in facts_of("mem0.json", "mem0")
    ]


def test_edges_and_summaries_of_zep() -> None:
    assert facts_of("zep.json", "zep") == [
        (3, {"content": "Ana leads a team.", "said_at": "2025-01-10T09:00:00+00:00"}),
        (
            4,
            {
                "content": "Northwind builds pumps in Porto.",
                "subject": "Northwind",
                "said_at": "2025-01-10T09:00:00+00:00",
                "metadata": {"branch": "pumps"},
            },
        ),
        (
            8,
            {
                "content": "Works at Northwind",
                "said_at": "2025-01-10T08:59:00+00:00",
                "valid_from": "2024-03-01T00:00:00+00:00",
                "metadata": {"since": "March", "relation": "WORKS_AT"},
            },
        ),
        (
            9,
            {
                "content": "Lives in Faro",
                "said_at": "2025-01-10T09:00:00+00:00",
                "valid_from": "2020-01-01T00:00:00+00:00",
                "valid_to": "2023-01-01T00:00:00+00:00",
                "metadata": {"relation": "LIVES_IN"},
            },
        ),
        (10, {"what": "the item has no text"}),
    ]


def test_messages_of_zep() -> None:
    turns = [record for _, kind, record in lines_of(read_file("zep.json", "zep")) if kind == "imported_turn"]
    assert [
        (turn["session_id"], turn["occurred_at"], [(each["role"], each["content"]) for each in turn["messages"]])
        for turn in turns
    ] == [
        ("zep-t1", "2025-01-10T08:59:00+00:00", [("user", "I left Faro last year.")]),
        (
            "zep-ana",
            "2025-01-11T08:00:00+00:00",
            [("user", "My cat is Miso."), ("assistant", "A good name.")],
        ),
    ]


@pytest.mark.parametrize("name", ["edges", "nodes", "episodes"])
def test_each_list_of_zep_is_known(name: str) -> None:
    items = json.loads((FILES / "zep.json").read_text())[name]
    assert len(lines_of(read_json({name: items}, "auto"))) == {"edges": 3, "nodes": 2, "episodes": 2}[name]


def test_passages_of_letta() -> None:
    expected = {
        "content": "Plays the cello in an orchestra",
        "said_at": "2025-08-28T01:00:00+00:00",
        "tags": ["music"],
        "metadata": {"source": "talk"},
    }
    assert facts_of("passages.json", "letta") == [(2, expected)]


def test_blocks_and_messages_of_letta() -> None:
    assert facts_of("agent.af", "letta") == [
        (22, {"content": "Works at Northwind", "metadata": {"block": "human"}}),
        (22, {"content": "Lives in Porto", "metadata": {"block": "human"}}),
    ]
    turns = [record for _, kind, record in lines_of(read_file("agent.af", "letta")) if kind == "imported_turn"]
    assert [[(each["role"], each["content"]) for each in turn["messages"]] for turn in turns] == [
        [("user", "I adopted a cat."), ("assistant", "What is its name?")],
        [("user", "Its name is Miso."), ("assistant", "A good name.")],
    ]
    assert {turn["session_id"] for turn in turns} == {"letta-helper"}
    assert turns[0]["messages"][0]["created_at"] == "2025-08-28T01:00:00+00:00"


def test_traces_of_agentos() -> None:
    at = "2024-03-23T22:56:07.890000+00:00"
    assert facts_of("agentos.json", "agentos") == [
        (
            4,
            {
                "content": "Works at Northwind",
                "said_at": at,
                "tags": ["work"],
                "metadata": {"source": "user_statement", "type": "semantic"},
            },
        ),
        (
            5,
            {
                "content": "Signed a lease in Porto",
                "category": "event",
                "said_at": at,
                "tags": ["home"],
                "metadata": {"type": "episodic"},
            },
        ),
        (7, {"what": "the item has the scope organization, which is not the user's"}),
    ]


@pytest.mark.parametrize(("name", "form"), NAMES)
def test_a_reader_of_statements_continues_behind_any_line(name: str, form: FormatName) -> None:
    check_each_place_continues((FILES / name).read_bytes(), form)


def test_wrong_rows_cost_their_row() -> None:
    rows = (
        b"content;n\r\nfirst;1\r\n\r\n\xff;2\r\na;b;c\r\n" + b"x" * 200_000 + b';1\r\n"two\r\nlines";9\r\n"open;1\r\n'
    )
    found = lines_of(read_bytes(rows, "csv"))
    assert [(line, kind) for line, kind, _ in found] == [
        (2, "imported_fact"),
        (4, "fault"),
        (5, "fault"),
        (6, "fault"),
        (7, "imported_fact"),
        (9, "fault"),
    ]
    assert found[4][2]["content"] == "two\r\nlines"


@pytest.mark.parametrize(
    ("raw", "form", "advice"),
    [
        (b"text,n\na,1\n", "csv", "no column content"),
        (b"content,n,n\na,1,2\n", "csv", "two columns"),
        (b'{"memories_of": []}', "mem0", "no list memories or results"),
        (b'{"edges": {"edges": []}}', "zep", "no list edges or episodes or facts or nodes"),
    ],
)
def test_a_file_without_the_part_that_is_read_is_refused(raw: bytes, form: FormatName, advice: str) -> None:
    with pytest.raises(ImportRefused, match=advice):
        read_bytes(raw, form)


@pytest.mark.parametrize(
    ("item", "form"),
    [
        ({"memory": "a", "metadata": [1]}, "mem0"),
        ({"memory": "a", "created_at": "soon"}, "mem0"),
        ({"fact": "a", "attributes": 1}, "zep"),
        ({"summary": "a"}, "zep"),
        ({"name": "a", "summary": "b", "labels": 1}, "zep"),
        ({"content": 1, "source": "message"}, "zep"),
        ({"text": "a", "tags": 1}, "letta"),
        ({"text": 1}, "letta"),
        ({"label": "human"}, "letta"),
        ({"name": "a", "messages": [1]}, "letta"),
        ({"content": "a", "tags": "{"}, "agentos"),
        (7, "agentos"),
    ],
)
def test_a_broken_item_is_a_fault(item: Any, form: FormatName) -> None:
    assert [kind for _, kind, _ in lines_of(read_json([item], form))] == ["fault"]


def test_a_list_in_an_object_is_found_across_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = (FILES / "agent.af").read_bytes()
    whole = read_bytes(raw, "letta")
    reader = format_of(ImportSource("f", io.BytesIO(raw))).read
    monkeypatch.setattr("memstream.client.import_file.CHUNK", 3)
    assert list(reader(ImportSource("f", io.BytesIO(raw)), 0, 0)) == whole
