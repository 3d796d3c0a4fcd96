"""The command `memstream` as a process with a folder and a clean environment of its own."""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import structlog
from click.testing import CliRunner

from memstream.cli.main import cli
from tests.support.environment import clean_environment
from tests.support.polling import wait_for_blocking

from .kafka import free_port

TIMEOUT = 60.0
COMMAND = (sys.executable, "-m", "memstream.cli")


@dataclass(frozen=True)
class Done:
    """The exit code and the output of a command that has ended."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        """Parse standard output as NDJSON."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Memstream:
    """The command `memstream` in `folder`. `environment` is added to a clean one."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def env(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return clean_environment() | {"COLUMNS": "200"} | self.environment | dict(more or {})

    def __call__(
        self, *arguments: str, input: str | bytes = "", env: Mapping[str, str] | None = None, timeout: float = TIMEOUT
    ) -> Done:
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=self.env(env),
            input=input.encode() if isinstance(input, str) else input,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    @contextmanager
    def started(self, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """Start a command that keeps running. It is killed at the end of the block if it still runs."""
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=self.env(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=TIMEOUT)

    @contextmanager
    def worker(self, *stages: str, env: Mapping[str, str] | None = None) -> Iterator[Worker]:
        """Start a worker and wait until it is ready. Its log goes to a file, so that a full pipe never stops it."""
        port = free_port()
        log = self.folder / f"worker-{port}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*COMMAND, "worker", *stages],
                cwd=self.folder,
                env=self.env({"MEMSTREAM_HEALTH_PORT": str(port)} | dict(env or {})),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        worker = Worker(process, port, log)
        try:
            worker.wait_ready()
            yield worker
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(TIMEOUT)


@dataclass
class InProcess(Memstream):
    """`Memstream` without a process of its own. It is about forty times as fast.

    The command does not freeze objects: in a process that goes on, garbage and live objects of all tests before would
    stay in memory for good.
    """

    def __call__(
        self, *arguments: str, input: str | bytes = "", env: Mapping[str, str] | None = None, timeout: float = TIMEOUT
    ) -> Done:
        unset = {name: None for name in os.environ if name not in self.env()}
        before = Path.cwd()
        handlers = logging.getLogger().handlers[:]
        os.chdir(self.folder)
        try:
            with mock.patch.object(gc, "freeze"):
                done = CliRunner().invoke(cli, arguments, input=input, env={**unset, **self.env(env)})
        finally:
            os.chdir(before)
            structlog.reset_defaults()  # its stream is closed now
            logging.getLogger().handlers[:] = handlers
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Done(done.exit_code, done.stdout, done.stderr)


@dataclass
class Worker:
    """A worker process and its health port."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def get(self, path: str) -> tuple[int, str]:
        """Return status and body of a GET; status 0 if no server answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def wait_ready(self) -> None:
        def log_end() -> str:
            return self.log.read_text()[-2000:]

        def readyz() -> tuple[int, str]:
            assert self.process.poll() is None, f"the worker ended: {log_end()}"
            return self.get("/readyz")

        wait_for_blocking(
            readyz, "/readyz with 200", until=lambda got: got[0] == 200, deadline=TIMEOUT, pause=0.1, detail=log_end
        )

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(TIMEOUT)


def wait_for_records(command: Memstream, *arguments: str, count: int, deadline: float = 40.0) -> list[dict[str, Any]]:
    """Run a command with --json until it prints at least `count` records; return them."""

    def records() -> list[dict[str, Any]]:
        done = command(*arguments, "--json")
        assert done.code == 0, done.err
        return done.records

    what = f"{count} records of {' '.join(arguments)}"
    return wait_for_blocking(records, what, until=lambda found: len(found) >= count, deadline=deadline, pause=0)


def turn(turn_id: str, text: str, *, tenant: str = "acme", user: str = "u1", session: str = "s1") -> str:
    """A line for `memstream produce`."""
    return json.dumps(
        {
            "tenant_id": tenant,
            "user_id": user,
            "session_id": session,
            "turn_id": turn_id,
            "messages": [{"role": "user", "content": text}],
        }
    )
