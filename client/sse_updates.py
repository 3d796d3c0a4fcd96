"""The changes of facts over HTTP: server-sent events of `GET /v1/facts/updates`, resumed by Last-Event-ID.

The guarantee is that of updates.py, kept in the same way: the id of an event is a position, and who resumes asks for
LOOK_BACK records before it, without telling them, to know what was told. One thing less: STATE is read from the store,
which has a change before it is told. Who is restarted at the very end of the state may be told such a version again."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace

import httpx
import structlog

from ..schemas.facts import FactUpdated
from ..schemas.turns import Owner
from ..streams.log.fanout import Offsets
from ..streams.log.partitioner import partition_for
from .errors import PositionLost, Unavailable
from .http_client import Api, refused
from .updates import (
    BACKOFF_FIRST,
    BACKOFF_MAX,
    BEGINNING,
    LOOK_BACK,
    NOW,
    STATE,
    Seen,
    Update,
    UpdateFilter,
    from_position,
    looked_back,
)

PATH, CHANGE = "/v1/facts/updates", "fact.updated"
SILENCE = 60.0
"""Seconds without a byte, then the connection is taken for dead; the server says something every 15."""
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a stream. One without data tells a place alone."""

    id: str | None
    event: str
    data: str


class HttpUpdates:
    """`Updates` from a server. The server filters; a tenant may be left out when the token has one alone."""

    def __init__(self, *, api: Api, look_back: int = LOOK_BACK) -> None:
        self._api = api
        self._look_back = look_back

    async def updates(
        self, *, after: str = NOW, tenant_id: str | None = None, owner: Owner | None = None
    ) -> AsyncGenerator[Update]:
        asked = {"tenant": tenant_id} | ({"scope": owner.scope, "id": owner.id} if owner is not None else {})
        whose = {name: value for name, value in asked.items() if value is not None}
        wanted, seen, begun = UpdateFilter(tenant_id, owner), Seen(), Offsets(())
        if after in (STATE, NOW, BEGINNING):
            blocks = self._blocks(whose | {"from": BEGINNING if after == BEGINNING else NOW}, None)
        else:
            begun = from_position(after)
            blocks = await self._resumed(whose, begun)
        async with aclosing(blocks):
            if after == STATE:
                here = (await anext(blocks)).id  # a change is stored before it is told: the state has all before it
                held: Update | None = None
                async with aclosing(self._api.facts(**whose, state="all")) as facts:
                    async for fact in facts:
                        if seen.is_new(fact):
                            if held is not None:
                                yield held
                            held = Update(fact, None, None)
                if held is not None:
                    yield replace(held, position=here)
            async for block in blocks:
                if block.event != CHANGE or block.id is None:
                    continue
                event = wanted.event(block.data.encode(), where=block.id)
                if event is not None and seen.is_new(event.fact) and _is_after(begun, event, from_position(block.id)):
                    yield Update(event.fact, event, block.id)

    async def _resumed(self, query: Mapping[str, str], begun: Offsets) -> AsyncGenerator[Block]:
        """From as far before a place as the log still goes back. The place itself is asked for first: it may lie beyond
        the end of a log that was made anew, where one before it does not. Raises PositionLost."""
        async with aclosing(self._blocks(query, begun.token())) as held:
            await anext(held)
        for back in (self._look_back, self._look_back // 10, self._look_back // 100, 0):
            blocks = self._blocks(query, looked_back(begun, back).token())
            try:
                await anext(blocks)  # it tells where the stream begins, nothing else
                return blocks
            except PositionLost:
                if not back:
                    raise
        raise AssertionError

    async def _blocks(self, query: Mapping[str, str], last: str | None) -> AsyncGenerator[Block]:
        """On and on: a stream that ends is taken up after its last id. Raises Unavailable when none began in time."""
        wait, began, until = BACKOFF_FIRST, False, time.monotonic() + self._api.timeout
        silence = httpx.Timeout(self._api.timeout, read=SILENCE)
        while True:
            try:
                headers = {"last-event-id": last} if last is not None else {}
                async with self._api.http.stream("GET", PATH, params=query, headers=headers, timeout=silence) as answer:
                    if not answer.is_success:
                        await answer.aread()
                        raise refused(answer)
                    async with aclosing(parsed(answer.aiter_bytes())) as blocks:
                        async for block in blocks:
                            wait, began, last = BACKOFF_FIRST, True, block.id or last
                            yield block
            except (httpx.TransportError, Unavailable) as error:
                if not began and time.monotonic() > until:
                    raise Unavailable(f"{self._api.http.base_url}: {type(error).__name__} {error}") from error
                if wait == BACKOFF_FIRST:
                    logger.warning("updates_away", error=repr(error))
            await asyncio.sleep(random.uniform(0, wait))
            wait = min(2 * wait, BACKOFF_MAX)


def _is_after(begun: Offsets, event: FactUpdated, places: Offsets) -> bool:
    """Whether the record of this event, which lies before `places`, lies behind `begun`. Its partition is its owner
    key's."""
    p = partition_for(event.owner.key(event.tenant_id).encode(), len(places.offsets))
    return places.of(p) > begun.of(p)


async def parsed(chunks: AsyncIterator[bytes]) -> AsyncGenerator[Block]:
    """Blocks of `text/event-stream`, without a cut one at the end. Lines end with LF or CRLF, as this server's do: the
    other ends that Unicode has (and httpx's lines know) may stand in the text of a fact."""
    rest, fields = b"", dict[str, str]()
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for raw in lines:
            line = raw.removesuffix(b"\r").decode()
            name, _, value = line.partition(":")
            if not line:
                yield Block(fields.get("id"), fields.get("event", "message"), fields.get("data", ""))
                fields = {}
            elif name == "data" and "data" in fields:
                fields["data"] += "\n" + value.removeprefix(" ")
            else:
                fields[name] = value.removeprefix(" ")
