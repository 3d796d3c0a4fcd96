"""The end of streams whose token is gone: removed from the file of tokens, or left with other rights."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .credentials import Caller, Credentials
from .problems import unauthorized

CHECK_SECONDS: Final = 2.0
"""Seconds between two looks at the token of a stream."""


async def while_held(
    credentials: Credentials, caller: Caller, app: ASGIApp, scope: Scope, receive: Receive, send: Send
) -> None:
    """Run an ASGI application until it ends, or until the caller's token is gone. Then the answer ends as it is."""
    begun = ended = False

    async def noted(message: Message) -> None:
        nonlocal begun, ended
        begun = begun or message["type"] == "http.response.start"
        ended = message["type"] == "http.response.body" and not message.get("more_body", False)
        await send(message)

    try:
        async with asyncio.timeout(None) as revoked:
            watching = asyncio.create_task(_watch(credentials, caller, revoked))
            try:
                await app(scope, receive, noted)
            finally:
                watching.cancel()
    except TimeoutError:
        if not revoked.expired():
            raise
        if not begun:
            raise unauthorized("this token is not known any more") from None
        if not ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _watch(credentials: Credentials, caller: Caller, revoked: asyncio.Timeout) -> None:
    while True:
        if not credentials.holds(caller):
            revoked.reschedule(asyncio.get_running_loop().time())
            return
        await asyncio.sleep(CHECK_SECONDS)
