"""Client for an OpenAI-compatible server: it posts JSON and returns the bytes of the answer. One client keeps its
connections alive.

It is aiohttp alone. The `openai` client costs four times as much a call and 0.3 s at the start
(docs/adr/0054-models-are-asked-by-aiohttp.md). Other modules decode the answers; streams/engine/error_boundary.py
retries.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

import aiohttp
import httpx
from pydantic import JsonValue
from pydantic_core import to_json

from ..schemas.errors import Transient
from .openai_errors import failure_of, is_filtered, is_refusal, shorten, to_transient, without_echo
from .ports import Places

KEEP_ALIVE: Final = 4.0
"""Seconds that an idle connection is kept. uvicorn (vLLM and others) closes it after 5, and no request may go out on a
connection that is being closed."""
OPENAI: Final = "https://api.openai.com/v1"
JSON: Final = {"Content-Type": "application/json"}
ACCOUNT: Final = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
"""Header → the variable by which users of OpenAI's own clients name who pays."""


class RequestRefused(Exception):
    """The server refuses this request (400, 413, 422). The message says why."""


class ContentRefused(RequestRefused):
    """A content filter or policy of the server refuses this request, in whatever form it is sent."""


class NoAnswer(Transient):
    """No answer was received. The server may have handled the call and charged for it."""


class _FirstCome:
    """`Places` for a program that serves one tenant after the other."""

    def __init__(self, places: int) -> None:
        self._free = asyncio.Semaphore(places)

    def place(self, tenant_id: str) -> AbstractAsyncContextManager[None]:
        return self._free


class OpenAIServer:
    """One server with models.

    Error messages contain `component` (`model`, `embedder`) and `setting` (the variable that names the model).
    `timeout` is in seconds for one call, from the first byte to the last; waiting for a free connection does not count.
    `concurrency` is the limit of connections, `places` that of calls at once. None: as many, first come first served.
    """

    def __init__(
        self,
        *,
        model: str,
        component: str,
        setting: str,
        api_key: str | None,
        base_url: str | None,
        timeout: float,
        concurrency: int,
        places: Places | None = None,
    ) -> None:
        self._model = model
        self._component = component
        self._setting = setting
        self._base = (base_url or OPENAI).rstrip("/")
        self._headers = {**JSON, **_account(api_key)}
        self._timeout = timeout
        self._concurrency = concurrency
        self._places = places or _FirstCome(concurrency)
        self._session: aiohttp.ClientSession | None = None

    async def post(self, path: str, body: Mapping[str, JsonValue], *, tenant_id: str) -> bytes:
        """Post the body and return the body of the answer. Raises `RequestRefused`, and `Transient` for everything
        else: outage, time-out, overload, wrong settings."""
        data = encode_json(body)
        async with self._places.place(tenant_id):
            try:
                async with (
                    asyncio.timeout(self._timeout),
                    self._opened().post(f"{self._base}{path}", data=data) as response,
                ):
                    answer = await response.read()
            except TimeoutError as error:
                raise NoAnswer(
                    self._component,
                    f"{self._model} did not answer within {self._timeout:g} s",
                    remedy="raise MEMSTREAM_MODEL_TIMEOUT if the model is just slow",
                ) from error
            except (aiohttp.ClientError, OSError) as error:
                raise self._unreached(error, made=not isinstance(error, aiohttp.ClientConnectorError)) from error
        return self._accepted(response.status, response.headers, answer, body)

    def post_blocking(self, path: str, body: Mapping[str, JsonValue]) -> bytes:
        """Post as `post` does, but blocking. Used for the one call before the event loop runs (the dimension of an
        embedder)."""
        try:
            response = httpx.post(
                f"{self._base}{path}",
                content=encode_json(body),
                headers=self._headers,
                timeout=self._timeout,
                follow_redirects=True,
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreached(error, made=not isinstance(error, httpx.ConnectError)) from error
        return self._accepted(response.status_code, response.headers, response.content, body)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """Return the session. It is opened with the first call, in the event loop of that call."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=self._concurrency,
                    keepalive_timeout=KEEP_ALIVE,
                    # certifi's roots, or those that SSL_CERT_FILE names
                    ssl=httpx.create_ssl_context() if self._base.startswith("https:") else True,
                ),
                timeout=aiohttp.ClientTimeout(total=None),  # post() limits the whole call
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
                trust_env=True,  # HTTPS_PROXY
            )
        return self._session

    def _accepted(self, status: int, headers: Mapping[str, str], answer: bytes, body: Mapping[str, JsonValue]) -> bytes:
        """Return the answer, or raise what the server refuses."""
        if 200 <= status < 300:
            return answer
        failure = without_echo(failure_of(status, headers, answer), body)
        if is_filtered(failure):
            raise ContentRefused(shorten(failure.message))
        if is_refusal(failure):
            raise RequestRefused(shorten(failure.message))
        raise to_transient(failure, component=self._component, model=self._model, setting=self._setting)

    def _unreached(self, error: Exception, *, made: bool) -> Transient:
        """Return the error of a call without an answer. `made`: it may have reached the server."""
        why = shorten(str(error) or type(error).__name__, limit=200)
        kind = NoAnswer if made else Transient
        return kind(
            self._component,
            f"the server of {self._model} cannot be reached: {why}",
            remedy="check OPENAI_BASE_URL and that the server is up",
        )


def _account(api_key: str | None) -> dict[str, str]:
    """Return the headers that say who calls. Servers that users run themselves often need none."""
    key = (api_key or "").strip()
    named = {header: os.environ.get(variable, "").strip() for header, variable in ACCOUNT.items()}
    named["Authorization"] = f"Bearer {key}" if key else ""
    return {header: value for header, value in named.items() if value}


def encode_json(body: Mapping[str, JsonValue]) -> bytes:
    """Encode the body as JSON."""
    return to_json(body)
