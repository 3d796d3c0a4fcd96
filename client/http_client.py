"""Client of memstream's HTTP interface: it sends turns, reads memory and edits it (edits.py).

While the server is unavailable, the client repeats a call until the call's timeout. This is safe: memory counts a turn
once by its `turn_id` and an edit once by its idempotency key, and all other calls only read.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import httpx
from pydantic import BaseModel, Field, JsonValue

from ..schemas.digests import Digest
from ..schemas.export import FileFormat
from ..schemas.facts import Fact
from ..schemas.imports import ImportReport
from ..schemas.profile import Profile
from ..schemas.recall import RecalledItem
from ..schemas.working_set import StoredMessage
from ..streams.log.port import Position
from .answers import decode, long_names
from .edits import Edits
from .errors import (
    ClientError,
    InvalidTurn,
    Misconfigured,
    NotFound,
    PositionLost,
    Refused,
    TooLarge,
    Unavailable,
    translate_errors,
)
from .export import ExportCalls, export_lines
from .export_file import export_to_file
from .imports import import_file
from .turns import Privacy, TurnLike, encode_turn

WAIT_FIRST, WAIT_MAX = 0.2, 5.0
"""Seconds between two attempts, doubled each time, with full jitter. Retry-After is respected up to WAIT_MAX."""
PAGE = 100
"""Facts per page."""
TURN_PAGE = 50
"""Turns per page."""
RETRYABLE = frozenset({429, 502, 503, 504})
"""Status codes after which the client repeats a call."""
NO_RECORD = "urn:memstream:problem:not-found"


class Missing(BaseModel):
    """Part of memory that did not answer, and the reason."""

    part: str
    why: str


class Recalled(BaseModel):
    """Answer of recall, best item first. If parts are `missing`, the items come only from the other parts."""

    items: tuple[RecalledItem, ...]
    missing: tuple[Missing, ...] = ()


class Context(BaseModel):
    """Context for a system prompt. Use `text` unchanged: it frames memory as data."""

    text: str
    tokens: int = 0
    """Estimated number of tokens in `text`."""
    missing: tuple[Missing, ...] = ()


class Verbatim(BaseModel):
    """Original text of an episode. If `verbatim_content` is None, `nothing` has the reason: whole, gone or damaged."""

    episode_id: str
    verbatim_content: str | None
    archived_at: datetime | None = None
    sha256: str | None = None
    kept_until: datetime | None = None
    nothing: str | None = None


class Erasure(BaseModel):
    """State of an erasure: open or closed. An open erasure may have the reason `why` it waits; a closed one has its
    receipt."""

    erasure_id: str
    tenant_id: str
    state: str
    why: str = ""
    receipt: dict[str, JsonValue] | None = None


class SaidTurn(BaseModel):
    """Turn of the session log, without messages above the caller's ceiling."""

    turn_id: str
    user_id: str
    session_id: str
    occurred_at: datetime
    messages: tuple[StoredMessage, ...]


class StatementReport(BaseModel):
    """Outcome of one statement of a turn: `status`, and the reason as a sentence."""

    subject: str
    content: str
    status: str
    why: str
    fact_id: str | None = None
    other_fact_id: str | None = None
    closes: tuple[str, ...] = ()


class TurnReport(BaseModel):
    """Progress of a turn and the outcome of its statements. `stage` is unknown, unread, waiting, refused, observed or
    reflected."""

    turn_id: str
    stage: str
    why: str | None = None
    statements: tuple[StatementReport, ...] = ()


class Api(Edits):
    """Calls to one server. Answers keep unknown fields in `model_extra`.

    Args:
        http: HTTP client with base address and credential.
        timeout: seconds for one call including its retries.
        privacy: policy that masks secrets in turns before they are sent.
    """

    def __init__(self, *, http: httpx.AsyncClient, timeout: float, privacy: Privacy = "default") -> None:
        self.http = http
        self._privacy = privacy
        self.timeout = timeout

    async def turn(self, /, turn_id: str, *, session_id: str, **fields: JsonValue) -> TurnReport:
        """Read what became of a turn. `fields` are the parameters of `GET /v1/turns/{turn_id}`: tenant_id, user_id …

        Raises NotFound for a turn that the server does not know, or that the caller may not read.
        """
        path, params = f"/v1/turns/{quote(turn_id, safe='')}", long_names(fields) | {"session_id": session_id}
        return decode(_TurnReports, await self.call("GET", path, params=params)).items[0]

    async def produce(self, turn: TurnLike) -> Position:
        """See `Turns.produce`."""
        with translate_errors():
            _, value = encode_turn(turn, self._privacy)
        answer = await self.call("POST", "/v1/turns", content=value, headers={"content-type": "application/json"})
        written = decode(_Written, answer)
        return Position(written.topic, written.partition, written.offset)

    async def erase(self, user_id: str, **fields: JsonValue) -> Erasure:
        """Begin to erase a user for ever. Memory ignores the user from the answer on; follow the rest by `erasure`.

        `fields` is tenant_id. Needs the scope memory:erase.
        """
        body = long_names(fields) | {"user_id": user_id}
        return decode(Erasure, await self.call("POST", "/v1/erasures", json=body))

    async def erasure(self, erasure_id: str) -> Erasure:
        """Read the state of an erasure, and its receipt. Raises NotFound for an unknown erasure."""
        return decode(Erasure, await self.call("GET", f"/v1/erasures/{quote(erasure_id, safe='')}"))

    async def recall(self, cue: str | None = None, **fields: JsonValue) -> Recalled:
        """Recall memory for a cue. `fields` are the fields of `POST /v1/recall`: tenant_id, user_id, session_id …"""
        return decode(Recalled, await self.call("POST", "/v1/recall", json={"cue": cue, **long_names(fields)}))

    async def context(self, cue: str | None = None, **fields: JsonValue) -> Context:
        """Render memory for a prompt. `fields` are the fields of `POST /v1/context`."""
        return decode(Context, await self.call("POST", "/v1/context", json={"cue": cue, **long_names(fields)}))

    async def rehydrate(self, episode_id: str, **fields: JsonValue) -> Verbatim:
        """Read the original text of an episode that was reduced to a gist. The server logs each call.

        `fields` are tenant_id and ceiling. Raises NotFound for an episode that does not exist or may not be read.
        """
        path = f"/v1/episodes/{quote(episode_id, safe='')}/verbatim"
        return decode(Verbatim, await self.call("GET", path, params=long_names(fields)))

    async def digest(self, **fields: JsonValue) -> Digest | None:
        """Read the digest, a summary of an owner's memory. Return None if there is no digest that the caller may read.

        `fields` are the parameters of `GET /v1/digest`: tenant_id, user_id, scope and id, ceiling.
        """
        try:
            answer = await self.call("GET", "/v1/digest", params=long_names(fields))
        except NotFound:
            return None
        return decode(Digest, answer)

    async def profile(self, **fields: JsonValue) -> Profile:
        """Read the current values of a subject's slots, each with the id of its fact.

        `fields` are the parameters of `GET /v1/profile`: tenant_id, user_id, subject, slot, as_of …
        """
        return decode(Profile, await self.call("GET", "/v1/profile", params=long_names(fields)))

    async def facts(self, **fields: JsonValue) -> AsyncGenerator[Fact]:
        """Yield facts, page by page; by default active facts.

        `fields` are the parameters of `GET /v1/facts`: tenant_id, user_id, state …
        """
        params: dict[str, JsonValue] = {"limit": PAGE} | long_names(fields)
        while True:
            page = decode(_Page, await self.call("GET", "/v1/facts", params=params))
            for fact in page.items:
                yield fact
            if page.next is None:
                return
            params["cursor"] = page.next

    async def fact(self, /, fact_id: str, **fields: JsonValue) -> Fact:
        """Read a fact. `fields` are tenant_id and ceiling. Raises NotFound for a fact that the caller may not read, or
        that is forgotten or quarantined."""
        path = f"/v1/facts/{quote(fact_id, safe='')}"
        return decode(Fact, await self.call("GET", path, params=long_names(fields)))

    async def session_turns(self, /, session_id: str, **fields: JsonValue) -> AsyncGenerator[SaidTurn]:
        """Yield the turns of a session, newest first, page by page. `fields` are tenant_id, user_id, agent_id and
        ceiling."""
        path = f"/v1/sessions/{quote(session_id, safe='')}/turns"
        params: dict[str, JsonValue] = {"limit": TURN_PAGE} | long_names(fields)
        while True:
            page = decode(_TurnPage, await self.call("GET", path, params=params))
            for turn in page.items:
                yield turn
            if page.next is None:
                return
            params["cursor"] = page.next

    def export(self, **fields: JsonValue) -> AsyncGenerator[bytes]:
        """Yield the lines of an export (NDJSON), each with its line end. The last line has the kind `end`.

        A broken connection is opened again, and the export continues after the last whole page. `fields` are the
        parameters of `GET /v1/export`: tenant_id, user_id, ceiling, embeddings, conversations. Raises Unavailable if
        the server sends nothing for the time limit of a call.
        """
        return export_lines(ExportCalls(self.http, self.timeout, error_of), long_names(fields))

    async def export_file(self, path: str | Path, /, *, format: FileFormat = "ndjson", **fields: JsonValue) -> None:
        """Write an export to a new file, or to a folder of notes (markdown, obsidian). See `export` for `fields`.

        It gets its name when it is complete. Raises FileExistsError if it exists.
        """
        await export_to_file(self.export(**fields), Path(path), format)

    async def import_file(self, path: str | Path, /, **fields: JsonValue) -> ImportReport:
        """Import a file of an export or of another memory, in parts. A part is sent again until the server has
        answered; records that memory has are skipped.

        `fields` are the parameters of `POST /v1/import`: tenant_id, user_id, dedup, dry_run, format, trust.
        Raises ImportRefused for a file of no known format.
        """
        return await import_file(Path(path), self.call, long_names(fields))

    async def call(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Send a request, and repeat it while the server is unavailable. Raises the error that `error_of` returns."""
        wait = WAIT_FIRST
        last: Exception | str = "no answer"
        try:
            async with asyncio.timeout(self.timeout):
                while True:
                    try:
                        answer = await self.http.request(method, path, **request)
                    except httpx.TransportError as error:
                        last, retry_after = f"{type(error).__name__} {error}".rstrip(), 0.0
                    else:
                        if answer.is_success:
                            return answer
                        problem = error_of(answer)
                        if answer.status_code not in RETRYABLE:
                            raise problem
                        last, retry_after = problem, _retry_after(answer.headers)
                    await asyncio.sleep(max(retry_after, random.uniform(0, wait)))
                    wait = min(2 * wait, WAIT_MAX)
        except TimeoutError:
            raise Unavailable(
                f"{self.http.base_url}: {last} (check that `memstream serve` runs and that the address is right)"
            ) from None


class _Page(BaseModel):
    items: tuple[Fact, ...]
    next: str | None = None


class _TurnReports(BaseModel):
    items: Annotated[tuple[TurnReport, ...], Field(min_length=1)]


class _TurnPage(BaseModel):
    items: tuple[SaidTurn, ...]
    next: str | None = None


class _Written(BaseModel):
    topic: str
    partition: int
    offset: int


def error_of(answer: httpx.Response) -> ClientError:
    """Return the exception for an error answer with problem details (RFC 9457)."""
    try:
        problem = answer.json()
    except ValueError:
        problem = None
    problem = problem if isinstance(problem, Mapping) else {}
    detail = str(problem.get("detail") or f"{answer.status_code} {answer.reason_phrase}")
    if answer.has_redirect_location:
        return Misconfigured(_redirect(answer))
    match answer.status_code:
        case 404 if problem.get("type") == NO_RECORD:
            return NotFound(detail)
        case 401 | 403 | 404:
            return Misconfigured(detail)
        case 410:
            return PositionLost(detail)
        case 413:
            return TooLarge(detail)
        case 422 if answer.url.path.endswith("/turns"):
            return InvalidTurn(detail)
        case status if status in RETRYABLE:
            return Unavailable(detail)
    return Refused(detail, status=answer.status_code, problem=problem)


def _redirect(answer: httpx.Response) -> str:
    """Return an error message that shows the target of a redirect. The query of the target is left out, because it may
    contain a secret.

    The client follows no redirect: a POST would become a GET, and the token would go to another server.
    """
    here = answer.url.copy_with(userinfo=b"", query=None, fragment=None)
    there = str(answer.url.join(answer.headers["location"]).copy_with(userinfo=b"", query=None, fragment=None))
    base = there.removesuffix(here.path)
    what_to_do = f"connect to {base}" if base != there else "connect to the address of memstream itself"
    return f"{here} answers {answer.status_code} {answer.reason_phrase}, a redirect to {there}: {what_to_do}"


def _retry_after(headers: httpx.Headers) -> float:
    """Return the seconds in Retry-After, at most WAIT_MAX, or 0 if it is not a number of seconds."""
    text = headers.get("retry-after", "")
    return min(float(text[:4]), WAIT_MAX) if text.isascii() and text.isdigit() else 0.0
