"""The transport between the client and a Qdrant server."""

from __future__ import annotations

from aiohttp import web
from aiohttp.test_utils import TestServer

from memstream.adapters.vectors.server.remote import Address, RestTransport


async def test_answers_are_asked_for_without_compression() -> None:
    """A compressed answer of a real server waits for a delayed acknowledgement, some 40 ms each."""
    asked: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.headers.get("Accept-Encoding"))
        return web.json_response({"result": True, "status": "ok", "time": 0.0})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        address = Address(str(server.make_url("/")))
        transport = RestTransport(address=address, seconds=5.0, look=lambda: address)
        await transport.request(type_=dict, method="GET", url="/collections")
        await transport.aclose()
    assert asked == ["identity"]
