"""A server without tokens answers programs of this machine, and no page of another site."""

from __future__ import annotations

import httpx
import pytest

from memstream.api.credentials import Credentials
from tests.support.api_server import app_over, bearer, called, entry, served

TURN = {
    "tenant_id": "acme", "user_id": "u1", "session_id": "s1", "turn_id": "t1",
    "messages": [{"role": "user", "content": "hello"}],
}  # fmt: skip


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "LocalHost"])
async def test_the_names_of_this_machine_are_answered(name: str) -> None:
    async with served(app_over()) as url, httpx.AsyncClient() as client:
        port = url.rpartition(":")[2]
        answer = await client.get(f"{url}/openapi.json", headers={"Host": f"{name}:{port}"})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example:{port}", "localhost", "127.0.0.1:1", "127.0.0.1.evil.example:{port}", ""]
)
async def test_another_host_is_refused(host: str) -> None:
    """DNS rebinding: a page gives its own name the address 127.0.0.1."""
    async with served(app_over()) as url, httpx.AsyncClient() as client:
        headers = {"Host": host.format(port=url.rpartition(":")[2])}
        answer = await client.get(f"{url}/v1/facts?tenant=acme", headers=headers)
        alive = await client.get(f"{url}/livez", headers=headers)
    assert answer.status_code == 403
    assert answer.json()["type"] == "urn:memstream:problem:forbidden"
    assert "memstream tokens new" in answer.json()["detail"]
    assert alive.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Origin": "https://localhost:{port}"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
async def test_a_page_of_another_site_is_refused(headers: dict[str, str]) -> None:
    async with served(app_over()) as url, httpx.AsyncClient() as client:
        port = url.rpartition(":")[2]
        sent = {name: value.format(port=port) for name, value in headers.items()}
        answer = await client.post(f"{url}/v1/turns", json=TURN, headers=sent)
    assert answer.status_code == 403


async def test_the_servers_own_page_is_answered() -> None:
    async with served(app_over()) as url, httpx.AsyncClient() as client:
        headers = {"Origin": url, "Sec-Fetch-Site": "same-origin"}
        answer = await client.post(f"{url}/v1/turns", json=TURN, headers=headers)
    assert answer.status_code == 202


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_a_body_needs_the_content_type_of_json(kind: str | None) -> None:
    """A page may send any other type, and none at all, to another site without asking."""
    async with called(app_over()) as client:
        headers = {} if kind is None else {"Content-Type": kind}
        answer = await client.post("/v1/turns", content=httpx.Response(200, json=TURN).content, headers=headers)
    assert answer.status_code == 415


async def test_with_tokens_any_host_and_origin_are_answered() -> None:
    app = app_over(credentials=Credentials((entry("t"),)))
    async with called(app, token="t") as client:
        headers = bearer("t") | {"Host": "memory.example", "Origin": "https://app.example"}
        answer = await client.post("/v1/turns", json=TURN, headers=headers)
    assert answer.status_code == 202


async def test_the_page_of_the_interface_loads_nothing_from_elsewhere() -> None:
    async with called(app_over()) as client:
        page = (await client.get("/docs")).text
        assert "://" not in page.replace("http://localhost", "")
        for path in ("/docs/static/swagger-ui-bundle.js", "/docs/static/swagger-ui.css"):
            assert path in page
            assert (await client.get(path)).status_code == 200


async def test_with_tokens_the_description_needs_a_token_too() -> None:
    app = app_over(credentials=Credentials((entry("t", scopes=("turns:write",)),)))
    async with called(app) as client:
        for path in ("/docs", "/openapi.json", "/docs/static/swagger-ui.css", "/docs/oauth2-redirect"):
            refused = await client.get(path)
            assert (refused.status_code, refused.json()["type"]) == (401, "urn:memstream:problem:unauthorized"), path
            assert (await client.get(path, headers=bearer("unknown"))).status_code == 401
            assert (await client.get(path, headers=bearer("t"))).status_code in (200, 404)
        assert (await client.get("/livez")).status_code == 200
