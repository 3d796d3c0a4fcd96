"""A Qdrant over the network for tests: the server that is given, one in a container, or the loopback server.

`qdrant_server()` chooses: with `MEMSTREAM_TEST_QDRANT=http://host:port` a part of that server, else the loopback server
of the embedded engine in a process of its own. `real_qdrant_url()` is Qdrant itself or None: the server that is given,
or a container where a Docker engine answers. The contract tests of the store run on all of them.
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
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import httpx

from .kafka import docker_answers, free_port
from .tcp_proxy import Down, HttpProxy, Well, read_body, with_body

GIVEN = "MEMSTREAM_TEST_QDRANT"
READY_SECONDS = 60.0
STOP_SECONDS = 20.0
QDRANT_IMAGE = "qdrant/qdrant:v1.18.0"
NO_QDRANT = (
    f"no Qdrant server for tests: set {GIVEN}=http://host:port or start a Docker engine. Without one the store is "
    "tested on the embedded engine and its loopback server only"
)


class QdrantServer(Protocol):
    """A Qdrant that a test can take away: `stop` or `kill`, then `start`, keeps url, token and data."""

    @property
    def url(self) -> str: ...

    @property
    def token(self) -> str: ...

    @property
    def environment(self) -> dict[str, str]:
        """The settings of a worker that uses it."""
        ...

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...


class LoopbackQdrant:
    """The embedded engine over one folder, in a process of its own, behind the loopback server."""

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
        return {"MEMSTREAM_QDRANT": self.url, "QDRANT_API_KEY": self.token}

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server does not run"
        return self._process.pid

    def start(self) -> None:
        """Start the process and return when it answers.

        Blocks for about a second: use a thread where other coroutines must go on.
        """
        assert self._process is None, "the server runs already"
        command = [sys.executable, "-m", "memstream.adapters.vectors.embedded.loopback", "--with-stdin"]
        self._process = subprocess.Popen(
            [*command, "--folder", str(self.folder), "--port", str(self._port)],
            stdin=subprocess.PIPE,  # closes when this process ends, and the server ends with it
            stdout=subprocess.PIPE,
            env={**os.environ, "QDRANT_API_KEY": self.token},
        )
        line = _first_line(self._process)
        ready = json.loads(line) if line else {}
        if ready.get("url") != self.url:
            self.kill()
            raise RuntimeError(f"the Qdrant for tests did not start; it printed {line!r}, see its log above")

    def stop(self) -> None:
        """End the process with SIGTERM: it flushes and closes."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process with SIGKILL."""
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


class PrefixProxy(HttpProxy):
    """A proxy before a Qdrant that prefixes every collection and alias name of a request, and strips the prefix from
    every answer. A client of it sees no collection of others."""

    def __init__(self, upstream: str, prefix: str) -> None:
        super().__init__(upstream)
        self._prefix = prefix

    def edit_request(self, request: bytes) -> bytes:
        head, body = read_body(request)
        first, *headers = head.split(b"\r\n")
        method, path, version = first.decode("latin-1").split(" ")
        if path.split("?")[0] == "/collections/aliases":
            body = self._prefixed_aliases(body)
        elif path.startswith("/collections/"):
            path = path.replace("/collections/", f"/collections/{self._prefix}", 1)
        # A compressed answer has no length and no readable names.
        headers = [line for line in headers if not line.lower().startswith(b"accept-encoding:")]
        first = f"{method} {path} {version}".encode("latin-1")
        return with_body(b"\r\n".join([first, *headers, b"accept-encoding: identity"]), body)

    def edit_response(self, path: str, response: bytes) -> bytes:
        head, body = read_body(response)
        if path == "/aliases":
            body = self._own(body, "aliases", "alias_name")
        elif path == "/collections":
            body = self._own(body, "collections", "name")
        return with_body(head, body.replace(self._prefix.encode(), b""))

    def _prefixed_aliases(self, body: bytes) -> bytes:
        wanted = json.loads(body)
        for action in wanted["actions"]:
            for names in action.values():
                names.update({name: self._prefix + names[name] for name in names if names[name] is not None})
        return json.dumps(wanted).encode()

    def _own(self, body: bytes, kind: str, name: str) -> bytes:
        answer: dict[str, Any] = json.loads(body)
        if isinstance(result := answer.get("result"), dict):
            result[kind] = [each for each in result[kind] if each[name].startswith(self._prefix)]
        return json.dumps(answer).encode()


class GivenQdrant:
    """A part of a Qdrant server that somebody else runs: collections with a prefix of their own, deleted on `close`.

    The server itself is never stopped. `stop` and `kill` let the proxy before it refuse connections.
    """

    token = ""

    def __init__(self, server: str) -> None:
        self._server = server
        self._prefix = f"memstream-test-{uuid.uuid4().hex[:12]}-"
        self._proxy = PrefixProxy(server, self._prefix)
        self._proxy.start()

    @property
    def url(self) -> str:
        return self._proxy.url

    @property
    def environment(self) -> dict[str, str]:
        return {"MEMSTREAM_QDRANT": self.url}

    def start(self) -> None:
        self._proxy.become(Well())

    def stop(self) -> None:
        self._proxy.become(Down())

    kill = stop

    def close(self) -> None:
        self._proxy.close()
        with httpx.Client(base_url=self._server, timeout=READY_SECONDS) as client:
            for each in client.get("/collections").raise_for_status().json()["result"]["collections"]:
                if each["name"].startswith(self._prefix):
                    client.delete(f"/collections/{each['name']}").raise_for_status()


@contextmanager
def given_qdrant(server: str) -> Iterator[GivenQdrant]:
    """An empty part of the server at this url."""
    part = GivenQdrant(server)
    try:
        yield part
    finally:
        part.close()


@contextmanager
def loopback_qdrant(folder: Path | None = None) -> Iterator[LoopbackQdrant]:
    """A started loopback server over `folder`, or over a new one that is deleted afterwards."""
    if folder is None:
        with TemporaryDirectory(prefix="memstream-qdrant-") as fresh, loopback_qdrant(Path(fresh)) as server:
            yield server
        return
    server = LoopbackQdrant(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def qdrant_server(folder: Path | None = None) -> Iterator[QdrantServer]:
    """An empty Qdrant over the network: a part of the server that is given, else a loopback server over `folder`."""
    if server := os.environ.get(GIVEN):
        with given_qdrant(server) as part:
            yield part
        return
    with loopback_qdrant(folder) as own:
        yield own


def has_real_qdrant() -> bool:
    """Whether Qdrant itself can be had: given, or in a container."""
    return GIVEN in os.environ or docker_answers()


@functools.cache
def has_shards() -> bool:
    """Whether a server in cluster mode is given: there tenants can have shards of their own."""
    server = os.environ.get(GIVEN)
    return server is not None and httpx.get(f"{server}/cluster").json()["result"]["status"] == "enabled"


@functools.cache
def real_qdrant_url() -> str:
    """The url of Qdrant itself: the server that is given, else one container for the run."""
    if server := os.environ.get(GIVEN):
        return server
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.waiting_utils import wait_for_logs

    container = DockerContainer(QDRANT_IMAGE).with_exposed_ports(6333).start()
    atexit.register(container.stop)
    wait_for_logs(container, "Qdrant HTTP listening on", timeout=60)
    return f"http://{container.get_container_host_ip()}:{container.get_exposed_port(6333)}"
