"""An OpenAI-compatible server: JSON posted to it, its answer's bytes back. One client session, connections kept alive.

aiohttp, not the `openai` package: a call costs 0.25 ms of CPU instead of 4 to 17, which grow with the calls in flight
(ADR 0008). Of that package we used the transport only; answers were decoded by models of our own already.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Final

import aiohttp
import httpx
from pydantic import JsonValue

from .. import __version__
from ..schemas.errors import Transient
from .openai_wire import Failure, failure_of, is_refusal, shortened, to_transient

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"
KEEP_ALIVE: Final = 4.0
"""Seconds that an idle connection is kept: less than the 5 after which uvicorn (vLLM and others) closes it, so that
no request goes out on a connection that is being closed."""


class Refused(Exception):
    """The server will not take this request as it is (400, 413, 422); says why."""


class OpenAIServer:
    """Where a model is served.

    `component` (`model`, `embedder`) and `setting` (the variable that names the model) stand in errors. `timeout` is in
    seconds, for one call from first byte to last; waiting for a place does not count. `concurrency` is the limit of
    calls under way.
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
    ) -> None:
        self._model = model
        self._component = component
        self._setting = setting
        self._base_url = (base_url or DEFAULT_BASE_URL).rstrip("/")
        self._headers = {"Content-Type": "application/json", "User-Agent": f"memstream/{__version__}"}
        if api_key and api_key.strip():  # servers of one's own often need none
            self._headers["Authorization"] = f"Bearer {api_key.strip()}"
        self._timeout = timeout
        self._concurrency = concurrency
        self._places = asyncio.Semaphore(concurrency)
        self._session: aiohttp.ClientSession | None = None

    async def post(self, path: str, body: Mapping[str, JsonValue]) -> bytes:
        """The body of the answer. Raises `Refused`, and `Transient` for all else: away, slow, busy, wrong settings."""
        data = _encoded(body)
        async with self._places:
            try:
                async with asyncio.timeout(self._timeout):
                    async with self._open().post(f"{self._base_url}{path}", data=data) as response:
                        answer = await response.read()
            except TimeoutError as error:
                raise Transient(
                    self._component,
                    f"{self._model} did not answer within {self._timeout:g} s",
                    remedy="raise MEMSTREAM_MODEL_TIMEOUT if the model is just slow",
                ) from error
            except aiohttp.ClientError as error:
                raise self._unreachable(error) from error
        if response.status >= 300:
            raise self._raised(failure_of(response.status, response.headers, answer))
        return answer

    def post_blocking(self, path: str, body: Mapping[str, JsonValue]) -> bytes:
        """As `post`, for the one question that is asked before a loop goes on (an embedder's dimension)."""
        url = f"{self._base_url}{path}"
        try:
            response = httpx.post(
                url, content=_encoded(body), headers=self._headers, timeout=self._timeout, follow_redirects=True
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from error
        if response.status_code >= 300:
            raise self._raised(failure_of(response.status_code, response.headers, response.content))
        return response.content

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        """Made with the first call: it belongs to the running loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # httpx's context: its trusted roots, SSL_CERT_FILE and SSL_CERT_DIR, as towards Qdrant.
                connector=aiohttp.TCPConnector(
                    limit=self._concurrency, keepalive_timeout=KEEP_ALIVE, ssl=httpx.create_ssl_context()
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None),  # ours is around the whole call
                trust_env=True,
            )
        return self._session

    def _raised(self, failure: Failure) -> Transient | Refused:
        if is_refusal(failure):
            return Refused(shortened(failure.message))
        return to_transient(failure, component=self._component, model=self._model, setting=self._setting)

    def _unreachable(self, error: Exception) -> Transient:
        why = shortened(str(error) or type(error).__name__, limit=200)
        return Transient(
            self._component,
            f"the server of {self._model} cannot be reached: {why}",
            remedy="check OPENAI_BASE_URL and that the server is up",
        )


def _encoded(body: Mapping[str, JsonValue]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
