"""Proxies of the environment and servers of models: a server on this machine is asked directly, and a proxy that no
call can go through is refused at the start."""

from __future__ import annotations

import asyncio
import os

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from memstream.adapters.model_proxy import leaves_out_proxy
from memstream.adapters.openai_server import OpenAIServer
from memstream.cli.wiring.model_checks import check_models
from memstream.cli.wiring.settings import Settings

NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
SOCKS, HTTP = "socks5://127.0.0.1:9", "http://127.0.0.1:9"
AWAY, HERE = "https://models.example/v1", "http://127.0.0.1:11434/v1"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper() in NAMES:
            monkeypatch.delenv(name)


CASES = {
    "no proxy": ({}, AWAY, False),
    "a proxy": ({"HTTPS_PROXY": HTTP}, AWAY, False),
    "a proxy without a scheme": ({"HTTPS_PROXY": "proxy:3128"}, AWAY, False),
    "no proxy, on this machine": ({}, HERE, False),
    "a proxy, on this machine": ({"HTTP_PROXY": HTTP}, HERE, True),
    "SOCKS, on this machine": ({"ALL_PROXY": SOCKS}, "http://localhost:1/v1", True),
    "SOCKS for others": ({"ALL_PROXY": SOCKS, "NO_PROXY": "models.example"}, AWAY, False),
    "SOCKS for other schemes": ({"ALL_PROXY": SOCKS, "HTTPS_PROXY": HTTP}, AWAY, False),
    "SOCKS": ({"ALL_PROXY": SOCKS}, AWAY, "sets a socks5:// proxy for models.example"),
    "SOCKS, OpenAI": ({"HTTPS_PROXY": "socks5h://u:s3cret@p:1"}, None, "sets a socks5h:// proxy for api.openai.com"),
    "a desktop's settings": ({"ALL_PROXY": "socks://127.0.0.1:1"}, AWAY, "or add models.example to NO_PROXY"),
}


@pytest.mark.parametrize("case", CASES)
def test_which_servers_leave_out_the_proxy(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment, base_url, expected = CASES[case]
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if isinstance(expected, bool):
        assert leaves_out_proxy(base_url) is expected
        return
    with pytest.raises(ValueError, match=expected) as caught:
        leaves_out_proxy(base_url)
    assert "s3cret" not in str(caught.value)


async def test_a_call_to_this_machine_reaches_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, SOCKS)

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="here")

    app = web.Application()
    app.router.add_post("/v1/embeddings", answer)
    async with TestServer(app) as served:
        server = OpenAIServer(
            model="m", component="model", setting="MEMSTREAM_MODEL", api_key=None,
            base_url=str(served.make_url("/v1")), timeout=20.0, concurrency=1,
        )  # fmt: skip
        assert await server.post("/embeddings", {}, tenant_id="acme") == b"here"
        assert await asyncio.to_thread(server.post_blocking, "/embeddings", {}) == b"here"
        await server.close()


async def test_doctor_names_the_proxy_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks://127.0.0.1:9")
    settings = Settings(model="m", OPENAI_BASE_URL=AWAY, _env_file=None)  # type: ignore[call-arg]
    (check, *_) = await check_models(settings, {})
    assert (check.ok, "\n" in check.detail) == (False, False)
    assert "ALL_PROXY" in check.detail
