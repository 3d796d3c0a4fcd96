"""The sockets of `memstream serve`."""

from __future__ import annotations

import asyncio
import socket

from memstream.cli.wiring.server import listening


async def test_the_body_of_an_answer_does_not_wait_until_the_client_has_acknowledged_its_head() -> None:
    """With two writes the second waits some 40 ms, unless the connection has TCP_NODELAY."""
    seen: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    class Answering(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            seen.set_result(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            transport.close()

    with listening("127.0.0.1", 0) as sockets:
        server = await asyncio.get_running_loop().create_server(Answering, sock=sockets[0])
        async with server:
            _, writer = await asyncio.open_connection(*sockets[0].getsockname())
            assert await asyncio.wait_for(seen, 10)
            writer.close()
