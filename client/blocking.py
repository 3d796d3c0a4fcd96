"""The client for code without async: the same calls, made in a thread of their own, with or without a running loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

from pydantic import JsonValue

from ..schemas.digests import Digest
from ..schemas.facts import Fact
from ..schemas.turns import Owner
from ..streams.log.port import Position
from .http_client import Context, Recalled, Verbatim
from .memory import TIMEOUT, Memory, connect
from .turns import TurnLike
from .updates import NOW, Update

T = TypeVar("T")


class BlockingMemory:
    """See `Memory` and `Api`; what they raise is raised here. Threads may share it."""

    def __init__(self, memory: Memory, loop: asyncio.AbstractEventLoop) -> None:
        self._memory, self._loop = memory, loop

    def produce(self, turn: TurnLike) -> Position:
        return self._wait(self._memory.produce(turn))

    def recall(self, cue: str | None = None, **asked: JsonValue) -> Recalled:
        return self._wait(self._memory.api.recall(cue, **asked))

    def context(self, cue: str | None = None, **asked: JsonValue) -> Context:
        return self._wait(self._memory.api.context(cue, **asked))

    def rehydrate(self, episode_id: str, **asked: JsonValue) -> Verbatim:
        return self._wait(self._memory.api.rehydrate(episode_id, **asked))

    def digest(self, **asked: JsonValue) -> Digest | None:
        return self._wait(self._memory.api.digest(**asked))

    def facts(self, **asked: JsonValue) -> list[Fact]:
        async def all_() -> list[Fact]:
            return [fact async for fact in self._memory.api.facts(**asked)]

        return self._wait(all_())

    def updates(
        self, *, after: str = NOW, tenant_id: str | None = None, owner: Owner | None = None
    ) -> Iterator[Update]:
        """Waits for the next one; close the iterator to break off."""
        told = self._memory.updates(after=after, tenant_id=tenant_id, owner=owner)
        try:
            while True:
                yield self._wait(anext(told))
        finally:
            if self._loop.is_running():  # else the client was closed, and this with it
                self._wait(told.aclose())

    def _wait(self, call: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


@contextmanager
def connect_blocking(
    address: str, *, api: str | None = None, token: str | None = None, timeout: float = TIMEOUT
) -> Iterator[BlockingMemory]:
    """As `connect`."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="memstream-client", daemon=True)
    thread.start()

    def wait(call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, loop).result()

    try:
        opened: AbstractAsyncContextManager[Memory] = connect(address, api=api, token=token, timeout=timeout)
        memory = wait(opened.__aenter__())
        try:
            yield BlockingMemory(memory, loop)
        finally:
            wait(opened.__aexit__(None, None, None))
    finally:
        wait(loop.shutdown_asyncgens())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
