"""The client for code without async: the same calls, made in a thread of their own."""

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
from .turns import Privacy, TurnLike
from .updates import NOW, Update

T = TypeVar("T")


class BlockingMemory:
    """Blocking calls of `Memory` and `Api`, which raise the same errors. Several threads may share one object."""

    def __init__(self, memory: Memory, loop: asyncio.AbstractEventLoop) -> None:
        self._memory, self._loop = memory, loop

    def produce(self, turn: TurnLike) -> Position:
        return self._wait(self._memory.produce(turn))

    def recall(self, cue: str | None = None, **fields: JsonValue) -> Recalled:
        return self._wait(self._memory.api.recall(cue, **fields))

    def context(self, cue: str | None = None, **fields: JsonValue) -> Context:
        return self._wait(self._memory.api.context(cue, **fields))

    def rehydrate(self, episode_id: str, **fields: JsonValue) -> Verbatim:
        return self._wait(self._memory.api.rehydrate(episode_id, **fields))

    def digest(self, **fields: JsonValue) -> Digest | None:
        return self._wait(self._memory.api.digest(**fields))

    def facts(self, **fields: JsonValue) -> list[Fact]:
        async def collect() -> list[Fact]:
            return [fact async for fact in self._memory.api.facts(**fields)]

        return self._wait(collect())

    def updates(
        self, *, after: str = NOW, tenant_id: str | None = None, owner: Owner | None = None
    ) -> Iterator[Update]:
        """Yield changes of facts and wait for the next one. Close the iterator to stop."""
        updates = self._memory.updates(after=after, tenant_id=tenant_id, owner=owner)
        try:
            while True:
                yield self._wait(anext(updates))
        finally:
            if self._loop.is_running():  # else the client is closed, and the generator with it
                self._wait(updates.aclose())

    def _wait(self, call: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


@contextmanager
def connect_blocking(
    address: str,
    *,
    api: str | None = None,
    token: str | None = None,
    timeout: float = TIMEOUT,
    privacy: Privacy = "default",
) -> Iterator[BlockingMemory]:
    """Open a blocking client; see `connect`."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="memstream-client", daemon=True)
    thread.start()

    def wait(call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, loop).result()

    try:
        opened: AbstractAsyncContextManager[Memory] = connect(
            address, api=api, token=token, timeout=timeout, privacy=privacy
        )
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
