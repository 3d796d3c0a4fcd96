"""Blocking client: the same calls as the async client, which run in an event loop in a separate thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from pydantic import JsonValue

from ..schemas.digests import Digest
from ..schemas.export import FileFormat
from ..schemas.facts import Fact
from ..schemas.imports import ImportReport
from ..schemas.profile import Profile
from ..schemas.turns import Owner
from ..streams.log.kafka_security import KafkaSecurity
from ..streams.log.port import Position
from .edits import Edits
from .http_client import Context, Erasure, Recalled, SaidTurn, TurnReport, Verbatim
from .memory import TIMEOUT, Memory, connect
from .tools import Tools
from .turn_wait import WAIT_SECONDS, TurnWait
from .turns import Privacy, TurnLike
from .updates import NOW, Update

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[Edits, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BlockingMemory, P], T]:
    """Return the blocking form of a method of `Api`."""

    @wraps(method)
    def call(self: BlockingMemory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._wait(method(self._memory.api, *args, **kwargs))

    return call


class BlockingTools:
    """Blocking calls of `Tools`."""

    def __init__(self, memory: BlockingMemory, tools: Tools) -> None:
        self._memory, self._tools = memory, tools

    def definitions(self) -> list[dict[str, Any]]:
        return self._memory._wait(self._tools.definitions())

    def call(self, name: str, arguments: Mapping[str, JsonValue], *, key: str | None = None) -> dict[str, JsonValue]:
        return self._memory._wait(self._tools.call(name, arguments, key=key))


class BlockingMemory:
    """Blocking calls of `Memory` and `Api`, which raise the same errors. Several threads may share one object."""

    def __init__(self, memory: Memory, loop: asyncio.AbstractEventLoop) -> None:
        self._memory, self._loop = memory, loop

    def produce(self, turn: TurnLike, *, wait: TurnWait | None = None, wait_seconds: float = WAIT_SECONDS) -> Position:
        return self._wait(self._memory.produce(turn, wait=wait, wait_seconds=wait_seconds))

    def turn(self, turn_id: str, *, session_id: str, **fields: JsonValue) -> TurnReport:
        return self._wait(self._memory.api.turn(turn_id, session_id=session_id, **fields))

    def recall(self, cue: str | None = None, **fields: JsonValue) -> Recalled:
        return self._wait(self._memory.api.recall(cue, **fields))

    def context(self, cue: str | None = None, **fields: JsonValue) -> Context:
        return self._wait(self._memory.api.context(cue, **fields))

    def rehydrate(self, episode_id: str, **fields: JsonValue) -> Verbatim:
        return self._wait(self._memory.api.rehydrate(episode_id, **fields))

    def erase(self, user_id: str, **fields: JsonValue) -> Erasure:
        return self._wait(self._memory.api.erase(user_id, **fields))

    def erasure(self, erasure_id: str) -> Erasure:
        return self._wait(self._memory.api.erasure(erasure_id))

    def digest(self, **fields: JsonValue) -> Digest | None:
        return self._wait(self._memory.api.digest(**fields))

    def profile(self, **fields: JsonValue) -> Profile:
        return self._wait(self._memory.api.profile(**fields))

    def facts(self, **fields: JsonValue) -> list[Fact]:
        async def collect() -> list[Fact]:
            return [fact async for fact in self._memory.api.facts(**fields)]

        return self._wait(collect())

    def export(self, **fields: JsonValue) -> Iterator[bytes]:
        """Yield the lines of an export; see `Api.export`."""
        lines = self._memory.api.export(**fields)
        try:
            while (line := self._wait(_next(lines))) is not None:
                yield line
        finally:
            if self._loop.is_running():
                self._wait(lines.aclose())

    def export_file(self, path: str | Path, /, *, format: FileFormat = "ndjson", **fields: JsonValue) -> None:
        """Write an export to a new file or folder; see `Api.export_file`."""
        self._wait(self._memory.api.export_file(path, format=format, **fields))

    def import_file(self, path: str | Path, /, **fields: JsonValue) -> ImportReport:
        """Import a file that an export wrote; see `Api.import_file`."""
        return self._wait(self._memory.api.import_file(path, **fields))

    def fact(self, fact_id: str, **fields: JsonValue) -> Fact:
        return self._wait(self._memory.api.fact(fact_id, **fields))

    def session_turns(self, session_id: str, **fields: JsonValue) -> list[SaidTurn]:
        async def collect() -> list[SaidTurn]:
            return [turn async for turn in self._memory.api.session_turns(session_id, **fields)]

        return self._wait(collect())

    remember = _blocking(Edits.remember)
    update_fact = _blocking(Edits.update_fact)
    reinforce_fact = _blocking(Edits.reinforce_fact)
    pin_fact = _blocking(Edits.pin_fact)
    unpin_fact = _blocking(Edits.unpin_fact)
    supersede_fact = _blocking(Edits.supersede_fact)
    merge_facts = _blocking(Edits.merge_facts)
    forget_fact = _blocking(Edits.forget_fact)
    approve_fact = _blocking(Edits.approve_fact)
    reject_fact = _blocking(Edits.reject_fact)
    reflect = _blocking(Edits.reflect)
    add_episode = _blocking(Edits.add_episode)
    update_episode = _blocking(Edits.update_episode)
    forget_episode = _blocking(Edits.forget_episode)
    merge_episodes = _blocking(Edits.merge_episodes)
    mark_consolidated = _blocking(Edits.mark_consolidated)
    add_entry = _blocking(Edits.add_entry)
    evict_entry = _blocking(Edits.evict_entry)
    retract_turn = _blocking(Edits.retract_turn)
    erase_session = _blocking(Edits.erase_session)
    pin_entry = _blocking(Edits.pin_entry)
    unpin_entry = _blocking(Edits.unpin_entry)
    refresh_entry = _blocking(Edits.refresh_entry)
    advance_turns = _blocking(Edits.advance_turns)
    holdings = _blocking(Edits.holdings)
    define_block = _blocking(Edits.define_block)
    append_to_block = _blocking(Edits.append_to_block)
    replace_in_block = _blocking(Edits.replace_in_block)
    rethink_block = _blocking(Edits.rethink_block)
    remove_block = _blocking(Edits.remove_block)
    attach_block = _blocking(Edits.attach_block)
    detach_block = _blocking(Edits.detach_block)
    blocks = _blocking(Edits.blocks)
    define_procedure = _blocking(Edits.define_procedure)
    remove_procedure = _blocking(Edits.remove_procedure)
    activate_procedure = _blocking(Edits.activate_procedure)
    deactivate_procedure = _blocking(Edits.deactivate_procedure)
    procedures = _blocking(Edits.procedures)
    define_group = _blocking(Edits.define_group)
    attach_to_group = _blocking(Edits.attach_to_group)
    detach_from_group = _blocking(Edits.detach_from_group)
    remove_group = _blocking(Edits.remove_group)
    groups = _blocking(Edits.groups)
    add_task = _blocking(Edits.add_task)
    finish_task = _blocking(Edits.finish_task)
    cancel_task = _blocking(Edits.cancel_task)
    tasks = _blocking(Edits.tasks)

    def tools(self, **identity: str | None) -> BlockingTools:
        return BlockingTools(self, self._memory.tools(**identity))

    def updates(
        self, *, after: str = NOW, tenant_id: str | None = None, owner: Owner | None = None
    ) -> Iterator[Update]:
        """Yield changes of facts in an endless stream. Close the iterator to stop."""
        updates = self._memory.updates(after=after, tenant_id=tenant_id, owner=owner)
        try:
            while True:
                yield self._wait(anext(updates))
        finally:
            if self._loop.is_running():  # otherwise the client is closed, and has closed the generator
                self._wait(updates.aclose())

    def submit(self, call: Callable[[Memory], Coroutine[Any, Any, T]]) -> Future[T]:
        """Start a coroutine that uses the async client, in the client's thread."""
        return asyncio.run_coroutine_threadsafe(call(self._memory), self._loop)

    def _wait(self, call: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


async def _next(lines: AsyncGenerator[bytes]) -> bytes | None:
    return await anext(lines, None)


@contextmanager
def connect_blocking(
    address: str,
    *,
    api: str | None = None,
    token: str | None = None,
    timeout: float = TIMEOUT,
    privacy: Privacy = "default",
    security: KafkaSecurity | None = None,
) -> Iterator[BlockingMemory]:
    """Open a blocking client; see `connect`."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="memstream-client", daemon=True)
    thread.start()

    def wait(call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, loop).result()

    try:
        opened: AbstractAsyncContextManager[Memory] = connect(
            address, api=api, token=token, timeout=timeout, privacy=privacy, security=security
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
