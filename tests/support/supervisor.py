"""A worker process under supervision, as every deployment has one.

A worker that lost its place in the consumer group exits with 3 (a machine so busy that no heartbeat got through for a
session). Supervisors restart such a worker, and so does this one. The test judges every other end.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from memstream.streams.engine.process_exit import UNREACHABLE
from tests.support.fork_server import ForkedCommand

LOOK_EVERY = 0.1


class Supervised:
    """The interface of `subprocess.Popen` over the current process. `command` are the arguments of `memstream`."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path) -> None:
        self._command, self._cwd, self._env, self._log = list(command), cwd, dict(env), log
        self._lock = threading.Lock()
        self._let_go = False
        self.starts = 0
        self._process = self._start()
        threading.Thread(target=self._watch, name=f"supervisor of {log.name}", daemon=True).start()

    def _start(self) -> ForkedCommand:
        self.starts += 1
        return ForkedCommand(self._command, cwd=self._cwd, env=self._env, stdout=self._log)

    def _watch(self) -> None:
        while not self._let_go:
            process = self._process
            try:
                process.wait(LOOK_EVERY)
            except subprocess.TimeoutExpired:
                continue
            with self._lock:
                if self._let_go or process.returncode != UNREACHABLE:
                    return
                self._process = self._start()

    def poll(self) -> int | None:
        with self._lock:
            code = self._process.poll()
            return None if code == UNREACHABLE and not self._let_go else code

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of a process that was told to end."""
        with self._lock:
            self._let_go = True
        return self._process.wait(timeout)

    def send_signal(self, number: int) -> None:
        """Send a signal to the current process and stop supervising it."""
        with self._lock:
            self._let_go = True
            self._process.send_signal(number)

    def kill(self) -> None:
        with self._lock:
            self._let_go = True
            self._process.kill()
