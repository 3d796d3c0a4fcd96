"""Unknown fields of a turn: which count as misspelled, and which belong to the caller."""

from __future__ import annotations

from typing import Any

import pytest

from memstream.api.misspellings import NAMES_MAX, Misspelling, misspellings, nearest_field
from memstream.schemas.turns import ContentPart, Turn, TurnMessage
from tests.support.cases import for_each

MISSPELLED = {
    "mesages": "messages",
    "message": "messages",
    "Messages": "messages",
    "messagess": "messages",
    "userid": "user_id",
    "userId": "user_id",
    "user-id": "user_id",
    "usr_id": "user_id",
    "turnId": "turn_id",
    "sessionId": "session_id",
    "sesion_id": "session_id",
    "tennant_id": "tenant_id",
    "tenantID": "tenant_id",
    "occured_at": "occurred_at",
    "occurredAt": "occurred_at",
    "ocurred_at": "occurred_at",
    "goup_id": "group_id",
    "sensitivty": "sensitivity",
    "end_session": "ends_session",
    "endsSession": "ends_session",
    "Scope": "scope",
    "metdata": "metadata",
    "meta_data": "metadata",
    "metaData": "metadata",
    "metadatas": "metadata",
}
OWN = (
    *("message_id", "messages_total", "msgs", "user", "users", "user_name", "user_uid", "user_ids", "sessions"),
    *("session", "session_key", "session_uuid", "session_idx", "session_ids", "turn", "turns", "turn_idx", "turn_ids"),
    *("tenant", "team_id", "thread_id", "parent_id", "page_id", "event_id", "order_id", "orig_id", "origin_id", "id"),
    *("occurred", "created_at", "started_at", "received_at", "sender_id", "scopes", "score", "scoped", "sensitive"),
    *("meta", "data", "metadata_v2", "metadata_extra", "group", "groups", "group_ids", "org", "agent", "agents"),
    *("content", "role", "name", "text", "type", "locale", "mood", "channel", "x-trace", "", "_", "ünïcode"),
)
OWN_OF_MESSAGE = (
    *("tool_calls", "tool_call_id", "function_call", "refusal", "audio", "id", "message_id", "user_id", "metadata"),
    *("context", "consent", "contact", "content_type", "continent", "names", "named", "roles", "rule", "node", "game"),
)
OWN_OF_PART = ("image_url", "input_audio", "file", "test", "next", "context", "texts", "types", "typed", "tape")


@for_each(("name", "known"), MISSPELLED.items())
def test_a_name_that_is_nearly_a_field_is_that_field_misspelled(name: str, known: str) -> None:
    assert nearest_field(name, Turn) == known


@pytest.mark.parametrize(("name", "known"), [("contents", "content"), ("contet", "content"), ("Role", "role")])
def test_a_message_has_fields_of_its_own(name: str, known: str) -> None:
    assert (nearest_field(name, TurnMessage), nearest_field(name, Turn)) == (known, None)


@for_each(
    ("model", "name"),
    [
        *((Turn, name) for name in OWN),
        *((TurnMessage, name) for name in OWN_OF_MESSAGE),
        *((ContentPart, name) for name in OWN_OF_PART),
    ],
)
def test_another_name_is_the_callers_own(model: Any, name: str) -> None:
    assert nearest_field(name, model) is None


def test_misspelled_fields_are_found_at_every_level_that_has_known_fields() -> None:
    turn = {
        "mesages": [],
        "mood": {"mesages": 1},
        "metadata": {"mesages": 1},
        "messages": [{"role": "user"}, {"role": "user", "contents": "x", "content": [{"type": "text", "Text": "x"}]}],
    }
    assert misspellings(turn) == [
        Misspelling(("mesages",), "messages"),
        Misspelling(("messages", 1, "contents"), "content"),
        Misspelling(("messages", 1, "content", 0, "Text"), "text"),
    ]


@pytest.mark.parametrize("messages", [None, 7, "text", [None, 7, "text"], {"0": {"contents": 1}}, [{"content": 7}]])
def test_values_of_other_types_have_no_fields(messages: Any) -> None:
    assert misspellings({"messages": messages}) == []


def test_no_more_than_a_number_of_unknown_names_is_compared() -> None:
    own = {f"own_{number}": 1 for number in range(NAMES_MAX)}
    assert misspellings({"mesages": 1, **own}) == [Misspelling(("mesages",), "messages")]
    assert misspellings({**own, "mesages": 1}) == []
