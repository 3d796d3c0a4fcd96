"""The HTTP server of a worker for its orchestrator: `/livez`, `/readyz`, `/metrics`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

LOOPBACK = "127.0.0.1"


class AddressRefused(Exception):
    """MEMSTREAM_HEALTH_HOST is not an address of this machine, or another process uses MEMSTREAM_HEALTH_PORT.

    The cause is a wrong setting, not a broken invariant.
    """


Readiness = Callable[[], Mapping[str, tuple[bool, str]]]
"""Function that returns, for each part of the worker, whether it is ready, and the reason if not."""


@asynccontextmanager
async def served(
    *, port: int, registry: CollectorRegistry, readiness: Readiness, host: str = LOOPBACK
) -> AsyncIterator[None]:
    """Serve on an address of this machine during the block; port 0 disables the server. Raises AddressRefused."""
    if port == 0:
        yield
        return

    async def livez(request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(request: web.Request) -> web.Response:
        parts = readiness()
        ready = all(ok for ok, _ in parts.values())
        body = {"ready": ready, "parts": {name: {"ready": ok, "why": why} for name, (ok, why) in parts.items()}}
        return web.Response(text=json.dumps(body) + "\n", status=200 if ready else 503, content_type="application/json")

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/livez", livez), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise AddressRefused(
                f"MEMSTREAM_HEALTH_HOST={host}, MEMSTREAM_HEALTH_PORT={port}: {error.strerror or error}; "
                "set an address of this machine (0.0.0.0: all) and a free port, or port 0 to disable the server"
            ) from error
        yield
    finally:
        await runner.cleanup()
