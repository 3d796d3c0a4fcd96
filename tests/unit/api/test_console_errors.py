"""Errors under /console that no route of the console raises: a page for a person, problem details for a program."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from memstream.api.app import Publication
from memstream.api.console.frame import CONTENT_POLICY
from memstream.api.console.sign_in import COOKIE
from memstream.api.credentials import Credentials
from memstream.api.limits import Limits
from memstream.schemas.errors import Transient
from tests.support.api_server import NoRecall, app_over, bearer, entry
from tests.support.console_pages import called, page_of, words

TOKENS = Credentials((entry("mst_reader"),))
DETAIL = "password of the store: hunter2"


async def broken() -> Any:
    raise RuntimeError(DETAIL)


async def silent() -> Any:
    await asyncio.Event().wait()


async def asked(path: str, method: str = "GET", headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    credentials = more.pop("credentials", TOKENS)
    async with called(
        app_over(credentials=credentials, **more), token=None if credentials.open else "mst_reader"
    ) as it:
        return await it.request(method, path, headers=headers)


def says(answer: httpx.Response, status: int, heading: str, *texts: str) -> None:
    page = page_of(answer)
    assert (answer.status_code, words(page, "h1")) == (status, heading)
    assert f"Status {status}" in words(page)
    for text in texts:
        assert text in words(page)


# ------------------------------------------------------------------------------------------------ pages
async def test_a_refused_request_is_a_page_that_says_when_to_come_back() -> None:
    many = await asked("/console/facts?tenant_id=acme", limits=Limits(requests_per_token=0))
    says(many, 429, "Too many requests run", "this token has 0", "Wait 2 seconds, and load the page again.")
    assert many.headers["Retry-After"] == "2"
    again = page_of(many).css_first("a.button")
    assert again.attributes["href"] == "/console/facts?tenant_id=acme"
    full = await asked("/console", credentials=Credentials(None), limits=Limits(requests=0))
    says(full, 503, "The server has too much to do", "the server has 0", "Wait 2 seconds")
    form = await asked("/console/sign-out", "POST", limits=Limits(requests_per_token=0))
    says(form, 429, "Too many requests run", "send the form again")
    assert page_of(form).css_first("a.button") is None


async def test_a_page_that_takes_too_long_is_a_page() -> None:
    late = await asked("/console", limits=Limits(request_seconds=0.05), stage_lags=silent)
    says(late, 503, "A part of memory does not answer", "no answer within 0.05 s", "Wait 2 seconds")


async def test_a_server_that_fails_shows_no_detail() -> None:
    failed = await asked("/console", stage_lags=broken)
    says(failed, 500, "The server failed", "its log has the error", "Load the page again")
    for text in ("hunter2", "RuntimeError", "Traceback", ".py"):
        assert text not in failed.text
    assert "mst_reader" in words(page_of(failed), ".who"), "the person can sign out"


async def test_a_part_of_memory_that_is_away_is_a_page() -> None:
    recall = NoRecall(Transient("store", "cut", retry_after=7.2))
    away = await asked("/console/lab?tenant_id=acme&user_id=u1&cue=tea", recall=recall)
    says(away, 503, "A part of memory does not answer", "Wait 8 seconds")
    assert away.headers["Retry-After"] == "8"


@pytest.mark.parametrize("path", ["/console/facts", "/console/nothing/here"])
async def test_a_wrong_method_is_a_page(path: str) -> None:
    answer = await asked(path, "PUT")
    says(answer, 405, "This page does not accept this request", "PUT")
    assert "GET" in answer.headers["Allow"]


async def test_a_long_address_is_a_page() -> None:
    long = await asked(f"/console?x={'y' * 2_000}", limits=Limits(header=1_000))
    says(long, 431, "The address or a cookie is too long", "more than 1000 bytes")


async def test_another_host_gets_a_page_without_the_token_of_a_form() -> None:
    answer = await asked("/console", headers={"Host": "evil.example"}, credentials=Credentials(None))
    says(answer, 403, "You may not do this", "localhost, 127.0.0.1")
    assert "csrf" not in answer.text


async def test_links_of_an_error_have_the_prefix_of_the_server() -> None:
    for path in ("/memory/console", "/console"):
        failed = await asked(path, stage_lags=broken, publication=Publication(root_path="/memory"))
        says(failed, 500, "The server failed")
        start = page_of(failed).css_first("a.brand")
        assert start.attributes["href"] == "/memory/console"


# ------------------------------------------------------------------------------------------------ problem details
async def test_programs_get_problem_details() -> None:
    for path in ("/console/updates?user_id=u1", "/console/static/console.css", "/v1/facts", "/consoles"):
        answer = await asked(path, limits=Limits(requests_per_token=0))
        assert answer.status_code == 429, path
        assert answer.headers["content-type"] == "application/problem+json", path
        assert answer.json()["type"] == "urn:memstream:problem:too-many-requests"
        assert (answer.headers.get("content-security-policy") == CONTENT_POLICY) == path.startswith("/console/"), path
    for path, status in (
        ("/console/updates?ceiling=secret&user_id=u1", 403),
        ("/console/updates?user_id=u1&after=x", 422),
        ("/console/static/other.css", 404),
        ("/console/static/..%2fpages.py", 404),
    ):
        answer = await asked(path)
        assert (answer.status_code, answer.json()["status"]) == (status, status), path


async def test_a_stream_without_a_token_is_refused_and_a_page_leads_to_the_sign_in() -> None:
    async with called(app_over(credentials=TOKENS)) as client:
        assert (await client.get("/console/updates?user_id=u1")).status_code == 401
        gone = await client.get("/console/facts", headers=bearer("mst_gone"))
        assert (gone.status_code, gone.headers["location"].partition("?")[0]) == (303, "/console/sign-in")
        assert f'{COOKIE}="";' in gone.headers["set-cookie"]
        assert gone.headers["content-security-policy"] == CONTENT_POLICY
