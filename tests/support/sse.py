"""A reader of server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx


@dataclass(frozen=True)
class Block:
    """One block. A block with only a comment has neither event nor data."""

    id: str | None = None
    event: str | None = None
    data: str | None = None
    comment: str | None = None

    @property
    def json(self) -> Any:
        return json.loads(self.data or "null")


@dataclass
class Stream:
    """An open stream. `last` is the value for Last-Event-ID."""

    answer: httpx.Response
    blocks: list[Block] = field(default_factory=list)
    last: str | None = None

    async def read(self) -> AsyncIterator[Block]:
        found: dict[str, str] = {}
        async for line in self.answer.aiter_lines():
            if line:
                name, _, value = line.partition(":")
                found[name or "comment"] = value.removeprefix(" ")
                continue
            found.pop("retry", None)
            block = Block(**found)
            found = {}
            self.last = block.id or self.last
            self.blocks.append(block)
            yield block

    async def changes(self, count: int, *, within: float = 30.0) -> list[Block]:
        """Read the next changes and skip heartbeats. Fails if the stream ends before."""
        taken: list[Block] = []
        async with asyncio.timeout(within):
            while len(taken) < count:
                block = await anext(self.iterator)
                assert block.event != "end", block
                if block.event not in (None, "position"):
                    taken.append(block)
        return taken

    async def ended(self, *, within: float = 30.0) -> Block:
        """Skip to the block that ends the stream and return it."""
        async with asyncio.timeout(within):
            async for block in self.iterator:
                if block.event == "end":
                    return block
        raise AssertionError(f"the stream ended without a word: {self.blocks[-3:]}")

    def __post_init__(self) -> None:
        self.iterator = self.read()


@asynccontextmanager
async def streaming(
    url: str,
    *,
    path: str = "/v1/facts/updates",
    last: str | None = None,
    headers: Mapping[str, str] | None = None,
    **query: str,
) -> AsyncIterator[Stream]:
    """Open a stream and read its first block. `begin` stands for `from`."""
    if "begin" in query:
        query["from"] = query.pop("begin")
    given = dict(headers or {}) | ({"Last-Event-ID": last} if last is not None else {})
    async with (
        httpx.AsyncClient(base_url=url, timeout=httpx.Timeout(30.0)) as client,
        client.stream("GET", path, params=query or None, headers=given) as answer,
    ):
        if answer.status_code != 200:
            await answer.aread()
            raise httpx.HTTPStatusError(answer.text, request=answer.request, response=answer)
        stream = Stream(answer)
        async with asyncio.timeout(30.0):
            await anext(stream.iterator)
        yield stream
