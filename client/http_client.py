"""memstream's HTTP interface, called: turns in, recall, context, digest and facts out. Every call here may be made
twice (a turn counts once by its turn_id, the others read), so each is tried again while the server is away, within its
time.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Mapping
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, JsonValue, ValidationError

from ..schemas.digests import Digest
from ..schemas.facts import Fact
from ..schemas.recall import RecalledItem
from ..streams.log.port import Position
from .errors import (
    ClientError,
    InvalidTurn,
    Misconfigured,
    NotFound,
    PositionLost,
    Refused,
    TooLarge,
    Unavailable,
    translated,
)
from .turns import TurnLike, checked

WAIT_FIRST, WAIT_MAX = 0.2, 5.0
"""Seconds between two tries, doubled, with full jitter; a server's Retry-After is believed up to WAIT_MAX."""
PAGE = 100
"""Facts of one page."""
AWAY = frozenset({429, 502, 503, 504})
NO_RECORD = "urn:memstream:problem:not-found"
M = TypeVar("M", bound=BaseModel)


class Missing(BaseModel):
    """A part of memory that did not answer."""

    part: str
    why: str


class Recalled(BaseModel):
    """Best first. With something missing it is what could be found, not what there is."""

    items: tuple[RecalledItem, ...]
    missing: tuple[Missing, ...] = ()


class Context(BaseModel):
    """`text` is for the system prompt, as it is: what is remembered stands in it as data."""

    text: str
    tokens: int = 0
    """As they were estimated."""
    missing: tuple[Missing, ...] = ()


class Verbatim(BaseModel):
    """`verbatim_content` None: there is nothing to give, `nothing` says why (whole, gone, damaged)."""

    episode_id: str
    verbatim_content: str | None
    archived_at: datetime | None = None
    sha256: str | None = None
    kept_until: datetime | None = None
    nothing: str | None = None


class Api:
    """Calls of one server. Answers keep fields that this version does not know, in `model_extra`.

    Args:
        http: with the base address and the credential.
        timeout: seconds for one call with all its tries.
    """

    def __init__(self, *, http: httpx.AsyncClient, timeout: float) -> None:
        self.http = http
        self.timeout = timeout

    async def produce(self, turn: TurnLike) -> Position:
        """See `Turns.produce`."""
        with translated():
            _, value = checked(turn)
        answer = await self.call("POST", "/v1/turns", content=value, headers={"content-type": "application/json"})
        written = decoded(_Written, answer)
        return Position(written.topic, written.partition, written.offset)

    async def recall(self, cue: str | None = None, **asked: JsonValue) -> Recalled:
        """What memory has for a cue. `asked` are the fields of `POST /v1/recall`: tenant, user, session, limit …"""
        return decoded(Recalled, await self.call("POST", "/v1/recall", json={"cue": cue, **asked}))

    async def context(self, cue: str | None = None, **asked: JsonValue) -> Context:
        """What memory has, rendered for a prompt. `asked` are the fields of `POST /v1/context`."""
        return decoded(Context, await self.call("POST", "/v1/context", json={"cue": cue, **asked}))

    async def rehydrate(self, episode_id: str, **asked: JsonValue) -> Verbatim:
        """The words of an episode of which a gist is left. `asked`: tenant, ceiling. Each call is logged. Raises
        NotFound for an episode that is not there, or may not be read."""
        where = f"/v1/episodes/{quote(episode_id, safe='')}/verbatim"
        return decoded(Verbatim, await self.call("GET", where, params=asked))

    async def digest(self, **asked: JsonValue) -> Digest | None:
        """The summary of what is known and has happened; None until there is one that may be read. `asked` are the
        parameters of `GET /v1/digest`: tenant, user, scope and id, ceiling."""
        try:
            answer = await self.call("GET", "/v1/digest", params=asked)
        except NotFound:
            return None
        return decoded(Digest, answer)

    async def facts(self, **asked: JsonValue) -> AsyncGenerator[Fact]:
        """Facts as they stand, page by page. `asked` are the parameters of `GET /v1/facts`: tenant, user, state …"""
        params: dict[str, JsonValue] = {"limit": PAGE} | asked
        while True:
            page = decoded(_Page, await self.call("GET", "/v1/facts", params=params))
            for fact in page.items:
                yield fact
            if page.next is None:
                return
            params["cursor"] = page.next

    async def call(self, method: str, path: str, **request: Any) -> httpx.Response:
        """A call that may be made twice. Raises what `refused` makes of the answer."""
        wait = WAIT_FIRST
        last: Exception | str = "no answer"
        try:
            async with asyncio.timeout(self.timeout):
                while True:
                    try:
                        answer = await self.http.request(method, path, **request)
                    except httpx.TransportError as error:
                        last, asked = f"{type(error).__name__} {error}".rstrip(), 0.0
                    else:
                        if answer.is_success:
                            return answer
                        error_ = refused(answer)
                        if answer.status_code not in AWAY:
                            raise error_
                        last, asked = error_, _seconds(answer.headers)
                    await asyncio.sleep(max(asked, random.uniform(0, wait)))
                    wait = min(2 * wait, WAIT_MAX)
        except TimeoutError:
            raise Unavailable(
                f"{self.http.base_url}: {last} (is `memstream serve` up, and the address right?)"
            ) from None


class _Page(BaseModel):
    items: tuple[Fact, ...]
    next: str | None = None


class _Written(BaseModel):
    topic: str
    partition: int
    offset: int


def decoded(model: type[M], answer: httpx.Response) -> M:
    try:
        return model.model_validate_json(answer.content, extra="allow")
    except ValidationError as error:
        raise Misconfigured(f"{answer.url} does not answer as memstream does: {error.error_count()} errors") from None


def refused(answer: httpx.Response) -> ClientError:
    """The exception for an error's problem details (RFC 9457)."""
    try:
        problem = answer.json()
    except ValueError:
        problem = None
    problem = problem if isinstance(problem, Mapping) else {}
    told = str(problem.get("detail") or f"{answer.status_code} {answer.reason_phrase}")
    match answer.status_code:
        case 404 if problem.get("type") == NO_RECORD:
            return NotFound(told)
        case 401 | 403 | 404:
            return Misconfigured(told)
        case 410:
            return PositionLost(told)
        case 413:
            return TooLarge(told)
        case 422 if answer.url.path.endswith("/turns"):
            return InvalidTurn(told)
        case status if status in AWAY:
            return Unavailable(told)
    return Refused(told, status=answer.status_code, problem=problem)


def _seconds(headers: httpx.Headers) -> float:
    told = headers.get("retry-after", "")
    return min(float(told[:4]), WAIT_MAX) if told.isascii() and told.isdigit() else 0.0
