"""Erased users: which events count, and which records name a user."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest

from memstream.memory.erasures import ErasedUsers
from memstream.memory.user_traces import UserTraces
from memstream.schemas import ids
from memstream.schemas.erasures import ErasureMarker
from memstream.schemas.row_keys import index_key

MOMENT = datetime(2026, 11, 27, 12, tzinfo=UTC)
BEFORE, AFTER = MOMENT - timedelta(seconds=1), MOMENT + timedelta(seconds=1)
ANA = ids.user_hash("acme", "ana")


def erased(state: str) -> ErasedUsers:
    users = ErasedUsers()
    users.set(ANA, ErasureMarker.from_payload({"erasure_id": "e1", "state": state, "at": MOMENT}))
    return users


def test_an_unknown_user_is_never_ignored() -> None:
    assert not ErasedUsers().ignores("acme", "ana", [BEFORE])
    assert not erased("open").ignores("acme", "bob", [BEFORE])
    assert not erased("open").ignores("other", "ana", [BEFORE])


def test_every_event_is_ignored_while_the_erasure_runs() -> None:
    assert erased("open").ignores("acme", "ana", [AFTER])
    assert erased("open").ignores("acme", "ana", [])
    assert erased("open").is_open("acme", "ana", "e1")
    assert not erased("open").is_open("acme", "ana", "e2")


@pytest.mark.parametrize(
    ("times", "ignored"),
    [
        ([AFTER, AFTER], False),
        ([MOMENT, AFTER], True),  # imported later, said before
        ([AFTER, BEFORE], True),  # a clock ahead: its record was written before
        ([None, AFTER], False),
        ([None, BEFORE], True),
        ([None, None], False),
    ],
)
def test_what_happened_before_the_end_never_comes_back(times: list[datetime | None], ignored: bool) -> None:
    assert erased("closed").ignores("acme", "ana", times) is ignored
    assert not erased("closed").is_open("acme", "ana", "e1")


TRACES = UserTraces("acme", ANA, {ids.content_hash("Works at Stripe")})


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("acme/ana/s1", True),
        ("acme/user/ana", True),
        ("acme/user/ana/acme/ana/s1", True),
        ("acme/group/team/acme/ana/s1", True),
        (index_key("ends000000000001", "acme/user/ana/acme/ana/s1"), True),
        ("reflector/acme/user/ana", True),
        ("acme/bob/ana", False),
        ("acme/group/ana", False),
        ("acme/group/team/acme/bob/ana", False),
        ("other/ana/s1", False),
        ("acme/ana", False),
    ],
)
def test_which_keys_name_the_user(key: str, named: bool) -> None:
    assert (TRACES.user_of_key(key) == "ana") is named


def packed(value: object) -> dict[str, object]:
    return {"topic": "t", "value": base64.b64encode(json.dumps(value).encode()).decode()}


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"user_id": "ana"}, True),
        ({"list": [{"owner": {"scope": "user", "id": "ana"}}]}, True),
        ({"recent": [{"session": "acme/ana/s1"}]}, True),
        ({"last": {"records": [packed({"deep": {"user_id": "ana"}})]}}, True),
        ({"user_id": "bob", "content": "ana", "owner": {"scope": "group", "id": "ana"}}, False),
        (packed([1]), False),
        ({"topic": "t", "value": "not base64"}, False),
        (None, False),
    ],
)
def test_which_values_name_the_user(value: object, named: bool) -> None:
    assert TRACES.names(value) is named


def test_a_text_is_found_by_its_canonical_form() -> None:
    assert TRACES.has_text({"rows": [{"content": "works  at STRIPE"}]})
    assert not TRACES.has_text({"content": "Works at Google"})


def test_a_user_with_a_name_to_encode_is_found() -> None:
    traces = UserTraces("a/b", ids.user_hash("a/b", "ana/x"))
    assert traces.user_of_key(ids.session_key("a/b", "ana/x", "s")) == "ana/x"
