"""Processes of the command `memstream`, forked from one that has already imported the code.

The import takes seconds of a core (two for Qdrant's client alone), and a pipeline test starts five to ten processes.
Arguments, environment, folder and exit code are those of the command. tests/e2e starts it as a user's shell does.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from types import SimpleNamespace

READ_BEFORE = ["__main__", "memstream.cli.main", "memstream.cli.commands.worker"]
"""`__main__` is pytest's; without it here, every child would import it again."""
LOOK_EVERY = 0.02
_READING = threading.Lock()
"""An exit code can be read only once, and starting a process reads the codes of all. This lock keeps them apart."""
STOPS_AT_CRASH_POINT = "TESTS_STOP_AT_CRASH_POINT"
"""Environment variable of a worker that makes its crash point stop it (SIGSTOP) instead. SIGCONT lets it go on."""
HANGS_IN = "TESTS_HANG_IN"
"""Environment variable with the stages that hang at a certain text (hanging.py), separated by spaces."""


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(READ_BEFORE)
    return context


def _commands(
    commands: Sequence[Sequence[str]], between: str, cwd: Path, env: Mapping[str, str], files: Sequence[Path]
) -> None:
    """Run the commands one after the other in the child. `files` are its stdin, stdout and stderr."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    stdin, stdout, stderr = files
    for path, number in ((stdout, 1), (stderr, 2)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    sys.stdin = stdin.open()
    from memstream.cli.main import cli
    from memstream.streams.engine import crash_points

    if STOPS_AT_CRASH_POINT in env:
        crash_points.os = SimpleNamespace(_exit=lambda code: os.kill(os.getpid(), signal.SIGSTOP))  # type: ignore[assignment]
    if HANGS_IN in env:
        from tests.support.hanging import hang_in

        hang_in(env[HANGS_IN].split())

    for args in commands:
        sys.argv = ["memstream", *args]
        cli(list(args), prog_name="memstream", standalone_mode=not between)
        print(between)


class ForkedCommand:
    """A process with the interface of `subprocess.Popen`. With `between`, several commands run one after the
    other, and this line follows each.
    """

    def __init__(
        self,
        *commands: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        stdout: Path,
        stderr: Path | None = None,
        stdin: Path = Path(os.devnull),
        between: str = "",
    ) -> None:
        self.args = commands
        files = (stdin, stdout, stderr or stdout)
        self._process: ForkServerProcess = _context().Process(
            target=_commands, args=(commands, between, cwd, dict(env), files), daemon=True
        )
        with _READING:
            self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        with _READING:
            return self._process.exitcode

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def wait(self, timeout: float | None = None) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired(list(self.args), timeout or 0.0)
            time.sleep(LOOK_EVERY)
        return code

    def send_signal(self, number: int) -> None:
        with _READING:
            if self._process.exitcode is None:
                os.kill(self.pid, number)

    def kill(self) -> None:
        with _READING:
            self._process.kill()
