"""A proxy that records the requests of one process to a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

from .floor import Request

LARGEST = 64 * 1024 * 1024
"""Maximum bytes of a request's body."""


@dataclass(slots=True)
class RequestProxy:
    """A proxy in this process. Its `url` replaces the server's."""

    server: str
    client: aiohttp.ClientSession
    url: str = ""
    _noted: list[list[Request]] = field(default_factory=list)

    @contextmanager
    def noting(self) -> Iterator[list[Request]]:
        """Yield a list to which the requests of the block are added, with the server's own address."""
        noted: list[Request] = []
        self._noted.append(noted)
        try:
            yield noted
        finally:
            self._noted.remove(noted)

    async def pass_on(self, request: web.Request) -> web.Response:
        body = await request.read()
        url = f"{self.server}{request.path_qs}"
        for each in self._noted:
            each.append(Request(request.method, url, body.decode()))
        headers = {name: request.headers[name] for name in ("Content-Type", "Authorization") if name in request.headers}
        async with self.client.request(
            request.method, url, data=body, headers=headers | {"Accept-Encoding": "identity"}
        ) as answer:
            return web.Response(
                body=await answer.read(), status=answer.status, content_type=answer.content_type, charset=answer.charset
            )


@asynccontextmanager
async def proxy_of(server: str) -> AsyncIterator[RequestProxy]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
        proxy = RequestProxy(server, client)
        app = web.Application(client_max_size=LARGEST)
        app.router.add_route("*", "/{path:.*}", proxy.pass_on)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        proxy.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield proxy
        finally:
            await runner.cleanup()
