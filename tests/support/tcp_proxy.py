"""A proxy before an HTTP server. It can be down, silent, slow or broken, and work again.

    with HttpProxy(qdrant.url) as proxy:
        ... MEMSTREAM_QDRANT=proxy.url ...
        proxy.become(Down())
        proxy.become(CutResponse(), only=writes)
        proxy.become(Well())

It serves from a thread of its own. A connection handles one request after the other, each in the mode of the moment at
which the request was complete.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from urllib.parse import urlsplit

from .kafka import free_port

HEAD_MAX = 64 * 1024
CHUNK = 512
"""Bytes per chunk of a throttled answer."""


@dataclass(frozen=True, slots=True)
class Well:
    """Every request is passed on."""


@dataclass(frozen=True, slots=True)
class Down:
    """Connections are refused, and open ones are cut."""


@dataclass(frozen=True, slots=True)
class BlackHole:
    """Requests are read and never passed on or answered."""


@dataclass(frozen=True, slots=True)
class Slow:
    """Answers begin late and arrive in small chunks."""

    seconds: float
    bytes_per_second: float = float("inf")


@dataclass(frozen=True, slots=True)
class Answers:
    """The proxy answers instead of the server, with a page of its own, what holds these bytes."""

    status: int = 503
    headers: tuple[str, ...] = ()
    holding: bytes = b""


@dataclass(frozen=True, slots=True)
class CutResponse:
    """The server executes the request; half of its answer arrives."""


@dataclass(frozen=True, slots=True)
class CutRequest:
    """Half of the request reaches the server."""


Mode = Well | Down | BlackHole | Slow | Answers | CutResponse | CutRequest


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `at`: `time.monotonic()` when it was complete; `met`: the proxy's mode for it."""

    method: str
    path: str
    at: float
    met: Mode


Chosen = Callable[[str, str], bool]
"""Selects requests by method and path."""


def every(method: str, path: str) -> bool:
    return True


def writes(method: str, path: str) -> bool:
    """Select Qdrant's calls that change points."""
    what = path.partition("?")[0].rpartition("/")[2]
    return (method == "PUT" and what == "points") or (method == "POST" and what in ("payload", "delete"))


class _ConnectionEnded(Exception):
    """The end of a connection."""


class HttpProxy:
    """A proxy before the server at the http address `upstream`. Its methods may be called from any thread."""

    def __init__(self, upstream: str) -> None:
        address = urlsplit(upstream)
        self._upstream = (address.hostname, address.port)
        self._mode: Mode = Well()
        self._only: Chosen = every
        self._requests: list[Request] = []
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="http-proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.port = free_port()

    # ---- life
    def start(self) -> HttpProxy:
        self._thread.start()
        self._call(self._listen())
        return self

    def close(self) -> None:
        self._call(self._stop_listening())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def __enter__(self) -> HttpProxy:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # ---- what it is, and what it saw
    def become(self, mode: Mode, *, only: Chosen = every) -> None:
        """Change the mode of all requests, or of those that `only` selects. Unanswered requests are included
        where possible.
        """
        self._call(self._become(mode, only))

    def requests(self, *, since: float = 0.0) -> list[Request]:
        with self._lock:
            return [request for request in self._requests if request.at >= since]

    def met(self, mode: type[Mode]) -> int:
        """Count the requests that met this mode."""
        return sum(isinstance(request.met, mode) for request in self.requests())

    # ---- what a subclass may change
    def edit_request(self, request: bytes) -> bytes:
        """Return the request as the server gets it."""
        return request

    def edit_response(self, path: str, response: bytes) -> bytes:
        """Return the answer to a request for `path` as the client gets it."""
        return response

    # ---- in its thread
    def _call(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)  # type: ignore[arg-type]

    async def _become(self, mode: Mode, only: Chosen) -> None:
        was, self._mode, self._only = self._mode, mode, only
        if isinstance(mode, Down):
            await self._stop_listening()
        elif isinstance(was, Down):
            await self._listen()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=HEAD_MAX)

    async def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        upstream: list[asyncio.StreamWriter] = []
        try:
            with contextlib.suppress(_ConnectionEnded, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                server, to_server = await asyncio.open_connection(*self._upstream, limit=HEAD_MAX)
                upstream.append(to_server)
                while True:
                    await self._one(client, answer, server, to_server)
        finally:
            self._connections.discard(task)
            for writer in (answer, *upstream):
                writer.transport.abort()

    async def _one(
        self,
        client: asyncio.StreamReader,
        answer: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        """Pass one request on and its answer back, as the mode of this moment says."""
        request = await _message(client)
        method, path, *_ = request.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        mode = self._mode if self._only(method, path) else Well()
        if isinstance(mode, Answers) and mode.holding not in request:
            mode = Well()
        with self._lock:
            self._requests.append(Request(method, path, time.monotonic(), mode))
        if isinstance(mode, BlackHole):
            await asyncio.Event().wait()
        if isinstance(mode, Answers):
            answer.write(_page(mode))
            await answer.drain()
            return
        if isinstance(mode, CutRequest):
            request = self.edit_request(request)
            to_server.write(request[: len(request) // 2])
            await to_server.drain()
            raise _ConnectionEnded
        to_server.write(self.edit_request(request))
        await to_server.drain()
        response = self.edit_response(path.partition("?")[0], await _message(server))
        if isinstance(mode, CutResponse):
            head = response.index(b"\r\n\r\n") + 4
            answer.write(response[: head + (len(response) - head) // 2])
            await answer.drain()
            raise _ConnectionEnded
        if isinstance(mode, Slow):
            await _send_slowly(answer, response, mode)
        else:
            answer.write(response)
            await answer.drain()


def read_body(message: bytes) -> tuple[bytes, bytes]:
    """Split a message into its head, without the empty line, and its body."""
    head, _, body = message.partition(b"\r\n\r\n")
    return head, body


def with_body(head: bytes, body: bytes) -> bytes:
    """Join head and body; replace the length in a head that names one."""
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length:")]
    if len(lines) < head.count(b"\r\n") + 1:
        lines.append(b"content-length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


async def _message(reader: asyncio.StreamReader) -> bytes:
    """Read a whole request or response, with a Content-Length or without a body."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert not any(line.startswith(b"transfer-encoding:") for line in lines), "the proxy knows no chunks"
    lengths = [int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")]
    return head + await reader.readexactly(lengths[0] if lengths else 0)


async def _send_slowly(answer: asyncio.StreamWriter, response: bytes, slow: Slow) -> None:
    await asyncio.sleep(slow.seconds)
    for place in range(0, len(response), CHUNK):
        answer.write(response[place : place + CHUNK])
        await answer.drain()
        await asyncio.sleep(CHUNK / slow.bytes_per_second)


def _page(mode: Answers) -> bytes:
    body = b"<html><body>no server here</body></html>"
    lines = [f"HTTP/1.1 {mode.status} Scripted", "content-type: text/html", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, *mode.headers, "", ""]).encode() + body
