"""`memstream doctor` asks the worker on its machine what is not ready, and which tenants are paused."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from prometheus_client import CollectorRegistry

from memstream.api.worker_health import served
from memstream.cli.wiring.settings import Settings
from memstream.cli.wiring.worker_check import check_worker
from tests.support.kafka import free_port

PAUSED = "paused tenants: 1: model:acme: the filter refuses it (memstream dlq list)"


@pytest.mark.parametrize(
    ("parts", "ok", "detail"),
    [
        (
            {"observer": (True, ""), "qdrant": (True, "")},
            True,
            "{readyz} is ready, and no tenant is paused",
        ),
        ({"observer": (True, PAUSED), "qdrant": (True, "")}, False, f"observer: {PAUSED}"),
        ({"observer": (True, PAUSED), "qdrant": (False, "away")}, False, f"observer: {PAUSED}; qdrant: away"),
    ],
)
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
async def test_what_the_worker_says(parts: Mapping[str, tuple[bool, str]], ok: bool, detail: str, host: str) -> None:
    port = free_port()
    async with served(port=port, registry=CollectorRegistry(), readiness=lambda: parts, host=host):
        [check] = await check_worker(Settings(health_port=port, health_host=host))
    assert (check.check, check.ok, check.detail) == (
        "worker",
        ok,
        detail.format(readyz=f"http://127.0.0.1:{port}/readyz"),
    )
    assert bool(check.fix) is not ok


async def test_without_a_port_nothing_is_asked_and_a_worker_may_be_elsewhere() -> None:
    assert await check_worker(Settings()) == []
    port = free_port()
    [check] = await check_worker(Settings(health_port=port))
    assert (check.ok, check.detail) == (True, f"no worker answers at http://127.0.0.1:{port}/readyz")


async def test_another_server_at_the_port_is_told() -> None:
    async def readyz(request: web.Request) -> web.Response:
        return web.json_response({"ready": True})

    app = web.Application()
    app.router.add_get("/readyz", readyz)
    async with TestServer(app) as server:
        [check] = await check_worker(Settings(health_port=server.port or 0))
    assert (check.ok, check.fix) == (False, "check MEMSTREAM_HEALTH_PORT")
