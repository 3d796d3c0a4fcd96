"""Server on 127.0.0.1 that gives other processes access to the embedded engine. The holder of a folder runs it.

The server announces itself in the folder (`qdrant.endpoint`: url, token, pid; readable by the owner only). A command
that finds the folder in use connects to the server with the ordinary client. The server runs on the holder's event
loop, so the engine needs no locks. A thread would not be faster, because the engine's calls hold the GIL.

`python -m memstream.adapters.vectors.embedded.loopback --folder DIR` serves a folder until SIGTERM, and prints one line
of JSON (`url`, `token`) when it is ready. If QDRANT_API_KEY is set, it is the required token.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import click
import structlog
from aiohttp import web

from ...durable_files import write_atomically
from ...folder_lock import FolderLock
from . import rest
from .edge import EdgeEngine

log = structlog.get_logger(__name__)

ENDPOINT_FILE = "qdrant.endpoint"
ENGINE_FOLDER = "qdrant"
"""Sub-folder for the engine, because the held folder also has the log of the embedded broker."""
HOST = "127.0.0.1"
LARGEST_REQUEST = 64 * 1024 * 1024
HELD_EXIT = 2


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address and token of a folder's engine."""

    url: str
    token: str
    pid: int


def read_endpoint(folder: Path) -> Endpoint | None:
    """Read the endpoint that the folder announces. Return None when there is no readable announcement. The endpoint may
    belong to a process that has died."""
    try:
        announced = json.loads((folder / ENDPOINT_FILE).read_text(encoding="utf-8"))
        return Endpoint(url=str(announced["url"]), token=str(announced["token"]), pid=int(announced["pid"]))
    except (FileNotFoundError, PermissionError, ValueError, KeyError, TypeError):
        return None


class LoopbackServer:
    """HTTP server for an open engine. The caller keeps ownership of the engine."""

    def __init__(self, *, engine: EdgeEngine, folder: Path, token: str | None = None, port: int = 0) -> None:
        """Prepare a server that announces its endpoint in `folder`. Without `token`, a new token is generated. Port 0
        means any free port."""
        self._engine = engine
        self._folder = folder
        self._token = token or secrets.token_urlsafe(32)
        self._port = port
        self._runner: web.AppRunner | None = None

    async def start(self) -> Endpoint:
        """Listen, then announce the endpoint. Raise OSError when the port is in use."""
        application = web.Application(middlewares=[self._let_in], client_max_size=LARGEST_REQUEST)
        application.add_routes(rest.routes(self._engine))
        runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await runner.setup()
        self._runner = runner
        await web.TCPSite(runner, HOST, self._port).start()
        self._port = runner.addresses[0][1]
        endpoint = Endpoint(url=f"http://{HOST}:{self._port}", token=self._token, pid=os.getpid())
        announced = {"url": endpoint.url, "token": endpoint.token, "pid": endpoint.pid}
        write_atomically(self._folder / ENDPOINT_FILE, json.dumps(announced).encode())
        log.info("qdrant_loopback_serving", url=endpoint.url)
        return endpoint

    async def stop(self) -> None:
        """Remove the announcement, then stop listening. No effect when called again."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        (self._folder / ENDPOINT_FILE).unlink(missing_ok=True)
        await runner.cleanup()

    @web.middleware
    async def _let_in(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        given = request.headers.get("api-key", "")
        # A header that is not UTF-8 has lone surrogates here, which a strict encoding rejects.
        if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self._token.encode()):
            return rest.error_response(401, "Must provide an API key or an Authorization bearer token")
        return await handler(request)


async def serve(folder: Path, *, port: int, token: str | None, with_stdin: bool = False) -> None:
    """Serve a folder that this process holds, until SIGTERM or SIGINT, or until standard input ends."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    if with_stdin:
        loop.add_reader(sys.stdin.fileno(), stopping.set)
    engine = EdgeEngine(folder=folder / ENGINE_FOLDER)
    server = LoopbackServer(engine=engine, folder=folder, token=token, port=port)
    try:
        endpoint = await server.start()
        print(json.dumps({"url": endpoint.url, "token": endpoint.token}), flush=True)
        await stopping.wait()
    finally:
        await server.stop()
        await engine.close()


@click.command()
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), required=True, help="The folder to serve.")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, show_default=True, help="0 is any free port.")
@click.option("--with-stdin", is_flag=True, help="Also exit when standard input ends (with the parent process).")
def main(folder: Path, port: int, with_stdin: bool) -> None:
    """Serve a folder's Qdrant engine on 127.0.0.1 until SIGTERM."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with FolderLock(folder=folder, purpose="qdrant loopback") as lock:
        if not lock.try_acquire():
            click.echo(f"{folder} is held by {lock.holder()}", err=True)
            raise SystemExit(HELD_EXIT)
        asyncio.run(serve(folder, port=port, token=os.environ.get("QDRANT_API_KEY"), with_stdin=with_stdin))


if __name__ == "__main__":
    main()
