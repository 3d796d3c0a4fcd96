"""What a dead letter keeps of a record: value, key and headers without secrets, ids as they are."""

from __future__ import annotations

import json

import pytest

from memstream.agents.common.protection import keep_record, keep_unread_record
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.memory.secrets.turns import protect_turn
from memstream.schemas.cloudevents import MASKED_HEADER, Headers
from memstream.schemas.turns import Turn
from memstream.streams.log.port import Position, Record

SECRETS = SecretFilter()
CARD = "4111111111111111"


def record(key: bytes | None, value: bytes = b"{}", headers: Headers = ()) -> Record:
    return Record(Position("memory.turns", 0, 1), key, value, headers)


@pytest.mark.parametrize(
    ("key", "kept"),
    [
        (b"my password is hunter2x", b"my password is [password]"),
        (b"acme/u1/password%3A%20hunter2x", b"acme/u1/password%3A%20%5Bpassword%5D"),
        (f"acme/u1/{CARD}".encode(), b"acme/u1/[card]"),
        (b"acme/u1/s1", b"acme/u1/s1"),
        (b"\xff\xfe password: hunter2x", b"\xff\xfe password: [password]"),
        (None, None),
    ],
)
def test_a_key_keeps_no_secret(key: bytes | None, kept: bytes | None) -> None:
    letter = keep_unread_record(record(key, b"not json"), SECRETS)
    assert letter.key == kept
    assert (dict(letter.headers).get(MASKED_HEADER) == b"1") == (letter.key != key)


@pytest.mark.parametrize(
    "value",
    [
        {"tenant_id": "acme", "user_id": "u1", "session_id": CARD, "messages": 7},
        {"tenant_id": "acme", "session": {"user_id": "u1", "session_id": CARD}, "kind": "observe"},
        {"tenant_id": "acme", "owner": {"scope": "u1", "id": CARD}, "kind": "facts.apply"},
    ],
)
def test_the_key_of_its_ids_names_the_record(value: dict[str, object]) -> None:
    given = record(f"acme/u1/{CARD}".encode(), json.dumps(value).encode())
    assert keep_unread_record(given, SECRETS).key == given.key


def test_the_key_of_a_turn_that_was_read() -> None:
    fields = {"tenant_id": "acme", "user_id": "u1", "session_id": CARD, "turn_id": "t1"}
    turn = Turn.model_validate(fields | {"messages": [{"role": "user", "content": "Hi."}]})
    protected = protect_turn(turn, SECRETS)
    own = record(turn.session_key.encode(), turn.to_bytes())
    assert keep_record(own, protected, SECRETS) is own
    other = record(b"pin: 4711", turn.to_bytes())
    assert keep_record(other, protected, SECRETS).key == b"pin: [pin]"


def test_names_and_values_of_headers() -> None:
    given = record(b"k", headers=(("password", b"hunter2x"), ("my pin is 4711", b"x"), ("ce_id", b"pin: 4711")))
    kept = keep_unread_record(given, SECRETS).headers
    assert kept[:3] == (("password", b"[password]"), ("my pin is [pin]", b"x"), ("ce_id", b"pin: 4711"))
