"""Errors of OpenAI-compatible servers, without a server."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from memstream.adapters.openai_errors import (
    ECHO_LEFT_OUT,
    MAX_RETRY_AFTER,
    REFUSED_STATUSES,
    Failure,
    failure_of,
    is_filtered,
    is_refusal,
    retry_after,
    shorten,
    to_transient,
)
from memstream.adapters.unicode import replace_surrogates

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        (b'{"error": {"message": "no such model", "code": "model_not_found"}}', "no such model", "model_not_found"),
        (b'{"error": "out of memory"}', "out of memory", None),
        (b'{"object": "error", "message": "too long", "code": 400}', "too long", None),
        (b'{"error": {"message": null}}', '{"error": {"message": null}}', None),
        (b'{"detail": []}', '{"detail": []}', None),
        (b"[1]", "[1]", None),
        (b"<html>Bad gateway</html>", "<html>Bad gateway</html>", None),
        (b"\xff", "\ufffd", None),
        (b"", "", None),
        (b"[" * 100_000, "[" * 100_000, None),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_a_server_says_is_found_in_each_form(body: bytes, message: str, code: str | None) -> None:
    assert failure_of(400, {}, body) == Failure(400, message, code)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("1.5", 1.5),
        ("-3", 0.0),
        ("999999999", MAX_RETRY_AFTER),
        ("inf", None),
        ("nan", None),
        ("soon", None),
        ("", None),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
        (format_datetime(NOW - timedelta(days=1), usegmt=True), 0.0),
        ("Fri, 20 Nov 2026 10:00:30", 30.0),
    ],
)
def test_retry_after(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": value}, now=NOW) == seconds


def test_no_retry_after() -> None:
    assert retry_after({}, now=NOW) is None


@pytest.mark.parametrize(
    ("status", "code", "refused"),
    [
        (400, None, True),
        (413, None, True),
        (422, None, True),
        (400, "invalid_api_key", False),
        (400, "model_not_found", False),
        (401, None, False),
        (404, None, False),
        (429, None, False),
        (500, None, False),
    ],
)
def test_what_is_refused_for_good(status: int, code: str | None, refused: bool) -> None:
    assert is_refusal(Failure(status, "scripted", code)) is refused


FILTERED = [
    {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}, "message": "no"},
    {"code": "400", "innererror": {"code": "ResponsibleAIPolicyViolation"}, "message": "no"},
    {"code": "content_policy_violation", "type": "invalid_request_error", "message": "no"},
    {"code": "invalid_prompt", "type": "invalid_request_error", "message": "no"},
    {"code": "moderation_blocked", "type": "user_error", "message": "no"},
    {"code": None, "type": "content_filter", "message": "no"},
    {"code": 400, "type": "ContentPolicyViolationError", "message": "no"},
    {"code": "data_inspection_failed", "message": "no"},
    {"message": "The prompt triggered Azure OpenAI's content management policy"},
    {"message": "Blocked by the Content Filter."},
]
"""Error bodies by which servers name a content filter or policy."""
OTHERWISE_REFUSED = [
    {"code": "context_length_exceeded", "type": "invalid_request_error", "message": "too long"},
    {"code": "unsupported_parameter", "message": "'response_format' is not supported"},
    {"code": None, "type": "BadRequestError", "message": "The policy of this filter is unknown"},
    {"code": "invalid_api_key", "type": "content_filter", "message": "no"},
    {"code": "model_not_found", "message": "no model for this content filter"},
    {"innererror": "content_filter", "message": "no"},
    {"message": ECHO_LEFT_OUT},
]


@pytest.mark.parametrize("status", sorted(REFUSED_STATUSES))
@pytest.mark.parametrize("said", FILTERED, ids=str)
def test_a_content_filter_is_known_by_its_names(said: JsonValue, status: int) -> None:
    assert is_filtered(failure_of(status, {}, json.dumps({"error": said}).encode()))


@pytest.mark.parametrize("said", OTHERWISE_REFUSED, ids=str)
def test_other_errors_are_no_content_filter(said: JsonValue) -> None:
    assert not is_filtered(failure_of(400, {}, json.dumps({"error": said}).encode()))


@pytest.mark.parametrize("status", [401, 404, 408, 429, 500, 503])
def test_only_a_refused_request_is_filtered(status: int) -> None:
    assert not is_filtered(failure_of(status, {}, json.dumps({"error": FILTERED[0]}).encode()))


@pytest.mark.parametrize(
    ("status", "code", "named"),
    [
        (401, None, ("OPENAI_API_KEY", "MEMSTREAM_MODEL", "OPENAI_BASE_URL")),
        (403, None, ("OPENAI_API_KEY",)),
        (404, None, ("MEMSTREAM_MODEL", "OPENAI_BASE_URL")),
        (402, None, ("OPENAI_API_KEY",)),
        (429, "insufficient_quota", ("OPENAI_API_KEY",)),
        (405, None, ("OPENAI_BASE_URL",)),
        (429, None, ()),
        (503, None, ()),
    ],
)
def test_the_remedy_names_the_setting(status: int, code: str | None, named: tuple[str, ...]) -> None:
    transient = to_transient(
        Failure(status, "scripted", code, {"retry-after": "2"}),
        component="model",
        model="m",
        setting="MEMSTREAM_MODEL",
    )
    assert transient.retry_after == 2.0
    assert all(name in transient.remedy for name in named)
    assert bool(transient.remedy) is bool(named)


@given(st.text(alphabet=st.characters(categories=None), max_size=50))
def test_every_text_becomes_well_formed(text: str) -> None:
    assert replace_surrogates(text).encode("utf-8")[:0] == b""
    assert replace_surrogates(replace_surrogates(text)) == replace_surrogates(text)
    assert len(shorten(text, limit=20)) <= 20


def test_pairs_of_surrogates_become_the_character_that_they_stand_for() -> None:
    assert replace_surrogates("\ud83d\ude42 \ud800") == "🙂 \ufffd"
