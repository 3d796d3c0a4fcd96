"""Changes of facts over HTTP: server-sent events of `GET /v1/facts/updates`, resumed by Last-Event-ID.

The guarantee is the same as in updates.py, and is implemented in the same way: the id of an event is a position, and a
subscriber that resumes first reads the LOOK_BACK records before its position, to learn which versions it has received.
One case differs: the server reads STATE from the store, and a change is in the store before it is in the log. If a
subscriber restarts exactly at the end of the state, it may receive a change twice: from the store and from the log.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace

import httpx

from ..schemas.facts import FactUpdated
from ..schemas.turns import Owner
from ..streams.log.offsets import Offsets
from ..streams.log.partitioner import partition_for
from .errors import PositionLost, Unavailable
from .http_client import Api, error_of
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
    read_position,
    step_back,
)

PATH, CHANGE = "/v1/facts/updates", "fact.updated"
SILENCE = 60.0
"""Seconds without data after which the connection counts as dead. The server sends a comment every 15 seconds."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Block:
    """Event of a stream. An event without data has only a position."""

    id: str | None
    event: str
    data: str


class HttpUpdates:
    """`Updates` over HTTP. The server filters the changes. The tenant may be omitted if the token has exactly one
    tenant."""

    def __init__(self, *, api: Api, look_back: int = LOOK_BACK) -> None:
        self._api = api
        self._look_back = look_back

    async def updates(
        self, *, after: str = NOW, tenant_id: str | None = None, owner: Owner | None = None
    ) -> AsyncGenerator[Update]:
        options = {"tenant": tenant_id} | ({"scope": owner.scope, "id": owner.id} if owner is not None else {})
        query = {name: value for name, value in options.items() if value is not None}
        selection, seen, begun = UpdateFilter(tenant_id, owner), Seen(), Offsets(())
        if after in (STATE, NOW, BEGINNING):
            blocks = self._blocks(query | {"from": BEGINNING if after == BEGINNING else NOW}, None)
        else:
            begun = read_position(after)
            blocks = await self._resumed(query, begun)
        async with aclosing(blocks):
            if after == STATE:
                position = (await anext(blocks)).id  # the store has every change before the log
                held: Update | None = None
                async with aclosing(self._api.facts(**query, state="all")) as facts:
                    async for fact in facts:
                        if seen.is_new(fact):
                            if held is not None:
                                yield held
                            held = Update(fact, None, None)
                if held is not None:
                    yield replace(held, position=position)
            async for block in blocks:
                if block.event != CHANGE or block.id is None:
                    continue
                event = selection.event(block.data.encode(), where=block.id)
                if event is not None and seen.is_new(event.fact) and _is_after(begun, event, read_position(block.id)):
                    yield Update(event.fact, event, block.id)

    async def _resumed(self, query: Mapping[str, str], begun: Offsets) -> AsyncGenerator[Block]:
        """Open the stream LOOK_BACK records before a position, or fewer if the log no longer has the older records.

        Request the position itself first: after the log was recreated, the position may be beyond the end of the log,
        while an earlier position is not. Raises PositionLost.
        """
        async with aclosing(self._blocks(query, begun.token())) as blocks:
            await anext(blocks)
        for back in (self._look_back, self._look_back // 10, self._look_back // 100, 0):
            blocks = self._blocks(query, step_back(begun, back).token())
            try:
                await anext(blocks)  # the first block has only the position
                return blocks
            except PositionLost:
                if not back:
                    raise
        raise AssertionError

    async def _blocks(self, query: Mapping[str, str], last: str | None) -> AsyncGenerator[Block]:
        """Yield blocks without end. Reopen a lost stream after its last id. Raises Unavailable if no stream can be
        opened."""
        wait, began, until = BACKOFF_FIRST, False, time.monotonic() + self._api.timeout
        silence = httpx.Timeout(self._api.timeout, read=SILENCE)
        while True:
            try:
                headers = {"last-event-id": last} if last is not None else {}
                async with self._api.http.stream("GET", PATH, params=query, headers=headers, timeout=silence) as answer:
                    if not answer.is_success:
                        await answer.aread()
                        raise error_of(answer)
                    async with aclosing(parse_blocks(answer.aiter_bytes())) as blocks:
                        async for block in blocks:
                            wait, began, last = BACKOFF_FIRST, True, block.id or last
                            yield block
            except (httpx.TransportError, Unavailable) as error:
                if not began and time.monotonic() > until:
                    raise Unavailable(f"{self._api.http.base_url}: {type(error).__name__} {error}") from error
                if wait == BACKOFF_FIRST:
                    logger.warning("updates_away: %r", error)
            await asyncio.sleep(random.uniform(0, wait))
            wait = min(2 * wait, BACKOFF_MAX)


def _is_after(begun: Offsets, event: FactUpdated, places: Offsets) -> bool:
    """Return whether the event's record is after `begun`. `places`: the offsets after this record. The record is in the
    partition of its owner's key."""
    p = partition_for(event.owner.key(event.tenant_id).encode(), len(places.offsets))
    return places.of(p) > begun.of(p)


async def parse_blocks(chunks: AsyncIterator[bytes]) -> AsyncGenerator[Block]:
    """Parse `text/event-stream` into blocks. Drop an incomplete block at the end.

    Lines end with LF or CRLF, as this server writes them. httpx would also split at Unicode line separators, which the
    text of a fact may contain.
    """
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
