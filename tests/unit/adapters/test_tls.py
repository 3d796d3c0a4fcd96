"""TLS to Qdrant and to a model's server, with certificates of an authority that the system does not know."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from memstream.adapters.openai_server import OpenAIServer
from memstream.adapters.ports import EmbedderIdentity
from memstream.adapters.vectors.errors import AWAY_REMEDY, NAME_REMEDY, SCHEME_REMEDY, TIME_REMEDY, TRUST_REMEDY
from memstream.adapters.vectors.factory import open_store
from memstream.schemas.errors import Transient
from tests.support.certificates import LOOPBACK, Authority


async def answer(_: web.Request) -> web.Response:
    return web.json_response({"result": {"aliases": []}, "status": "ok", "time": 0.0})


@asynccontextmanager
async def served(context: ssl.SSLContext | None) -> AsyncIterator[int]:
    """Yield the port of a server without any alias."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, LOOPBACK, 0, ssl_context=context).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def looked_for_qdrant(port: int, *, ca: Path | None = None, scheme: str = "https") -> None:
    identity = EmbedderIdentity(name="hashing", dimension=2)
    store = await open_store(f"{scheme}://{LOOPBACK}:{port}", embedder=identity, ca=ca)
    try:
        await store.ping()
    finally:
        await store.close()


async def remedy(context: ssl.SSLContext | None, *, ca: Path | None = None, scheme: str = "https") -> str:
    async with served(context) as port:
        with pytest.raises(Transient, match="Qdrant does not answer") as raised:
            await looked_for_qdrant(port, ca=ca, scheme=scheme)
    return raised.value.remedy


async def test_a_server_with_a_certificate_of_the_given_authority_is_read(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with served(authority.server_context()) as port:
        await looked_for_qdrant(port, ca=authority.file)


async def test_a_certificate_that_nobody_signed_is_trusted_where_it_is_given(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with served(authority.own_context()) as port:
        await looked_for_qdrant(port, ca=authority.file)


async def test_an_unknown_authority_is_refused_and_the_setting_named(tmp_path: Path) -> None:
    (other := tmp_path / "other").mkdir()
    context = Authority(tmp_path).server_context()
    assert await remedy(context) == TRUST_REMEDY
    assert await remedy(context, ca=Authority(other).file) == TRUST_REMEDY
    assert "MEMSTREAM_QDRANT_CA" in TRUST_REMEDY


async def test_a_certificate_for_another_address_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    assert await remedy(authority.server_context(address="127.0.0.9"), ca=authority.file) == NAME_REMEDY


@pytest.mark.parametrize("days", [-1, 1_000])
async def test_a_certificate_of_another_time_is_refused(tmp_path: Path, days: int) -> None:
    authority = Authority(tmp_path)
    context = authority.server_context(until=datetime.now(UTC) + timedelta(days=days))
    assert await remedy(context, ca=authority.file) == TIME_REMEDY


async def test_a_wrong_scheme_is_told(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    assert await remedy(None, ca=authority.file) == SCHEME_REMEDY
    assert await remedy(authority.server_context(), scheme="http") == AWAY_REMEDY
    assert "https" in AWAY_REMEDY


async def test_a_model_server_is_checked_against_the_file_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)

    async def ask(port: int) -> bytes:
        server = OpenAIServer(
            model="m",
            component="model",
            setting="MEMSTREAM_MODEL",
            api_key=None,
            base_url=f"https://{LOOPBACK}:{port}/v1",
            timeout=10.0,
            concurrency=1,
        )
        try:
            return await server.post("/chat/completions", {}, tenant_id="acme")
        finally:
            await server.close()

    async with served(authority.server_context()) as port:
        with pytest.raises(Transient, match="certificate verify failed"):
            await ask(port)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        assert b"aliases" in await ask(port)
