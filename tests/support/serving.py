"""`memstream serve` as a process."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx

from .cli_process import COMMAND, Memstream
from .polling import wait_for_blocking

DEADLINE = 60.0
Started = TypeVar("Started", bound="Serving")


class Serving:
    """A server process; its log goes to a file."""

    def __init__(self, memstream: Memstream, port: int, *arguments: str, **env: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.log = memstream.folder / f"serve-{time.monotonic_ns()}.log"
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [*COMMAND, "serve", "--port", str(port), *arguments],
                cwd=memstream.folder, env=memstream.env(env), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            )  # fmt: skip

    def until(self, ready: Any) -> Any:
        """Wait until the server gives something true; fail with its log when it ends."""

        def log_end() -> str:
            return self.log.read_text()[-3000:]

        def found() -> Any:
            assert self.process.poll() is None, log_end()
            try:
                return ready()
            except httpx.TransportError:
                return None

        return wait_for_blocking(found, "an answer of the server", deadline=DEADLINE, detail=log_end)

    def get(self, path: str, **query: str) -> Any:
        return httpx.get(f"{self.url}{path}", params=query, timeout=30).json()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE)


@contextmanager
def serving(memstream: Memstream, port: int, *arguments: str, **env: str) -> Iterator[Serving]:
    with running(Serving(memstream, port, *arguments, **env)) as server:
        yield server


@contextmanager
def running(server: Started) -> Iterator[Started]:
    """Wait until a server is ready, and end it after the block."""
    try:
        server.until(lambda: httpx.get(f"{server.url}/readyz", timeout=5).status_code == 200)
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait(DEADLINE)
