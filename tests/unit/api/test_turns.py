"""Turns over HTTP: which are accepted, what is written to the topic, and which field a refusal names."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from memstream.api.credentials import ANYONE, Credentials
from memstream.api.limits import Limits
from memstream.api.problems import Problem
from memstream.api.turn_validation import valid_turns
from memstream.schemas.errors import Transient
from memstream.schemas.turns import Owner, Turn
from tests.support.api_server import NoLog, app_over, bearer, called, entry

TURN: dict[str, Any] = {
    "tenant_id": "acme",
    "user_id": "u1",
    "session_id": "s1",
    "turn_id": "t1",
    "messages": [{"role": "user", "content": "I work at Stripe."}],
}
TOKENS = Credentials(
    [
        entry("acme"),
        entry("both", tenants=["acme", "rival"]),
        entry("u1", users=["u1"]),
        entry("reader", scopes=["memory:read"]),
    ]
)


@cache
def shared_app() -> tuple[FastAPI, NoLog]:
    log = NoLog()
    return app_over(log=log, credentials=TOKENS), log


@pytest.fixture
def log() -> NoLog:
    _, log = shared_app()
    vars(log).update(vars(NoLog()))  # as a new one
    return log


@pytest.fixture
def api(log: NoLog) -> httpx.AsyncClient:
    app, _ = shared_app()
    return called(app, token="acme")


def without(*fields: str, **changed: Any) -> dict[str, Any]:
    return {name: value for name, value in TURN.items() if name not in fields} | changed


async def test_a_turn_is_answered_by_where_it_lies(api: httpx.AsyncClient, log: NoLog) -> None:
    answer = await api.post("/v1/turns", json=TURN)
    assert (answer.status_code, answer.json()) == (
        202,
        {"topic": "memory.turns", "partition": 3, "offset": 0, "turn_id": "t1"},
    )
    ((topic, key, value, headers),) = log.appended
    assert (topic, key, json.loads(value or b"")) == ("memory.turns", b"acme/u1/s1", TURN)
    assert headers["ce_source"] == b"/memstream/api"
    assert headers["ce_type"] == b"memstream.turn.v1"


async def test_what_is_not_known_is_kept(api: httpx.AsyncClient, log: NoLog) -> None:
    said = TURN | {
        "mood": {"x": [1.5, None, 12345678901234567890]},
        "messages": [{"role": "user", "content": "é", "n": 1}],
    }
    assert (await api.post("/v1/turns", json=said)).status_code == 202
    assert json.loads(log.appended[0][2] or b"") == said


@pytest.mark.parametrize(
    ("misspelt", "field", "known"),
    [
        (without("messages", mesages=TURN["messages"]), "mesages", "messages"),
        (TURN | {"occured_at": "2026-11-20T10:00:00Z"}, "occured_at", "occurred_at"),
        (TURN | {"messages": [{"role": "user", "contents": "x"}]}, "messages.0.contents", "content"),
    ],
)
async def test_a_field_that_is_nearly_a_known_one_is_refused_with_both_names(
    api: httpx.AsyncClient, log: NoLog, misspelt: dict[str, Any], field: str, known: str
) -> None:
    for said, named in ((misspelt, field), ([TURN, misspelt], f"1.{field}")):
        answer = await api.post("/v1/turns", json=said)
        assert answer.status_code == 422, answer.text
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["errors"] == [{"field": named, "detail": f"is not a field; did you mean {known}?"}]
        assert answer.json()["detail"] == f"{named}: is not a field; did you mean {known}?"
    assert not log.appended


@pytest.mark.parametrize(
    "said",
    [
        TURN | {"time_zone": "America/Chicago", "occurred_at": "2026-06-01T21:00:00-05:00"},
        TURN | {"timezone": "Europe/Lisbon"},
        TURN | {"timeZone": None},
        TURN | {"messages": [{"role": "user", "content": "x", "createdAt": 1764150000123}]},
        TURN | {"messages": [{"role": "user", "content": "x", "created_at": "no time"}]},
    ],
)
async def test_times_and_zones_are_taken_as_services_write_them(
    api: httpx.AsyncClient, log: NoLog, said: dict[str, Any]
) -> None:
    assert (await api.post("/v1/turns", json=said)).status_code == 202
    assert json.loads(log.appended[0][2] or b"") == said


async def test_a_time_zone_that_does_not_exist_is_refused_by_name(api: httpx.AsyncClient, log: NoLog) -> None:
    answer = await api.post("/v1/turns", json=TURN | {"time_zone": "Europe/Atlantis"})
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert error["field"] == "time_zone"
    assert "Europe/Lisbon" in error["detail"]
    assert not log.appended


async def test_fields_of_the_callers_own_objects_may_have_any_name(api: httpx.AsyncClient, log: NoLog) -> None:
    said = TURN | {"metadata": {"mesages": 1, "userId": 2}, "own": {"sesion_id": [{"rolle": 3}]}}
    assert (await api.post("/v1/turns", json=said)).status_code == 202
    assert json.loads(log.appended[0][2] or b"") == said


async def test_half_a_surrogate_pair_in_a_nearly_known_name_is_named_without_it(api: httpx.AsyncClient) -> None:
    said = json.dumps(TURN | {"messages\ud800": []})
    answer = await api.post("/v1/turns", content=said, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["detail"] == "messages\ufffd: is not a field; did you mean messages?"


async def test_every_misspelled_field_is_named(api: httpx.AsyncClient) -> None:
    said = without("messages", mesages=TURN["messages"], occured_at=None)
    answer = await api.post("/v1/turns", json=said)
    assert [each["field"] for each in answer.json()["errors"]] == ["mesages", "occured_at"]


async def test_a_list_is_answered_in_its_order(api: httpx.AsyncClient, log: NoLog) -> None:
    said = [TURN | {"turn_id": f"t{n}", "session_id": f"s{n % 2}"} for n in range(6)]
    answer = await api.post("/v1/turns", json=said)
    assert [each["turn_id"] for each in answer.json()] == [f"t{n}" for n in range(6)]
    for session in ("s0", "s1"):
        written = [json.loads(value or b"") for _, _, value, _ in log.appended]
        ids = [each["turn_id"] for each in written if each["session_id"] == session]
        assert ids == sorted(ids), "those of a session in the order given"


async def test_the_tenant_is_the_tokens(api: httpx.AsyncClient, log: NoLog) -> None:
    assert (await api.post("/v1/turns", json=without("tenant_id", tenant_id=None))).status_code == 202
    assert json.loads(log.appended[0][2] or b"")["tenant_id"] == "acme"
    refusals = {
        "acme": TURN | {"tenant_id": "rival"},
        "u1": TURN | {"user_id": "u2"},
        "reader": TURN,
    }
    for token, said in refusals.items():
        assert (await api.post("/v1/turns", json=said, headers=bearer(token))).status_code == 403, token
    shared = TURN | {"scope": "group", "group_id": "g"}
    assert (await api.post("/v1/turns", json=shared, headers=bearer("u1"))).status_code == 403
    answer = await api.post("/v1/turns", json=without("tenant_id"), headers=bearer("both"))
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "tenant_id")
    assert (await api.post("/v1/turns", json=[TURN, TURN | {"tenant_id": "rival"}])).status_code == 403
    assert len(log.appended) == 1, "of a list with one foreign turn none is written"


@pytest.mark.parametrize("token", [None, "nobody"])
async def test_who_is_not_known_is_asked_for_a_token(log: NoLog, token: str | None) -> None:
    answer = await called(shared_app()[0], token=token).post("/v1/turns", content=b"no json")
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    ("said", "field"),
    [
        (without("user_id"), "user_id"),
        (TURN | {"turn_id": "a\nb"}, "turn_id"),
        (TURN | {"turn_id": ""}, "turn_id"),
        (TURN | {"messages": []}, "body"),
        (TURN | {"messages": [{"role": "boss", "content": "x"}]}, "messages.0.role"),
        (TURN | {"messages": [{"role": "user", "content": 7}]}, "messages.0.content"),
        (TURN | {"occurred_at": "yesterday"}, "occurred_at"),
        (TURN | {"occurred_at": "2026-11-20T10:00:00"}, "occurred_at"),
        (TURN | {"occurred_at": True}, "occurred_at"),
        (TURN | {"messages": [{"role": "user", "content": "x"}] * 101}, "messages"),
        (TURN | {"user_id": "u\ud83d"}, "user_id"),
        (TURN | {"user_id": "u\0"}, "user_id"),
        (TURN | {"occurred_at": "9999-01-01T00:00:00Z"}, "occurred_at"),
        (TURN | {"ends_session": "yes"}, "ends_session"),
        (TURN | {"scope": "org"}, "body"),
        (TURN | {"metadata": {"x": "y" * 5_000}}, "metadata"),
        ([TURN, without("messages")], "1.messages"),
        ([TURN, 7], "1"),
        ([], "body"),
        ("turn", "body"),
        (None, "body"),
    ],
)
async def test_a_wrong_turn_is_refused_by_its_field(api: httpx.AsyncClient, log: NoLog, said: Any, field: str) -> None:
    answer = await api.post("/v1/turns", content=json.dumps(said), headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["errors"][0]["field"] == field
    assert not log.appended


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"tenant_id": NaN}',
        json.dumps(TURN | {"turn_id": "\ud800"}).encode(),
        b'{"n": ' + b"1" * 10_000 + b"}",
        json.dumps(TURN).encode()[:-1] + b', "n": 1e999}',
    ],
    ids=["empty", "cut", "no UTF-8", "deep", "NaN", "half a pair", "long integer", "infinite"],
)
async def test_what_is_no_json_is_refused(api: httpx.AsyncClient, log: NoLog, body: bytes) -> None:
    answer = await api.post("/v1/turns", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert not log.appended


async def test_every_type_that_a_field_may_have_is_told_of_the_field_itself(api: httpx.AsyncClient) -> None:
    parts = TURN | {"messages": [{"role": "user", "content": [{"type": "text", "text": 7}]}]}
    answer = await api.post("/v1/turns", json=parts)
    told = [each["field"] for each in answer.json()["errors"]]
    assert told == ["messages.0.content"]


def test_what_was_read_and_is_too_deep_to_be_written_is_refused() -> None:
    """Decoding allows slightly deeper nesting than encoding."""
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(Problem, match="nested too deeply"):
        valid_turns(TURN | {"future": deep}, caller=ANYONE, limit=1, latest=datetime(2030, 1, 1, tzinfo=UTC))


async def test_what_is_learnt_of_a_users_turn_is_the_users_whatever_the_policy(log: NoLog) -> None:
    api = called(app_over(log=log, credentials=TOKENS), token="u1")
    for said in (TURN | {"group_id": "g"}, TURN | {"group_id": "g", "scope": None}):
        assert (await api.post("/v1/turns", json=said)).status_code == 202
    for _, _, value, _ in log.appended:
        assert Turn.read(value or b"").owner(default_scope="group") == Owner(scope="user", id="u1")


async def test_what_is_not_said_to_be_json_is_refused(api: httpx.AsyncClient) -> None:
    answer = await api.post("/v1/turns", content=b"{}", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 415


async def test_a_turn_has_at_most_its_bytes(api: httpx.AsyncClient, log: NoLog) -> None:
    large = TURN | {"messages": [{"role": "user", "content": "x" * 256 * 1024}]}
    assert (await api.post("/v1/turns", json=large)).status_code == 413
    assert not log.appended


async def test_a_body_is_read_no_further_than_its_limit(log: NoLog) -> None:
    api = called(app_over(log=log, limits=Limits(body=1_000)))
    read = 0

    async def pieces() -> Any:
        nonlocal read
        for _ in range(1_000):
            read += 100
            yield b" " * 100

    answer = await api.post("/v1/turns", content=pieces(), headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["type"]) == (413, "urn:memstream:problem:too-large")
    assert read <= 1_200
    declared = await api.post("/v1/turns", content=b" " * 1_001, headers={"Content-Type": "application/json"})
    assert declared.status_code == 413


async def test_a_list_has_at_most_its_turns(log: NoLog) -> None:
    api = called(app_over(log=log, limits=Limits(turns=2)))
    assert (await api.post("/v1/turns", json=[TURN] * 3)).status_code == 422
    assert (await api.post("/v1/turns", json=[TURN] * 2)).status_code == 202


async def test_a_log_that_is_away_is_told_with_its_remedy(api: httpx.AsyncClient, log: NoLog) -> None:
    log.away = Transient("broker", "connect", remedy="is Kafka up?")
    answer = await api.post("/v1/turns", json=TURN)
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:memstream:problem:unavailable")
    assert int(answer.headers["Retry-After"]) >= 1
    assert "is Kafka up?" in answer.json()["detail"]


async def test_no_later_turn_of_a_session_goes_before_one_that_failed(log: NoLog) -> None:
    api = called(app_over(log=log, credentials=TOKENS), token="acme")  # its locks belong to the loop of this test
    log.hold.clear()
    asked = asyncio.create_task(api.post("/v1/turns", json=[TURN, TURN | {"turn_id": "t2"}]))
    while not log.hold._waiters:  # type: ignore[attr-defined]
        await asyncio.sleep(0)
    log.away = Transient("broker", "away")
    log.hold.set()
    assert (await asked).status_code == 503
    log.away = None
    await asyncio.sleep(0)
    assert log.appended == []


@pytest.mark.parametrize(("ahead", "status"), [(299, 202), (301, 422)])
async def test_a_turn_may_be_dated_a_little_ahead_of_the_servers_clock(log: NoLog, ahead: int, status: int) -> None:
    now = datetime(2026, 11, 20, 10, tzinfo=UTC)
    at = (now + timedelta(seconds=ahead)).isoformat()
    answer = await called(app_over(log=log, now=lambda: now)).post("/v1/turns", json=TURN | {"occurred_at": at})
    assert answer.status_code == status


EVENT: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "/acme", "type": "com.acme.turn.v2"}


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/cloudevents+json", {**EVENT, "data": TURN}, 202),
        ("application/cloudevents+json; charset=UTF-8", {**EVENT, "data": TURN}, 202),
        ("Application/CloudEvents-Batch+JSON", [{**EVENT, "data": TURN}], 202),
        ("application/vnd.acme.turn+json", TURN, 202),
        ("text/json+json", TURN, 415),
        ("application/xml", TURN, 415),
        ("application/x-www-form-urlencoded", TURN, 415),
    ],
)
async def test_a_body_has_a_type_of_json(api: httpx.AsyncClient, log: NoLog, kind: str, body: Any, status: int) -> None:
    answer = await api.post("/v1/turns", content=json.dumps(body), headers={"Content-Type": kind})
    assert (answer.status_code, len(log.appended)) == (status, 1 if status == 202 else 0)
