"""The front door: every form in which producers send a turn, and what is read of it."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.schemas.errors import Poison
from memstream.schemas.front_door.json_text import REPLACEMENT, parse_json, repair, repair_text
from memstream.schemas.front_door.turns import ReadTurn, read_turn
from memstream.schemas.times import read_time
from memstream.schemas.turns import MESSAGES_MAX, Turn, turn_value

SAID = "I work at Fixpoint."
USER = {"role": "user", "content": SAID}
LEAST: dict[str, Any] = {
    "tenant_id": "acme",
    "user_id": "u1",
    "session_id": "s1",
    "turn_id": "t1",
    "messages": [USER],
}
PLAIN = json.dumps(LEAST).encode()


def with_messages(*messages: Any, **more: Any) -> dict[str, Any]:
    return {**LEAST, "messages": list(messages), **more}


def read(fields: object) -> ReadTurn:
    return read_turn(json.dumps(fields).encode())


def said(turn: Turn) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in turn.messages]


def unread(turn: Turn) -> dict[int, str]:
    return {each.index: each.why for each in turn.unread}


def refusal(value: bytes) -> Poison:
    with pytest.raises(Poison) as caught:
        read_turn(value)
    return caught.value


# --------------------------------------------------------------------------------------------------------------- roles
@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("user", "user"),
        ("USER", "user"),
        ("human", "user"),
        ("assistant", "assistant"),
        ("model", "assistant"),
        ("ai", "assistant"),
        ("CHATBOT", "assistant"),
        ("system", "system"),
        ("developer", "system"),
        (" Developer ", "system"),
        ("tool", "tool"),
        ("function", "tool"),
        ("HumanMessage", "user"),
        ("AIMessageChunk", "assistant"),
    ],
)
def test_the_names_that_producers_give_to_roles_are_known(name: str, role: str) -> None:
    turn = read(with_messages({"role": name, "content": "Hello."}, USER)).turn
    assert said(turn) == [(role, "Hello."), ("user", SAID)]
    assert unread(turn) == {}


UNREADABLE: list[tuple[Any, str]] = [
    ({"role": "wizard", "content": "Abracadabra."}, "the role wizard"),
    ({"role": "x" * 100, "content": "y"}, f"the role {'x' * 40}"),
    ({"role": "a\nb\u0007c", "content": "y"}, "the role abc"),
    ({"role": ["user"], "content": "y"}, "a role that is no text"),
    ({"role": None, "content": "y"}, "no role"),
    ({"content": "y"}, "no role"),
    ("hello", "no object"),
    (None, "no object"),
    (7, "no object"),
    ({"role": "user", "content": 7}, "content that is neither text nor parts"),
    ({"role": "user", "content": [7, None]}, "content that is neither text nor parts"),
    ({"role": "user", "content": [{"type": "text", "text": 7}]}, "content that is neither text nor parts"),
    ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, "an item reasoning"),
    ({"type": "item_reference", "id": "x"}, "an item item_reference"),
    ({"type": "web_search_call", "status": "completed"}, "an item web_search_call"),
    ({"type": "image_generation_call", "result": "AAAA"}, "an item image_generation_call"),
    ({"role": "user", "body": SAID}, "no content"),
    ({"role": "user", "name": "ana", "input": [{"type": "text", "text": SAID}]}, "no content"),
    ({"role": "tool", "tool_call_id": "c1", "output": "12 degrees"}, "no content"),
    ({"role": "assistant", "audio": {"id": "a1"}}, "no content"),
    ({"type": "chat", "data": {"content": SAID}}, "an item chat"),
    ({"type": "constructor", "id": ["schema", "Document"], "kwargs": {"content": SAID}}, "an item constructor"),
]


@pytest.mark.parametrize(("message", "why"), UNREADABLE, ids=[why for _, why in UNREADABLE])
def test_a_message_that_cannot_be_read_costs_itself_and_is_named(message: Any, why: str) -> None:
    turn = read(with_messages(message, USER)).turn
    assert said(turn) == [("tool", ""), ("user", SAID)]
    assert unread(turn) == {0: why}
    refused = refusal(json.dumps(with_messages(message)).encode())
    assert (refused.reason, str(refused)[:10]) == ("invalid", "messages.0")
    assert unread(read(with_messages(message, ends_session=True)).turn) == {0: why}


@pytest.mark.parametrize(("message", "why"), UNREADABLE, ids=[why for _, why in UNREADABLE])
def test_what_was_sent_in_an_unread_message_stays_in_the_turn(message: Any, why: str) -> None:
    turn = read(with_messages(message, USER)).turn
    again = read_turn(turn.to_bytes()).turn
    assert again == turn
    assert turn.messages[0].model_extra == {"unread_message": repair(message).value}


# ------------------------------------------------------------------------------------------------------------- content
TEXT = {"type": "text", "text": SAID}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "12 degrees"}
CALL = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Porto"}}
CALLED = 'weather {"city":"Porto"}'


@pytest.mark.parametrize(
    ("message", "read_as", "other_parts"),
    [
        ({"role": "user", "content": [TEXT, IMAGE]}, [("user", SAID)], 1),
        ({"role": "user", "content": [{"type": "input_text", "text": SAID}]}, [("user", SAID)], 0),
        ({"role": "assistant", "content": [{"type": "output_text", "text": "Hi.", "annotations": []}]},
         [("assistant", "Hi.")], 0),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}, [("assistant", "No.")], 0),
        ({"role": "assistant", "content": None, "refusal": "No."}, [("assistant", "No.")], 0),
        ({"role": "user", "content": [{"type": "input_text", "text": "One."}, TEXT]}, [("user", f"One.\n{SAID}")], 0),
        ({"role": "user", "content": TEXT}, [("user", SAID)], 0),
        ({"role": "user", "content": [SAID]}, [("user", SAID)], 0),
        ({"role": "user", "content": ["One.", "Two."]}, [("user", "One.\nTwo.")], 0),
        ({"role": "user", "content": [{"text": SAID}]}, [("user", SAID)], 0),
        ({"role": "user", "content": {"text": SAID}}, [("user", SAID)], 0),
        ({"role": "user", "content": [{"type": "text", "text": {"value": SAID, "annotations": []}}]},
         [("user", SAID)], 0),
        ({"role": "user", "content": [{"type": "input_audio", "transcript": SAID}]}, [("user", SAID)], 0),
        ({"role": "user", "parts": [{"text": SAID}]}, [("user", SAID)], 0),
        ({"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": "Hi."}]}, [("assistant", "Hi.")], 1),
        ({"role": "user", "content": "", "parts": [TEXT]}, [("user", SAID)], 0),
        ({"role": "assistant", "content": None, "audio": {"transcript": "Hi."}}, [("assistant", "Hi.")], 0),
        ({"type": "message", "role": "user", "content": [{"type": "input_text", "text": SAID}]}, [("user", SAID)], 0),
        ({"type": "human", "content": SAID}, [("user", SAID)], 0),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Hi."}]},
         [("assistant", "Hi.")], 1),
        ({"role": "user", "content": [TEXT, 7]}, [("user", SAID)], 1),
        ({"role": "user", "content": [TEXT, {"type": "text", "text": None}]}, [("user", SAID)], 0),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]}, [("assistant", "")], 0),
        # what tools were asked and answered is a tool's, whoever sends it along
        ({"role": "user", "content": [RESULT]}, [("tool", "12 degrees")], 0),
        ({"role": "user", "content": [RESULT, TEXT]}, [("tool", "12 degrees"), ("user", SAID)], 0),
        ({"role": "user", "content": [{**RESULT, "content": [{"type": "text", "text": "12"}, IMAGE]}]},
         [("tool", "12")], 0),
        ({"role": "assistant", "content": [{"type": "text", "text": "I look."}, CALL]},
         [("assistant", "I look."), ("tool", CALLED)], 0),
        ({"role": "assistant", "content": [CALL]}, [("tool", CALLED)], 0),
        ({"role": "assistant", "content": [{"type": "server_tool_use", "name": "weather", "input": {"city": "Porto"}}]},
         [("tool", CALLED)], 0),
        ({"role": "assistant", "content": [{"toolUse": {"name": "weather", "input": {"city": "Porto"}}}]},
         [("tool", CALLED)], 0),
        ({"role": "user", "content": [{"toolResult": {"content": [{"json": {"degrees": 12}}]}}]},
         [("tool", '{"degrees":12}')], 0),
        ({"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"degrees": 12}}}]},
         [("tool", '{"degrees":12}')], 0),
        ({"role": "function", "name": "weather", "content": {"degrees": 12}}, [("tool", '{"degrees":12}')], 0),
        ({"role": "tool", "content": [1, 2]}, [("tool", "1\n2")], 0),
        ({"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Porto"}'},
         [("tool", CALLED)], 0),
        ({"type": "function_call_output", "call_id": "c1", "output": "12 degrees"}, [("tool", "12 degrees")], 0),
        ({"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "12"}]},
         [("tool", "12")], 0),
        ({"type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": "select 1"}, [("tool", "sql select 1")],
         0),
        # the text is in another field of the message
        ({"role": "user", "text": SAID}, [("user", SAID)], 0),
        ({"role": "USER", "message": SAID}, [("user", SAID)], 0),
        ({"role": "user", "content": None, "blocks": [{"block_type": "text", "text": SAID}]}, [("user", SAID)], 0),
        ({"role": "user", "contents": [{"text": SAID}]}, [("user", SAID)], 0),
        ({"role": "user", "content": {"content_type": "text", "parts": [SAID]}}, [("user", SAID)], 0),
        ({"type": "human", "data": {"content": SAID, "type": "human"}}, [("user", SAID)], 0),
        ({"lc": 1, "type": "constructor", "id": ["langchain", "schema", "HumanMessage"], "kwargs": {"content": SAID}},
         [("user", SAID)], 0),
        # or of the part
        ({"role": "user", "content": [{"type": "text", "content": SAID}]}, [("user", SAID)], 0),
        ({"role": "user", "content": [{"type": "text", "value": SAID}, IMAGE]}, [("user", SAID)], 1),
        ({"role": "user", "content": [{"type": "text", "text": {"text": SAID}}]}, [("user", SAID)], 0),
        # tools of the AI SDK, and of Gemini's client for Python
        ({"role": "assistant", "parts": [{"type": "step-start"},
          {"type": "tool-weather", "toolCallId": "c1", "state": "output-available", "input": {}, "output": {"t": 12}}]},
         [("tool", '{"t":12}')], 1),
        ({"role": "assistant", "parts": [{"type": "tool-weather", "toolCallId": "c1", "input": {"city": "Porto"}}]},
         [("tool", CALLED)], 0),
        ({"role": "assistant", "content": "", "parts": [{"type": "tool-invocation",
          "toolInvocation": {"state": "result", "toolName": "weather", "args": {}, "result": "12"}}]},
         [("tool", "12")], 0),
        ({"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "weather",
          "output": {"type": "text", "value": "12"}}]}, [("tool", "12")], 0),
        ({"role": "user", "content": [{"function_response": {"name": "weather", "response": {"t": 12}}},
          {"text": SAID}]}, [("tool", '{"t":12}'), ("user", SAID)], 0),
    ],
)  # fmt: skip
def test_the_text_of_every_common_form_is_read(
    message: dict[str, Any], read_as: list[tuple[str, str]], other_parts: int
) -> None:
    turn = read(with_messages(message, {"role": "assistant", "content": "Noted."})).turn
    assert said(turn) == [*read_as, ("assistant", "Noted.")]
    assert (unread(turn), sum(each.other_parts for each in turn.messages)) == ({}, other_parts)
    assert said(read_turn(turn.to_bytes()).turn) == said(turn), "what memstream writes is read as the same"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ([IMAGE], "parts without text: image_url"),
        ([IMAGE, IMAGE, {"type": "input_file", "file_id": "f"}], "parts without text: image_url, input_file"),
        ([{"inlineData": {"data": "AAAA"}}], "parts without text: inlineData"),
        ([{"type": "tool_result", "content": [IMAGE]}], "parts without text: tool_result"),
    ],
)
def test_a_message_of_parts_without_text_is_taken_and_named(content: Any, why: str) -> None:
    turn = read(with_messages({"role": "user", "content": content})).turn
    assert (said(turn), unread(turn)) == ([("user", "")], {0: why})


@pytest.mark.parametrize("content", ["", None, []])
def test_a_message_with_nothing_to_read_is_no_unread_one(content: Any) -> None:
    assert unread(read(with_messages({"role": "user", "content": content})).turn) == {}


def test_a_message_is_divided_while_the_turn_has_room() -> None:
    both = {"role": "user", "content": [RESULT, TEXT]}
    full = read(with_messages(*[both] * (MESSAGES_MAX - 1))).turn
    assert said(full)[:3] == [("tool", "12 degrees"), ("user", SAID), ("tool", f"{SAID}\n12 degrees")]
    assert len(full.messages) == MESSAGES_MAX
    assert said(read_turn(full.to_bytes()).turn) == said(full)


def test_one_message_may_come_without_its_list() -> None:
    assert said(read({**LEAST, "messages": USER}).turn) == [("user", SAID)]


def test_a_long_turn_is_refused_with_what_to_do() -> None:
    refused = refusal(json.dumps(with_messages(*[USER] * 101)).encode())
    assert str(refused) == (
        "messages: has 101 messages: send at most 64 messages a turn, and the rest as further turns"
    )


# ---------------------------------------------------------------------------------------------------------------- null
OPTIONAL = sorted(name for name, field in Turn.model_fields.items() if not field.is_required())


@pytest.mark.parametrize("name", OPTIONAL)
def test_null_is_absent(name: str) -> None:
    assert read({**LEAST, name: None}).turn == read(LEAST).turn


def test_null_is_absent_everywhere_together() -> None:
    message = {**USER, "name": None, "tool_calls": None}
    turn = read(with_messages(message, **dict.fromkeys(OPTIONAL))).turn
    assert (turn.metadata, turn.ends_session, turn.occurred_at) == ({}, False, None)
    ends = read({**LEAST, "messages": None, "ends_session": True}).turn
    assert (ends.messages, ends.ends_session) == ((), True)


@pytest.mark.parametrize("name", ["tenant_id", "user_id", "session_id", "turn_id", "messages"])
def test_what_a_turn_needs_may_not_be_null(name: str) -> None:
    assert refusal(json.dumps({**LEAST, name: None}).encode()).reason == "invalid"


# --------------------------------------------------------------------------------------------------------------- times
AT = datetime(2026, 11, 20, 10, 0, 0, 123_000, tzinfo=UTC)
SECONDS = 1_795_168_800


@pytest.mark.parametrize(
    ("given", "at"),
    [
        ("2026-11-20T10:00:00.123Z", AT),
        ("2026-11-20T10:00:00.123+00:00", AT),
        ("2026-11-20t10:00:00.123z", AT),
        ("2026-11-20 12:00:00.123+02:00", AT),
        ("2026-11-20T15:30:00.123+0530", AT),
        ("2026-11-20T05:00:00.123-05:00", AT),
        ("2026-11-20T11:00:00.123+01:00[Europe/Paris]", AT),
        ("20261120T100000.123Z", AT),
        (" 2026-11-20T10:00:00.123Z\n", AT),
        (SECONDS, AT.replace(microsecond=0)),
        (SECONDS + 0.123, AT),
        (SECONDS * 1_000 + 123, AT),
        (SECONDS * 1_000 + 123.5, AT + timedelta(microseconds=500)),
        (SECONDS * 1_000_000 + 123_000, AT),
        (SECONDS * 1_000_000_000 + 123_000_000, AT),
        (str(SECONDS), AT.replace(microsecond=0)),
        (f"{SECONDS}.123", AT),
        (str(SECONDS * 1_000 + 123), AT),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-86_400, datetime(1969, 12, 31, tzinfo=UTC)),
        ("2026-11-20T07:00:00.123-03:00[America/Sao_Paulo][u-ca=iso8601]", AT),
        ("2026-11-20T05:00:00.123\u221205:00", AT),
    ],
)
def test_a_time_is_read_in_every_common_form(given: Any, at: datetime) -> None:
    assert read({**LEAST, "occurred_at": given}).turn.occurred_at == at


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("2026-11-20T10:00:00", "has no offset"),
        ("2026-11-20", "has no offset"),
        ("yesterday", "is no time"),
        ("", "is no time"),
        ("2026", "is no time"),
        ("20261120", "is no time"),
        (20_261_120, "is no time"),
        (2026, "is no time"),
        (True, "is no time"),
        (float("nan"), "is no time"),
        (float("inf"), "is no time"),
        ([2026, 11, 20, 10, 0], "is no time"),
        ({"$date": "2026-11-20T10:00:00Z"}, "is no time"),
        (10**30, "is outside the years"),
        (-(10**20), "is outside the years"),
        ("9999-12-31T23:59:59-12:00", "is outside the years"),
    ],
)
def test_what_is_no_time_is_refused_with_what_to_send(given: Any, why: str) -> None:
    refused = refusal(json.dumps({**LEAST, "occurred_at": given}).encode())
    assert (refused.reason, str(refused).startswith(f"occurred_at: {why}")) == ("invalid", True), str(refused)


MESSAGE_TIMES: list[tuple[Any, datetime | None]] = [
    ("2026-11-20T10:00:00.123Z", AT),
    ("2026-11-20T10:00:00.123", AT),
    ("2026-11-20T11:00:00.123+01:00[Europe/Paris]", AT),
    ("2026-11-20T05:00:00.123\u221205:00", AT),
    (SECONDS + 0.123, AT),
    (f"{SECONDS}.123", AT),
    (SECONDS * 1_000 + 123, AT),
    (SECONDS * 1_000_000 + 123_000, AT),
    (str(SECONDS * 1_000_000 + 123_000), AT),
    (SECONDS * 1_000_000_000 + 123_000_000, AT),
    (str(SECONDS * 1_000_000_000 + 123_000_000), AT),
    ("2026-11-20", AT.replace(hour=0, microsecond=0)),
    *((each, None) for each in (0, -1, "-86400", "0", 20_261_120, "0001-01-01T00:00:00Z", "now", "", True, [2026], {})),
]


@pytest.mark.parametrize(("sent", "at"), MESSAGE_TIMES)
def test_the_time_of_a_message_is_read_as_that_of_a_turn_or_is_absent(sent: Any, at: datetime | None) -> None:
    for name in ("created_at", "createdAt"):
        turn = read(with_messages({**USER, name: sent})).turn
        assert turn.messages[0].created_at == at
        assert read_turn(turn.to_bytes()).turn.messages[0].created_at == at


@given(
    st.integers(min_value=20_000_000_001, max_value=20_000_000_000_000),
    st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
def test_a_time_means_the_same_as_a_text_and_as_a_number(milliseconds: int, zone: timezone) -> None:
    at = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)).astimezone(zone)
    assert read_time(at.isoformat()) == at
    assert read_time(milliseconds) == at
    assert abs(read_time(milliseconds / 1_000) - at) < timedelta(milliseconds=1)


# ------------------------------------------------------------------------------------------------------ odd characters
def raw_content(content: bytes) -> bytes:
    return PLAIN.replace(json.dumps(SAID).encode(), content)


@pytest.mark.parametrize(
    ("value", "text", "repaired"),
    [
        (raw_content(b'"I like \\ud83d"'), f"I like {REPLACEMENT}", 1),
        (raw_content(b'"\\ude80 I like"'), f"{REPLACEMENT} I like", 1),
        (raw_content(b'"\\ud83d\\ud83d\\ude80"'), f"{REPLACEMENT}🚀", 1),
        (raw_content(b'"\\ud83d\\ude80"'), "🚀", 0),
        (raw_content(b'"\\\\ud83d"'), "\\ud83d", 0),
        (raw_content(b'"I like \xed\xa0\xbd"'), f"I like {REPLACEMENT}", 1),
        (raw_content(b'"\xed\xa0\xbd\xed\xba\x80"'), "🚀", 0),
        (raw_content(b'"I like \xf0\x9f\x9a"'), f"I like {REPLACEMENT}", 0),
        (raw_content(b'"Stripe.\\u0000"'), "Stripe.", 1),
        (raw_content(b'"Stri\x00pe."'), "Stripe.", 1),
        (raw_content(b'"\\ufeffStripe."'), "Stripe.", 1),
        (raw_content(b'"\xef\xbb\xbfStripe."'), "Stripe.", 1),
        (raw_content(b'"One.\nTwo."'), "One.\nTwo.", 0),
        (b"\xef\xbb\xbf" + PLAIN, SAID, 0),
        (PLAIN + b"\0", SAID, 0),
        (b"\r\n " + PLAIN + b"\r\n", SAID, 0),
    ],
)
def test_odd_characters_cost_nothing_else(value: bytes, text: str, repaired: int) -> None:
    found = read_turn(value)
    assert (found.turn.messages[0].text, found.repaired_characters) == (text, repaired)


@pytest.mark.parametrize("name", ["tenant_id", "user_id", "session_id", "turn_id", "agent_id", "org_id", "group_id"])
@pytest.mark.parametrize("odd", ["u\ud83d", "u\0", "\ufeffu\0"])
def test_an_id_is_refused_and_never_repaired(name: str, odd: str) -> None:
    assert refusal(json.dumps({**LEAST, name: odd}).encode()).reason == "invalid"


def test_the_mark_before_an_id_belongs_to_it() -> None:
    assert read({**LEAST, "user_id": "\ufeffu"}).turn.user_id == "\ufeffu"


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_any_text_becomes_one_that_utf_8_holds(text: str) -> None:
    repaired, characters = repair_text(text)
    repaired.encode()
    assert "\0" not in repaired
    assert repair_text(repaired) == (repaired, 0)
    assert (characters == 0) == (repaired == text)


def test_what_a_producer_in_python_writes_is_read() -> None:
    value = turn_value({**LEAST, "messages": [{"role": "user", "content": "half \ud83d"}]})
    found = read_turn(value)
    assert (found.turn.messages[0].text, found.repaired_characters) == (f"half {REPLACEMENT}", 1)


# -------------------------------------------------------------------------------------------------------------- frames
REGISTRY = b"\0" + (42).to_bytes(4)
EVENT = {"specversion": "1.0", "id": "1", "source": "/acme", "type": "com.acme.turn.v2"}


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    "value",
    [
        REGISTRY + PLAIN,
        REGISTRY + b" \n" + PLAIN,
        b"\0" + (42).to_bytes(8) + PLAIN,
        b"\x03\0" + b"\x11" * 16 + PLAIN,
        encoded(PLAIN.decode()),
        encoded(encoded(PLAIN.decode()).decode()),
        encoded({**EVENT, "data": LEAST}),
        encoded({**EVENT, "data": PLAIN.decode()}),
        encoded({**EVENT, "data_base64": base64.b64encode(PLAIN).decode()}),
        encoded({"schema": {"type": "struct"}, "payload": LEAST}),
        encoded({"schema": None, "payload": LEAST}),
        encoded({"schema": {"type": "string"}, "payload": PLAIN.decode()}),
        REGISTRY + encoded({"schema": {"type": "struct"}, "payload": {**EVENT, "data": LEAST}}),
    ],
)
def test_frames_are_taken_off(value: bytes) -> None:
    assert read_turn(value).turn == read(LEAST).turn


@pytest.mark.parametrize(
    ("value", "reason", "named"),
    [
        (REGISTRY + b"\x08acme\x04u1", "undecodable", ["schema registry", "schema 42", "KafkaJsonSchemaSerializer"]),
        (REGISTRY + b"\0\x0a\x04acme", "undecodable", ["schema registry", "value.serializer"]),
        # the length of the first field is `"` or `{`, so the bytes look like JSON
        (REGISTRY + b'"' + b"a" * 17 + b"\x04u1", "undecodable", ["schema 42", "Avro or Protobuf", "value.serializer"]),
        (REGISTRY + b"\0\x0a\x02u1{a", "undecodable", ["schema 42", "Avro or Protobuf", "value.serializer"]),
        (REGISTRY + b"\x04\x02\x04\x0a" + b'"' + b"a" * 34, "undecodable", ["schema 42", "Avro or Protobuf"]),
        (REGISTRY + PLAIN[:-1] + b",}", "undecodable", ["schema 42", "is not valid JSON"]),
        (b"\x03\x05" + b"\x11" * 16 + b"x\x9c", "undecodable", ["AWS Glue", "compressionType"]),
        (b"\x1f\x8b\x08" + PLAIN, "undecodable", ["gzip", "compression.type"]),
        (b"\xac\xed\0\x05sr", "undecodable", ["serialized Java object", "value.serializer"]),
        (b"\x80\x04\x95", "undecodable", ["pickle", "json.dumps"]),
        (b"Obj\x01\x04", "undecodable", ["Avro"]),
        (b"<turn/>", "undecodable", ["XML"]),
        (PLAIN.decode().encode("utf-16"), "undecodable", ["UTF-16", "UTF-8"]),
        (PLAIN.decode().encode("utf-16-le"), "undecodable", ["UTF-16"]),
        (PLAIN.decode().encode("utf-16-be"), "undecodable", ["UTF-16"]),
        (PLAIN.decode().encode("utf-32-be"), "undecodable", ["UTF-16"]),
        (PLAIN.replace(b"work", b"caf\xe9"), "undecodable", ["is not UTF-8", "byte"]),
        (PLAIN + PLAIN, "undecodable", ["more than one JSON value", "one turn a record"]),
        (PLAIN + b"\n" + PLAIN, "undecodable", ["more than one JSON value"]),
        (b"", "undecodable", ["empty"]),
        (encoded("hello"), "invalid", ["JSON text"]),
        (encoded("{not json"), "undecodable", ["a JSON text that itself"]),
        (encoded(base64.b64encode(PLAIN).decode()), "invalid", ["base64"]),
        (encoded([{**EVENT, "data": LEAST}]), "invalid", ["batch of CloudEvents", "one event a record"]),
        (encoded([LEAST]), "invalid", ["list", "one turn a record"]),
        (encoded(7), "invalid", ["no JSON object"]),
        (encoded({"op": "c", "before": None, "after": LEAST}), "invalid", ["Debezium", "ExtractNewRecordState"]),
        (encoded({"schema": None, "payload": {"op": "c", "after": LEAST}}), "invalid", ["Debezium", "Kafka Connect"]),
        (encoded({"headers": {}, "body": LEAST}), "invalid", ["in its field body"]),
        (encoded({"payload": PLAIN.decode()}), "invalid", ["in its field payload, as a JSON text"]),
        (encoded({"Type": "Notification", "Message": PLAIN.decode()}), "invalid", ["in its field Message"]),
        (encoded({"Records": [{"body": PLAIN.decode()}]}), "invalid", ["in its field Records.0.body"]),
        (encoded({"records": [{"key": "k", "value": LEAST}]}), "invalid", ["in its field records.0.value"]),
        (encoded(EVENT), "invalid", ["CloudEvent without data"]),
        (encoded({**EVENT, "data": {}}), "invalid", ["CloudEvent in structured mode", "tenant_id"]),
        (encoded({**EVENT, "data_base64": "!"}), "undecodable", ["data_base64"]),
        (encoded({**EVENT, "type": "memstream.turn.v2", "data": LEAST}), "unsupported_version", ["version 2"]),
    ],
)
def test_what_cannot_be_taken_off_is_named(value: bytes, reason: str, named: list[str]) -> None:
    refused = refusal(value)
    assert (refused.reason, [each for each in named if each not in str(refused)]) == (reason, []), str(refused)


def test_a_refusal_repeats_no_content() -> None:
    for fields in (
        {**LEAST, "scope": "hunter2"},
        {**LEAST, "occurred_at": "hunter2"},
        with_messages({"role": "user", "content": 5, "x": "hunter2"}),
        {**EVENT, "data": {"password": "hunter2"}},
    ):
        assert "hunter2" not in str(refusal(encoded(fields)))


# ------------------------------------------------------------------------------------------------------------ anything
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)
parts = st.dictionaries(
    st.sampled_from(["type", "text", "content", "toolUse", "input", "name", "thought", "functionCall", "refusal"]),
    json_values | st.sampled_from(["text", "input_text", "tool_use", "tool_result", "thinking", "image_url"]),
    max_size=4,
)
messages = st.dictionaries(
    st.sampled_from(["role", "type", "content", "parts", "name", "output", "arguments", "unread_message", "audio"]),
    st.lists(parts, max_size=3)
    | json_values
    | st.sampled_from(["user", "assistant", "tool", "developer", "function_call", "function_call_output"]),
    max_size=4,
)
turns = st.builds(
    lambda found, more: {**more, **LEAST, "messages": found},
    st.lists(messages | json_values, max_size=5),
    st.dictionaries(st.sampled_from(OPTIONAL), json_values, max_size=3),
)


@given(turns)
def test_a_turn_that_is_read_is_read_as_the_same_again(fields: dict[str, Any]) -> None:
    try:
        found = read(fields)
    except Poison:
        return
    again = read_turn(found.turn.to_bytes())
    assert said(again.turn) == said(found.turn)
    assert again.turn.unread == found.turn.unread
    assert again.repaired_characters == 0
    assert len(found.turn.messages) <= MESSAGES_MAX


@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda tail: REGISTRY + tail) | json_values.map(encoded))
def test_any_bytes_raise_nothing_but_poison(value: bytes) -> None:
    with pytest.raises(Poison):
        read_turn(value)


def test_deep_values_are_refused() -> None:
    for depth in (250, 100_000):
        value = b'{"tenant_id": "acme", "x": ' + b"[" * depth + b"]" * depth + b"}"
        assert "nested too deeply" in str(refusal(value))
    assert parse_json(b"[" * 150 + b"]" * 150)
