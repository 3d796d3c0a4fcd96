"""A Qdrant for tests with several processes: the real engine in a process of its own, behind the loopback server.

Not a fake: `AsyncQdrantClient` talks to it as to any server. Where a Docker engine answers, `shared_docker_qdrant`
gives the server itself (the contract suite of the store runs on both).
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from .kafka import free_port

READY_SECONDS = 60.0
STOP_SECONDS = 20.0
QDRANT_IMAGE = "qdrant/qdrant:v1.18.0"
NO_DOCKER = "no Docker engine answers: the store is tested on the embedded engine and its loopback server only"


class QdrantServer:
    """One server over one folder: `stop` or `kill`, then `start`, keeps url, token and data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = secrets.token_urlsafe(16)
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def environment(self) -> dict[str, str]:
        """The settings of a worker that uses it."""
        return {"MEMSTREAM_QDRANT": self.url, "QDRANT_API_KEY": self.token}

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server does not run"
        return self._process.pid

    def start(self) -> None:
        """Returns when it answers. Blocks, about a second: in a coroutine use a thread when others must go on."""
        assert self._process is None, "it runs already"
        command = [sys.executable, "-m", "memstream.adapters.vectors.loopback", "--with-stdin"]
        self._process = subprocess.Popen(
            [*command, "--folder", str(self.folder), "--port", str(self._port)],
            stdin=subprocess.PIPE,  # ends with this process, and the server with it
            stdout=subprocess.PIPE,
            env={**os.environ, "QDRANT_API_KEY": self.token},
        )
        line = _first_line(self._process)
        ready = json.loads(line) if line else {}
        if ready.get("url") != self.url:
            self.kill()
            raise RuntimeError(f"the Qdrant for tests did not start; it said {line!r}, see its log above")

    def stop(self) -> None:
        """A clean end (SIGTERM): flushed and closed."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """The end without a warning (SIGKILL)."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        finally:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def _first_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    deadline = time.monotonic() + READY_SECONDS
    while (remaining := deadline - time.monotonic()) > 0 and process.poll() is None:
        if select.select([process.stdout], [], [], min(remaining, 0.2))[0]:
            return process.stdout.readline()
    return b""


@contextmanager
def qdrant_server(folder: Path | None = None) -> Iterator[QdrantServer]:
    """A server that runs, over `folder` or a new one; ended and (if new) taken away afterwards."""
    if folder is None:
        with TemporaryDirectory(prefix="memstream-qdrant-") as fresh, qdrant_server(Path(fresh)) as server:
            yield server
        return
    server = QdrantServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def docker_answers() -> bool:
    """Whether there is a Docker engine to start a container with."""
    import docker
    from docker.errors import DockerException

    try:
        docker.from_env(timeout=5).close()
    except DockerException:
        return False
    return True


@functools.cache
def shared_docker_qdrant() -> str:
    """The url of the Qdrant server itself, in one container for the run (testcontainers' reaper takes it away)."""
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.waiting_utils import wait_for_logs

    container = DockerContainer(QDRANT_IMAGE).with_exposed_ports(6333).start()
    atexit.register(container.stop)
    wait_for_logs(container, "Qdrant HTTP listening on", timeout=60)
    return f"http://{container.get_container_host_ip()}:{container.get_exposed_port(6333)}"
