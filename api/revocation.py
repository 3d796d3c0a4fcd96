"""Early end of streams whose token has expired, was removed from the token file, or has other rights now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .problems import unauthorized

CHECK_SECONDS: Final = 2.0
"""Seconds between two checks of a stream's token."""


@dataclass(frozen=True, slots=True)
class Held:
    """Request that ends early when its token is removed or expires, or when another request needs its place.

    `may` returns whether the token is still valid with the same rights. `place` takes a place in a pool; its argument
    is a function that ends the request.
    """

    may: Callable[[], bool]
    place: Callable[[Callable[[], None]], AbstractAsyncContextManager[object]]

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Run an ASGI application until it ends, or until it must end early.

        An early end closes an answer that has begun. If the answer has not begun, it raises Problem (401).
        """
        begun = ended = False

        async def noted(message: Message) -> None:
            nonlocal begun, ended
            begun = begun or message["type"] == "http.response.start"
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        try:
            async with asyncio.timeout(None) as end, self.place(lambda: _end_now(end)):
                watching = asyncio.create_task(self._watch(end))
                try:
                    await app(scope, receive, noted)
                finally:
                    watching.cancel()
        except TimeoutError:
            if not end.expired():
                raise
            if not begun:
                raise unauthorized("this token was removed, has expired or has other rights now") from None
            if not ended:
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _watch(self, end: asyncio.Timeout) -> None:
        while True:
            if not self.may():
                _end_now(end)
                return
            await asyncio.sleep(CHECK_SECONDS)


def _end_now(end: asyncio.Timeout) -> None:
    end.reschedule(asyncio.get_running_loop().time())
