"""Client for an OpenAI-compatible server: it posts JSON and returns the bytes of the response, over persistent
connections.

Address, keys and headers come from the `openai` client. Requests use the aiohttp transport of that client directly,
because the client's own `post` takes twice as long (docs/adr/0008-openai-client-on-its-aiohttp-transport.md). The first
call imports `openai` in a thread, because the import takes 0.25 s and would slow down each start. A reranker that calls
a model imports `openai` at start instead, because a read has too little time for the import. Other modules decode the
responses. streams/engine/error_boundary.py repeats failed calls.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple

import httpx2
from pydantic import JsonValue
from pydantic_core import to_json

from ..schemas.errors import TimedOut, Transient
from .model_proxy import leaves_out_proxy
from .openai_errors import failure_of, is_filtered, is_refusal, shorten, to_transient, without_echo
from .ports import Places

KEEP_ALIVE: Final = 4.0
"""Seconds that an idle connection is kept. uvicorn (vLLM and others) closes it after 5 seconds, and no request may use
a connection that is being closed."""
NO_KEY: Final = "no-key-set"
"""Placeholder key. The `openai` client requires a key, but self-hosted servers often need none."""
JSON: Final = {"Content-Type": "application/json"}
AZURE_VERSION: Final = "api-version"
AZURE_KEY: Final = "api-key"


class RequestRefused(Exception):
    """The server refuses this request (400, 413, 422). The message has the reason."""


class ContentRefused(RequestRefused):
    """A content filter or policy of the server refuses this request. The server refuses every form of this request."""


class NoAnswer(Transient):
    """No response was received. The server may have processed the call and charged for it."""


class AnswerTimedOut(NoAnswer, TimedOut):
    """No response was received within the time limit of the call."""


class _ArrivalOrder:
    """`Places` in arrival order, for a program that serves one tenant at a time."""

    def __init__(self, places: int) -> None:
        self._free = asyncio.Semaphore(places)

    def place(self, tenant_id: str) -> AbstractAsyncContextManager[None]:
        return self._free


class _Connection(NamedTuple):
    """The aiohttp transport of an `openai` client, with the address and headers for each request."""

    transport: httpx2.AsyncClient
    address: httpx2.URL
    """Base address with the query parameters of each request."""
    headers: httpx2.Headers


class OpenAIServer:
    """One model server.

    Error messages contain `component` (`model`, `embedder`) and `setting` (the variable that names the model).
    `timeout` is in seconds for one call, from the start of the request to the end of the response. It excludes the wait
    for a place in `places`. `concurrency` is the maximum number of connections. `places` limits the concurrent calls;
    None: `concurrency` calls in arrival order. `headers` and `query` are sent with each request. If the query has
    `api-version`, the key is also sent in the header `api-key`, because Azure OpenAI requires this header.
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
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> None:
        _check_settings(base_url, api_key)
        self._uses_environment = not leaves_out_proxy(base_url)
        self._model = model
        self._headers = dict(headers or {})
        self._query = dict(query or {})
        self._component = component
        self._setting = setting
        self._key = (api_key or "").strip() or NO_KEY
        self._base_url = base_url
        self._timeout = timeout
        self._places = places or _ArrivalOrder(concurrency)
        self._limits = httpx2.Limits(
            max_connections=concurrency, max_keepalive_connections=concurrency, keepalive_expiry=KEEP_ALIVE
        )
        self._connection: _Connection | None = None

    async def post(self, path: str, body: Mapping[str, JsonValue], *, tenant_id: str) -> bytes:
        """Post the body and return the body of the response. Raise `RequestRefused` when the server refuses the
        request, and `Transient` for all other failures: outage, time-out, overload, wrong settings."""
        data = encode_json(body)
        transport, address, headers = await self._connected()
        url = address.copy_with(path=f"{address.path.rstrip('/')}/{path.removeprefix('/')}")
        async with self._places.place(tenant_id):
            try:
                async with asyncio.timeout(self._timeout):
                    answer = await transport.send(httpx2.Request("POST", url, headers=headers, content=data))
            except TimeoutError as error:
                raise AnswerTimedOut(
                    self._component,
                    f"{self._model} did not answer within {self._timeout:g} s",
                    remedy="raise MEMSTREAM_MODEL_TIMEOUT if the model is just slow",
                ) from error
            except (httpx2.HTTPError, OSError) as error:
                raise self._unanswered(error) from error
        if not answer.is_success:
            raise self._refused(answer, body)
        return answer.content

    async def _connected(self) -> _Connection:
        """Return the connection. The first call creates it."""
        if self._connection is None:
            await asyncio.to_thread(importlib.import_module, "openai")
            self._connection = self._connection or self._connect()  # another call may have connected
        return self._connection

    def _connect(self) -> _Connection:
        """Create the transport with the address and headers of the `openai` client, which reads environment
        variables."""
        import openai

        transport = openai.DefaultAioHttpClient(  # without a time-out: post() limits the whole call
            timeout=None, limits=self._limits, trust_env=self._uses_environment
        )
        client = openai.AsyncOpenAI(api_key=self._key, base_url=self._base_url, http_client=transport)
        headers = httpx2.Headers(transport.headers)
        given = {**client.default_headers, **client.auth_headers}
        headers.update({name: value for name, value in given.items() if isinstance(value, str)})
        headers.update(self._headers)
        address = httpx2.URL(str(client.base_url))
        address = address.copy_merge_params(self._query) if self._query else address
        if AZURE_VERSION in address.params and self._key != NO_KEY:
            headers[AZURE_KEY] = self._key
        return _Connection(transport, address, headers)

    def post_blocking(self, path: str, body: Mapping[str, JsonValue]) -> bytes:
        """Post like `post`, but block. Used for the one call before the event loop runs (the dimension of an
        embedder)."""
        import openai  # a lazy import: see `_connected`

        http = None if self._uses_environment else openai.DefaultHttpxClient(trust_env=False)
        with openai.OpenAI(
            api_key=self._key, base_url=self._base_url, timeout=self._timeout, max_retries=0, http_client=http
        ) as client:
            try:
                return client.post(
                    path,
                    content=encode_json(body),
                    options={"headers": JSON},
                    cast_to=openai.HttpxBinaryResponseContent,
                ).content
            except openai.APIStatusError as error:
                raise self._refused(error.response, body) from error
            except (openai.APIError, httpx2.HTTPError) as error:
                raise self._unanswered(error.__cause__ or error) from error

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.transport.aclose()

    def _refused(self, answer: httpx2.Response, body: Mapping[str, JsonValue]) -> Transient | RequestRefused:
        """Return the error for a response with a status above 299."""
        failure = without_echo(failure_of(answer.status_code, answer.headers, answer.content), body)
        if is_filtered(failure):
            return ContentRefused(shorten(failure.message))
        if is_refusal(failure):
            return RequestRefused(shorten(failure.message))
        return to_transient(failure, component=self._component, model=self._model, setting=self._setting)

    def _unanswered(self, error: BaseException) -> Transient:
        """Return the error for a request without a response."""
        why = shorten(str(error) or type(error).__name__, limit=200)
        not_made = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
        kind = Transient if not_made else NoAnswer
        return kind(
            self._component,
            f"the server of {self._model} cannot be reached: {why}",
            remedy="check OPENAI_BASE_URL and that the server is up",
        )


def _check_settings(base_url: str | None, api_key: str | None) -> None:
    """Check at start-up that a request can contain these settings. Without this check, the first turn would fail."""
    key = (api_key or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ValueError("OPENAI_API_KEY has characters that no key has: copy it again")
    try:
        httpx2.URL(base_url or "")
    except httpx2.InvalidURL as error:
        why = "" if "@" in (base_url or "") else f": {error}"  # with "@", the error may repeat a password
        raise ValueError(f"OPENAI_BASE_URL is not a valid address{why}") from None


def encode_json(body: Mapping[str, JsonValue]) -> bytes:
    """Encode the body as JSON."""
    return to_json(body)
