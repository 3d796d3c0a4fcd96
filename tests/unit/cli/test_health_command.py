"""`memstream health`: exit codes for orchestrators, where it asks, and that it uses no proxy."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from memstream.cli.process.health_address import origin_of
from tests.support.cli_process import InProcess, Memstream
from tests.support.kafka import free_port

READY = b'{"ready": true, "parts": {"observer": {"ready": true, "why": ""}}}'
AWAY = (
    b'{"ready": false, "parts": {"qdrant": {"ready": false, "why": "refused"},'
    b' "log": {"ready": true, "why": ""}, "disk": {"ready": false, "why": "full"}}}'
)


@contextmanager
def answering(status: int, body: bytes) -> Iterator[int]:
    """Answer /readyz so, and /livez with 200, on the port that it yields."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            live = self.path == "/livez"
            self.send_response(200 if live else status)
            self.end_headers()
            self.wfile.write(b"ok\n" if live else body)

        def log_message(self, *parts: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture
def command(tmp_path: Path) -> InProcess:
    return InProcess(tmp_path)


ANSWERS = {
    "ready": (200, READY, (), 0, "ready\n", ""),
    "not ready": (503, AWAY, (), 1, "", "memstream: not ready: qdrant: refused\nmemstream: not ready: disk: full\n"),
    "alive and not ready": (503, AWAY, ("--live",), 0, "alive\n", ""),
    "a page of somebody else": (
        503,
        b"<html>",
        (),
        1,
        "",
        "memstream: {origin} answers 503, but is no memstream process\n",
    ),
    "another list": (503, b"[1]", (), 1, "", "memstream: {origin} answers 503, but is no memstream process\n"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_the_exit_code_is_the_answer(case: str, command: InProcess) -> None:
    status, body, options, code, out, err = ANSWERS[case]
    with answering(status, body) as port:
        done = command("health", "--port", str(port), *options)
    assert (done.code, done.out, done.err) == (code, out, err.format(origin=f"http://127.0.0.1:{port}"))


def test_nothing_that_answers_is_an_exit_code_of_its_own(command: InProcess) -> None:
    done = command("health", "--port", str(free_port()))
    assert (done.code, "Connection refused" in done.err) == (3, True)


def test_the_port_comes_from_the_settings(command: InProcess, tmp_path: Path) -> None:
    with answering(200, READY) as port:
        in_a_container = {"MEMSTREAM_HEALTH_PORT": str(port), "MEMSTREAM_HEALTH_HOST": "0.0.0.0"}
        assert command("health", env=in_a_container).code == 0
        assert command("health", env={"MEMSTREAM_HEALTH_PORT": str(port)}).code == 0
        (tmp_path / "memstream.toml").write_text(f"health_port = {port}")
        assert command("health").code == 0
        link = {"MEMSTREAM_HEALTH_PORT": "tcp://10.0.0.12:8080", "MEMSTREAM_HEALTH_HOST": "127.0.0.1"}
        assert command("health", env=link).code == 0, "the address of a service of Kubernetes is no setting"


@pytest.mark.slow
def test_it_asks_no_proxy(tmp_path: Path) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    proxies = dict.fromkeys(("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"), nowhere)
    with answering(200, READY) as port:
        done = Memstream(tmp_path)("health", "--port", str(port), env=proxies)
    assert (done.code, done.out) == (0, "ready\n"), done.err


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("fd00::1", "http://[fd00::1]:80"),
        ("worker", "http://worker:80"),
    ],
)
def test_a_server_is_reached_where_it_listens(host: str, origin: str) -> None:
    assert origin_of(host, 80) == origin


@pytest.mark.slow
def test_it_imports_neither_the_other_commands_nor_their_libraries() -> None:
    """It runs every few seconds in every container."""
    program = """
import sys
from memstream.cli.__main__ import main
sys.argv = ["memstream", "health", "--port", "1"]
try:
    main()
finally:
    print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    imported = {*done.stdout.split()}
    assert done.returncode == 3
    assert imported.isdisjoint({"memstream.cli.main", "memstream.cli.wiring.settings", "pydantic_settings", "aiokafka"})
