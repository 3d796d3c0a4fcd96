"""Export of memory over HTTP, which continues after a broken connection."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import httpx
from pydantic import JsonValue

from .errors import ClientError, Misconfigured, Unavailable

PATH: Final = "/v1/export"
SILENCE: Final = 60.0
"""Seconds without a byte after which a connection counts as broken."""
WAIT_FIRST, WAIT_MAX = 0.2, 5.0
"""Seconds between two attempts, doubled each time, with full jitter."""


@dataclass(frozen=True, slots=True)
class ExportCalls:
    """The HTTP client of one server, the seconds for one call, and the exception for an error answer."""

    http: httpx.AsyncClient
    timeout: float
    error_of: Callable[[httpx.Response], ClientError]


async def export_lines(calls: ExportCalls, fields: Mapping[str, JsonValue]) -> AsyncGenerator[bytes]:
    """Yield the lines of an export. Lines are yielded page by page, so that no line comes twice after a broken
    connection."""
    cursor: str | None = None
    wait, until = WAIT_FIRST, time.monotonic() + calls.timeout
    while True:
        last: Exception | str = "the answer ended early"
        page: list[bytes] = []
        try:
            async with aclosing(_answer(calls, fields, cursor)) as lines:
                async for line in lines:
                    kind, token = _kind_of(line)
                    if kind == "cursor":
                        for each in page:
                            yield each
                        page, cursor = [], token
                        wait, until = WAIT_FIRST, time.monotonic() + calls.timeout
                        continue
                    page.append(line)
                    if kind == "end":
                        for each in page:
                            yield each
                        return
        except (httpx.TransportError, Unavailable) as error:
            last = error
        if time.monotonic() > until:
            raise Unavailable(f"{calls.http.base_url}: the export stopped: {last or type(last).__name__}")
        await asyncio.sleep(random.uniform(0, wait))
        wait = min(2 * wait, WAIT_MAX)


async def _answer(calls: ExportCalls, fields: Mapping[str, Any], cursor: str | None) -> AsyncGenerator[bytes]:
    """Yield the lines of one answer, each with its line end. An incomplete last line is dropped."""
    params = {**fields, "format": "ndjson", "cursors": True} | ({} if cursor is None else {"cursor": cursor})
    silence = httpx.Timeout(calls.timeout, read=SILENCE)
    async with calls.http.stream("GET", PATH, params=params, timeout=silence) as answer:
        if not answer.is_success:
            await answer.aread()
            raise calls.error_of(answer)
        async for line in _lines(answer.aiter_bytes()):
            yield line


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    rest: list[bytes] = []
    async for chunk in chunks:
        *lines, last = chunk.split(b"\n")
        for line in lines:
            yield b"".join((*rest, line, b"\n"))
            rest = []
        rest += [last] if last else []


def _kind_of(line: bytes) -> tuple[str, str | None]:
    """Return the kind of a line, and the cursor of a line `cursor`. Raises Misconfigured for anything else than an
    export."""
    if line.startswith(b'{"kind":"') and not line.startswith(b'{"kind":"cursor"'):
        return line[9 : line.index(b'"', 9)].decode(), None
    try:
        fields = json.loads(line)
        return str(fields["kind"]), str(fields["cursor"]) if fields["kind"] == "cursor" else None
    except (ValueError, TypeError, KeyError):
        raise Misconfigured("this address does not answer as memstream: a line is not of an export") from None
