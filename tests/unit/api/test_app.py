"""The HTTP application as a whole: every error is problem details, overload is a 503, and the document matches the
code."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from prometheus_client import CollectorRegistry
from starlette.types import Receive, Scope, Send

from docs.generate.openapi import FILE, bare_app, text
from memstream.api.admission import Admission, HttpMetrics
from memstream.api.credentials import Credentials
from memstream.api.edit_routes import EDIT_ROUTES, body_model
from memstream.api.limits import Limits
from memstream.api.openapi import document
from memstream.schemas.errors import Fatal, Transient
from tests.support.api_server import NoLog, NoRecall, app_over, called, entry, served
from tests.unit.api.test_turns import TURN

KNOWN = {"type", "title", "status", "detail", "instance", "errors", "missing"}


def problem(answer: httpx.Response) -> str:
    assert answer.headers["Content-Type"] == "application/problem+json"
    told = answer.json()
    assert set(told) == KNOWN
    assert told["status"] == answer.status_code
    assert told["instance"] == answer.request.url.path
    return str(told["type"]).removeprefix("urn:memstream:problem:")


@pytest.mark.parametrize(
    ("method", "path", "status", "name"),
    [
        ("GET", "/v1/nothing", 404, "not-found"),
        ("GET", "/v1/recall/", 404, "not-found"),
        ("GET", "/v1/turns/?tenant=a&user=u", 422, "invalid"),
        ("DELETE", "/v1/turns", 405, "method-not-allowed"),
        ("GET", "/v1/recall?tenant=a&user=u&limit=0", 422, "invalid"),
        ("GET", "/v1/recall?tenant=a&user=u&limt=1", 422, "invalid"),
        ("GET", "/v1/recall?tenant=a&user=u&as_of=1700000000", 422, "invalid"),
        ("GET", "/v1/recall?tenant=a&user=u&as_of=2026-01-01T00:00:00", 422, "invalid"),
        ("GET", "/v1/recall?user=u", 422, "invalid"),
        ("GET", "/v1/recall?tenant=a", 422, "invalid"),
        ("GET", "/v1/recall?tenant=a&scope=org", 422, "invalid"),
        ("GET", "/v1/facts/updates?tenant=a&from=then", 422, "invalid"),
    ],
)
async def test_every_error_is_problem_details(method: str, path: str, status: int, name: str) -> None:
    answer = await called(app_over()).request(method, path)
    assert (answer.status_code, problem(answer)) == (status, name)


async def test_headers_have_at_most_their_bytes() -> None:
    """The parser accepts more when the head comes in one piece."""
    api = called(app_over(limits=Limits(header=1_000)))
    for address, headers in (("/v1/facts?tenant=a", {"X-Long": "x" * 900}), (f"/v1/{'x' * 600}?{'y' * 600}", {})):
        answer = await api.get(address, headers=headers)
        assert (answer.status_code, problem(answer)) == (431, "headers-too-large")


async def test_a_method_that_is_not_there_is_told_those_that_are() -> None:
    api = called(app_over())
    assert (await api.put("/v1/turns")).headers["Allow"] == "POST"
    assert (await api.put("/v1/recall")).headers["Allow"] == "GET, POST"
    assert (await api.put("/v1/sessions/a/turns")).headers["Allow"] == "GET"


@pytest.mark.parametrize(
    ("error", "status", "name"),
    [
        (Transient("store", "cut", retry_after=7.2), 503, "unavailable"),
        (Fatal("a payload of tenant rival"), 500, "internal"),
        (RuntimeError("rival's secret"), 500, "internal"),
    ],
)
async def test_what_a_service_raises_is_told_without_what_it_holds(error: Exception, status: int, name: str) -> None:
    answer = await called(app_over(recall=NoRecall(error))).get("/v1/recall?tenant=a&user=u")
    assert (answer.status_code, problem(answer)) == (status, name)
    assert "rival" not in answer.text
    if status == 503:
        assert answer.headers["Retry-After"] == "8"


async def test_more_requests_than_may_be_are_told_to_wait() -> None:
    log = NoLog()
    log.hold.clear()
    api = called(app_over(log=log, limits=Limits(requests=2)))
    waiting = [asyncio.create_task(api.post("/v1/turns", json=TURN | {"session_id": f"s{n}"})) for n in range(2)]
    while len(log.hold._waiters) < 2:  # type: ignore[attr-defined]
        await asyncio.sleep(0)
    refused = await api.post("/v1/turns", json=TURN)
    assert (refused.status_code, problem(refused)) == (503, "busy")
    assert int(refused.headers["Retry-After"]) >= 1
    assert (await api.get("/livez")).status_code == 200, "whoever looks after it gets an answer"
    log.hold.set()
    assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [202, 202]
    assert (await api.post("/v1/turns", json=TURN)).status_code == 202


async def test_a_stream_is_at_work_until_it_begins() -> None:
    """Streams have their own limit; 64 of them would use half of this one."""
    begun, over = asyncio.Event(), asyncio.Event()

    async def streams(scope: Scope, receive: Receive, send: Send) -> None:
        kind = b"text/event-stream; charset=utf-8" if scope["path"] == "/stream" else b"application/json"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        if scope["path"] == "/stream":
            begun.set()
            await over.wait()
        await send({"type": "http.response.body", "body": b""})

    guarded = Admission(streams, limits=Limits(requests=1), metrics=HttpMetrics(CollectorRegistry()))
    api = httpx.AsyncClient(transport=httpx.ASGITransport(guarded), base_url="http://localhost")
    stream = asyncio.create_task(api.get("/stream"))
    await begun.wait()
    assert (await api.get("/")).status_code == 200
    over.set()
    assert (await stream).status_code == 200
    assert (await api.get("/")).status_code == 200


async def test_a_choice_that_is_none_is_told_of_its_field() -> None:
    answer = await called(app_over()).get("/v1/facts?tenant=a&state=believed")
    assert [each["field"] for each in answer.json()["errors"]] == ["state"]


async def test_an_answer_that_does_not_come_is_told() -> None:
    log = NoLog()
    log.hold.clear()
    answer = await called(app_over(log=log, limits=Limits(request_seconds=0.05))).post("/v1/turns", json=TURN)
    assert (answer.status_code, problem(answer)) == (503, "unavailable")
    log.hold.set()
    while not log.appended:  # the caller was told that the request may still take effect, and the turn is not lost
        await asyncio.sleep(0)


@pytest.mark.parametrize(("ready", "status"), [(True, 200), (False, 503)])
async def test_ready_is_whether_turns_are_taken(ready: bool, status: int) -> None:
    answer = await called(app_over(ready=ready)).get("/readyz")
    assert (answer.status_code, answer.json()["ready"]) == (status, ready)
    assert answer.json()["parts"]["qdrant"] == {"ready": False, "why": "it is down"}


@pytest.mark.parametrize(
    ("path", "ready", "status"),
    [("/livez", False, 200), ("/readyz", True, 200), ("/readyz", False, 503), ("/metrics", True, 200)],
)
async def test_a_monitor_may_ask_with_head(path: str, ready: bool, status: int) -> None:
    async with served(app_over(ready=ready)) as address, httpx.AsyncClient(base_url=address) as api:
        got, head = await api.get(path), await api.head(path)
        assert (head.status_code, head.content) == (status, b"")
        assert head.headers["content-type"] == got.headers["content-type"]
        refused = await api.post(path)
    assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, HEAD")


async def test_requests_are_counted_by_route_and_never_by_path() -> None:
    api = called(app_over(credentials=Credentials([entry("acme")])))
    await api.get("/v1/facts/ana-s-secret")
    await api.request("BREW", "/v1/somewhere")
    told = (await api.get("/metrics")).text
    assert 'memstream_http_requests_total{method="GET",route="/v1/facts/{fact_id}",status="401"} 1.0' in told
    assert 'method="other",route="none"' in told
    assert "ana-s-secret" not in told


def test_the_document_is_what_the_code_says() -> None:
    assert FILE.read_text(encoding="utf-8") == text(bare_app()), "mend: make generate"


def test_answers_are_open_for_further_fields_and_questions_are_closed() -> None:
    schemas = document(bare_app())["components"]["schemas"]
    closed = {name for name, schema in schemas.items() if schema.get("additionalProperties") is False}
    edits = {body_model(route).__name__ for route in EDIT_ROUTES if route.method != "DELETE"}
    asked = {"RecallBody", "MetadataOperators", "ContextQuery", "ReflectQuery", "ReviewQuery", "ErasureRequest"}
    assert closed - {"Owner"} == asked | edits | {"RedriveQuery"}
    assert schemas["RecallAnswer"]["additionalProperties"] is True
    assert schemas["Fact"]["additionalProperties"] is True


def test_every_route_with_a_token_tells_its_errors() -> None:
    told = document(bare_app())
    assert told["openapi"].startswith("3.1")
    for path, methods in told["paths"].items():
        for operation in methods.values():
            if not path.startswith("/v1/"):
                continue
            assert operation["security"] == [{"HTTPBearer": []}]
            for status, answer in operation["responses"].items():
                wanted = ["application/problem+json"] if status[0] in "45" else None
                assert wanted is None or list(answer["content"]) == wanted, (path, status)
            assert {"401", "403", "422", "500", "503"} <= set(operation["responses"])
    assert "HTTPValidationError" not in json.dumps(told)
