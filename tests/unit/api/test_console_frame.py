"""The frame of the console: sign-in by a token, forms of other sites, headers, error pages, and a server without
tokens."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from memstream.api.app import Publication
from memstream.api.console.sign_in import COOKIE, FORM_MAX, TOKEN_MAX, return_path
from memstream.api.credentials import Credentials
from memstream.schemas.errors import Transient
from memstream.streams.engine.metrics import Metrics
from memstream.streams.log.stage_lag import StageLag
from tests.support.api_server import app_over, bearer, called, entry
from tests.support.console_pages import page_of, words

READER = entry("mst_reader")
WRITER = entry("mst_writer", scopes=("turns:write",))
NOW = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return app_over(credentials=Credentials((READER, WRITER)))


async def sign_in(client: httpx.AsyncClient, token: str = "mst_reader", **fields: str) -> httpx.Response:
    return await client.post("/console/sign-in", data={"token": token, **fields})


# ------------------------------------------------------------------------------------------------ sign-in
async def test_a_page_without_a_token_leads_to_sign_in_and_back(app: FastAPI) -> None:
    async with called(app) as client:
        away = await client.get("/console/facts?tenant_id=acme&user_id=a%20b")
        assert (away.status_code, away.headers["location"].partition("?")[0]) == (303, "/console/sign-in")
        page = page_of(await client.get(away.headers["location"]))
        back = page.css_first("input[name=next]").attributes["value"]
        assert back == "/console/facts?tenant_id=acme&user_id=a%20b"
        done = await sign_in(client, next=back)
        assert (done.status_code, done.headers["location"]) == (303, back)
        start = page_of(await client.get("/console"))
    assert "mst_reader" in words(start, ".who")
    assert [option.text() for option in start.css("select[name=tenant_id] option")] == ["acme"]


async def test_the_cookie_is_kept_from_scripts_and_other_sites(app: FastAPI) -> None:
    async with called(app) as client:
        plain = (await sign_in(client)).headers["set-cookie"]
        assert plain == f"{COOKIE}=mst_reader; HttpOnly; Path=/console; SameSite=strict"
        for header in ({"X-Forwarded-Proto": "https"}, {"Origin": "https://localhost"}):
            answer = await client.post("/console/sign-in", data={"token": "mst_reader"}, headers=header)
            assert answer.headers["set-cookie"].endswith("SameSite=strict; Secure"), header


@pytest.mark.parametrize(
    ("token", "status", "why"),
    [
        ("mst_wrong", 401, "unknown token"),
        ("", 401, "unknown token"),
        ("two words; Path=/", 401, "unknown token"),
        ("mst_writer", 403, "lacks the scope memory:read"),
    ],
)
async def test_a_wrong_token_is_told_and_sets_no_cookie(app: FastAPI, token: str, status: int, why: str) -> None:
    async with called(app) as client:
        answer = await sign_in(client, token, next="/console/facts")
    assert answer.status_code == status
    assert "set-cookie" not in answer.headers
    page = page_of(answer)
    assert why in words(page, ".notice")
    assert page.css_first("input[name=next]").attributes["value"] == "/console/facts"
    assert page.css_first("input[name=token]").attributes.get("value") is None, "the page repeats the token"


async def test_a_denied_sign_in_is_in_the_audit_trail(app: FastAPI, caplog: pytest.LogCaptureFixture) -> None:
    """The record names the token that was tried, not the token of an earlier sign-in."""
    caplog.set_level(logging.INFO, logger="memstream.audit")
    async with called(app) as client:
        await sign_in(client)
        assert caplog.records == []
        await sign_in(client, "mst_wrong")
        await sign_in(client, "mst_writer")
    lines = [json.loads(record.message) for record in caplog.records]
    assert [(line["who"], line["action"], line["tenant_id"], line["result"]) for line in lines] == [
        ("unknown", "POST /console/sign-in", None, "denied"),
        ("mst_writer", "POST /console/sign-in", "acme", "denied"),
    ]
    assert "mst_wrong" not in caplog.text


async def test_a_token_that_no_cookie_can_keep_is_told(app: FastAPI) -> None:
    async with called(app) as client:
        answer = await sign_in(client, "x" * (TOKEN_MAX + 1))
    assert answer.status_code == 422
    assert f"more than {TOKEN_MAX} characters" in words(page_of(answer), ".notice")


async def test_a_cookie_of_another_program_does_not_end_the_sign_in(app: FastAPI) -> None:
    async with called(app) as client:
        for other in ('{"a":[1, 2]}', "é", "="):
            cookies = f"theme={other}; {COOKIE}=mst_reader; last=1".encode()
            assert (await client.get("/console", headers={b"Cookie": cookies})).status_code == 200, other


async def test_the_cookie_is_no_credential_of_the_rest_api(app: FastAPI) -> None:
    async with called(app) as client:
        client.cookies.set(COOKIE, "mst_reader")  # a client that sends the cookie to every path
        assert (await client.get("/v1/facts?tenant=acme")).status_code == 401
        assert (await client.get("/docs")).status_code == 401
        assert (await client.get("/consoles")).status_code == 404
        assert (await client.get("/console")).status_code == 200


async def test_an_expired_token_ends_the_sign_in() -> None:
    moment = [NOW]
    expiring = READER.model_copy(update={"expires_at": NOW + timedelta(hours=1)})
    app = app_over(credentials=Credentials((expiring,), now=lambda: moment[0]))
    async with called(app) as client:
        await sign_in(client)
        assert (await client.get("/console")).status_code == 200
        moment[0] += timedelta(hours=2)
        away = await client.get("/console/facts")
        assert away.status_code == 303
        assert "Max-Age=0; Path=/console; SameSite=strict" in away.headers["set-cookie"], "the browser keeps the token"
        page = page_of(await client.get(away.headers["location"]))
    assert "no longer valid" in words(page, ".notice")


async def test_sign_out_removes_the_cookie(app: FastAPI) -> None:
    async with called(app) as client:
        await sign_in(client)
        form = page_of(await client.get("/console")).css_first("form.sign-out")
        csrf = form.css_first("input[name=csrf]").attributes["value"]
        answer = await client.post("/console/sign-out", data={"csrf": csrf})
        assert answer.headers["location"] == "/console/sign-in"
        assert (await client.get("/console")).status_code == 303


@pytest.mark.parametrize(
    "given",
    ["https://evil.example/console", "//evil.example/console", "/\\evil.example", "/v1/facts", "/consoles",
     "/console\n/x", "console", "", "http://[", "/console\\..\\x", "/console/../v1/facts", "/console/%2e%2E/docs",
     "/console/x/.%2e/../../docs"],
)  # fmt: skip
def test_sign_in_leads_only_to_pages_of_the_console(given: str) -> None:
    assert return_path(given) == "/console"


# ------------------------------------------------------------------------------------------------ forms
async def test_a_form_needs_the_token_of_a_page(app: FastAPI) -> None:
    async with called(app) as client:
        await sign_in(client)
        for given in ({"other": "1"}, {"csrf": ""}, {"csrf": "0" * 64}, {"csrf": "ä"}):
            answer = await client.post("/console/sign-out", data=given)
            assert answer.status_code == 403, given
            assert "load the page again" in words(page_of(answer))
        assert (await client.get("/console")).status_code == 200


async def test_the_form_token_of_one_caller_is_not_that_of_another() -> None:
    app = app_over(credentials=Credentials((READER, entry("mst_other"))))
    async with called(app) as client:
        mine = page_of(await client.get("/console", headers=bearer("mst_reader")))
        csrf = mine.css_first("input[name=csrf]").attributes["value"]
        answer = await client.post("/console/sign-out", data={"csrf": csrf}, headers=bearer("mst_other"))
    assert answer.status_code == 403


@pytest.mark.parametrize("path", ["/console/sign-in", "/console/sign-out"])
@pytest.mark.parametrize(
    "headers", [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://evil.example"},
                {"Origin": "null"}],
)  # fmt: skip
async def test_a_form_of_another_site_is_refused(app: FastAPI, path: str, headers: dict[str, str]) -> None:
    async with called(app) as client:
        csrf = page_of(await client.get("/console", headers=bearer("mst_reader"))).css_first("input[name=csrf]")
        fields = {"token": "mst_reader", "csrf": csrf.attributes["value"]}
        answer = await client.post(path, data=fields, headers=bearer("mst_reader") | headers)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


async def test_a_body_that_is_no_form_is_refused(app: FastAPI) -> None:
    form = "application/x-www-form-urlencoded"
    many = "&".join(f"f{n}=1" for n in range(100))
    async with called(app) as client:
        for kind, body, status in (
            ("application/json", b"{}", 415), (form, b"x" * (FORM_MAX + 1), 413), (form, b"token=%ff", 422),
            (form, b"\xff", 422), (form, many.encode(), 422),
        ):  # fmt: skip
            answer = await client.post("/console/sign-in", content=body, headers={"Content-Type": kind})
            assert answer.status_code == status, body[:20]
            page_of(answer)


# ------------------------------------------------------------------------------------------------ frame
async def test_the_start_page_shows_the_stages_and_the_first_steps(app: FastAPI) -> None:
    def lags(*, sent: int) -> list[StageLag]:
        return [StageLag("recorder", 0, 7, 2, sent), StageLag("observer", 3, 0, 0, sent)]

    async def oldest(stage: str) -> datetime | None:
        assert stage == "recorder", "the observer has no lag"
        return NOW

    for sent, first_steps in ((0, True), (9, False)):

        async def read(sent: int = sent) -> list[StageLag]:
            return lags(sent=sent)

        made = app_over(credentials=Credentials((READER,)), stage_lags=read, oldest_unread=oldest)
        async with called(made, token="mst_reader") as client:
            page = page_of(await client.get("/console"))
        rows = [" ".join(row.text(separator=" ").split()) for row in page.css("#stages tr")]
        assert rows == [
            "recorder no worker: memstream worker 0 7 2026-11-20 00:00:00 UTC 2",
            "observer 3 0 – 0",
        ]
        assert (page.css_first("#first-steps") is not None) is first_steps
        assert "it is down" in words(page, "#parts")
        quarantine = page.css_first(".hint a").attributes["href"]
        assert quarantine == "/console/facts?tenant_id=acme&state=quarantined"
        async with called(app_over(stage_lags=read, oldest_unread=oldest)) as client:
            without_tokens = page_of(await client.get("/console"))
        assert ("tenant demo" in words(without_tokens)) is not first_steps


async def test_the_start_page_shows_only_tenants_of_the_credential() -> None:
    for tokens, rows in (((READER,), ["acme 3 2 100"]), (None, ["acme 3 2 100", "rival 3 2 100"])):
        registry = CollectorRegistry()
        metrics = Metrics(registry)
        for tenant in ("acme", "rival"):
            metrics.waiting_turns.labels(tenant).inc(3)
            metrics.model_calls.labels(tenant, "observations", "gpt").inc(2)
            for direction in ("input", "output"):
                metrics.model_tokens.labels(tenant, "observations", "gpt", direction).inc(50)
        made = app_over(credentials=Credentials(tokens), registry=registry)
        async with called(made, token=None if tokens is None else "mst_reader") as client:
            page = page_of(await client.get("/console"))
        assert [" ".join(row.text(separator=" ").split()) for row in page.css("#tenants tr")] == rows


async def test_a_start_page_without_the_log_says_so(app: FastAPI) -> None:
    async def away() -> list[StageLag]:
        raise Transient("broker", "the log does not answer")

    made = app_over(credentials=Credentials((READER,)), stage_lags=away)
    async with called(made, token="mst_reader") as client:
        page = page_of(await client.get("/console"))
    assert "The log does not answer" in words(page, "#stages")
    assert page.css_first("#first-steps") is None


async def test_a_server_without_tokens_opens_immediately() -> None:
    async with called(app_over()) as client:
        page = page_of(await client.get("/console"))
        assert page.css_first("form.sign-out") is None
        assert (await client.get("/console/sign-in")).headers["location"] == "/console"
        foreign = await client.get("/console", headers={"Host": "evil.example"})
        assert foreign.status_code == 403
        cross = await client.get("/console", headers={"Sec-Fetch-Site": "cross-site"})
        assert cross.status_code == 403


async def test_unknown_pages_and_wrong_queries_are_pages(app: FastAPI) -> None:
    async with called(app, token="mst_reader") as client:
        for path, status, why in (
            ("/console/nothing/here", 404, "Memory does not have this the console has no such page"),
            ("/console/facts?state=wrong", 422, "A field has a wrong value state"),
            ("/console/facts?tenant_id=rival", 403, "no access to the tenant"),
            ("/console/facts?tenant_id=rival", 403, "signed in with the token mst_reader"),
            ("/console/facts?ceiling=secret", 403, "memory:read-secret"),
            ("/console/facts/" + "f" * 65, 422, "fact_id"),
        ):
            answer = await client.get(path)
            assert answer.status_code == status, path
            assert why in words(page_of(answer)), path
        unknown = await client.post("/console/facts/f1/destroy", data={"csrf": "x"})
        assert (unknown.status_code, "approve" in words(page_of(unknown))) == (422, True)


async def test_the_files_of_the_pages_need_no_token(app: FastAPI) -> None:
    async with called(app) as client:
        kinds = {
            "console.css": "text/css; charset=utf-8",
            "console.js": "text/javascript; charset=utf-8",
            "icon.svg": "image/svg+xml",
        }
        for name, kind in kinds.items():
            answer = await client.get(f"/console/static/{name}")
            assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
            assert "url(" not in answer.text
            assert "@import" not in answer.text


async def test_links_have_the_prefix_of_the_server() -> None:
    app = app_over(credentials=Credentials((READER,)), publication=Publication(root_path="/memory"))
    async with called(app) as client:
        away = await client.get("/console/facts?tenant_id=acme")
        assert away.headers["location"] == "/memory/console/sign-in?next=%2Fconsole%2Ffacts%3Ftenant_id%3Dacme"
        answer = await sign_in(client, next="/console/facts?tenant_id=acme")
        assert answer.headers["location"] == "/memory/console/facts?tenant_id=acme"
        assert "Path=/memory/console;" in answer.headers["set-cookie"]
        page = page_of(await client.get("/memory/console"))
    assert page.css_first("link[rel=stylesheet]").attributes["href"] == "/memory/console/static/console.css"


async def test_the_console_is_no_part_of_the_described_interface(app: FastAPI) -> None:
    assert not [path for path in app.openapi()["paths"] if path.startswith("/console")]
