"""The worker processes of a soak. Each has a seat, in which a supervisor restarts it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memstream.streams.engine.process_exit import UNREACHABLE

BACKOFF = (0.5, 8.0)
"""First and longest wait in seconds before an ended worker is restarted. It doubles while workers end early."""
LASTED = 30.0
"""Lifetime in seconds after which the backoff starts from the beginning."""
STOP_WITHIN = 75.0
"""Seconds of grace after SIGTERM, as in docker-compose.yml."""


class Group:
    """One process group for all processes that the soak starts.

    It ends with the soak in every case: a shell kills the group when its standard input is closed.
    """

    def __init__(self) -> None:
        self._guard = subprocess.Popen(["sh", "-c", "read _; kill -9 0"], stdin=subprocess.PIPE, process_group=0)

    async def start(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path) -> Process:
        with log.open("ab") as out:
            return await asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                process_group=self._guard.pid,
            )

    def close(self) -> None:
        """Kill all running processes of the group."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait()


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a worker process. `code` as in Popen: negative for a signal. `ours`: a fault ended it."""

    seat: str
    at: float
    lived: float
    code: int
    ours: bool

    @property
    def as_it_should(self) -> bool:
        """Return whether this end is allowed.

        Allowed are: a kill, a requested stop (a young worker dies of the signal), and an end because a server is away.
        """
        return self.code == UNREACHABLE or (self.ours and self.code in (0, -signal.SIGKILL, -signal.SIGTERM))


class Seat:
    """A seat of one worker, or of the server.

    - `command`: the arguments of `memstream`.
    - `spared`: no fault is applied to it, so that one process of its stage runs through the whole soak.
    - `now`: seconds since the soak began.
    """

    def __init__(
        self,
        *,
        name: str,
        command: Sequence[str],
        spared: bool,
        group: Group,
        env: Mapping[str, str],
        folder: Path,
        health_port: int,
        now: Callable[[], float],
    ) -> None:
        self.name = name
        self.spared = spared
        self.health_port = health_port
        self.ends: list[Ended] = []
        self.log = folder / f"{name}.log"
        self._command = [sys.executable, "-m", "memstream.cli", *command]
        self._folder = folder
        self._group = group
        self._env = {**env, "MEMSTREAM_HEALTH_PORT": str(health_port)}
        self._now = now
        self._process: Process | None = None
        self._since = 0.0
        self._ours = False
        self._wanted = True
        self._keeper = asyncio.create_task(self._keep(), name=f"supervisor of {name}")

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    async def _keep(self) -> None:
        pause = BACKOFF[0]
        while self._wanted:
            self._since, self._ours = time.monotonic(), False
            self._process = await self._group.start(self._command, cwd=self._folder, env=self._env, log=self.log)
            code = await self._process.wait()
            now = time.monotonic()
            self.ends.append(Ended(self.name, self._now(), now - self._since, code, self._ours))
            pause = BACKOFF[0] if self._ours or now - self._since > LASTED else min(2 * pause, BACKOFF[1])
            if self._wanted:
                await asyncio.sleep(pause)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal. After a signal that ends the worker, the supervisor starts the next one immediately."""
        if self.pid is not None and self._process is not None:
            self._ours = self._ours or number in (signal.SIGKILL, signal.SIGTERM)
            self._process.send_signal(number)

    async def stop(self) -> None:
        """Send SIGTERM and leave the seat empty. After the grace period the worker is killed; `ends` records that."""
        self._wanted = False
        self.signal(signal.SIGTERM)
        if self.pid is None:
            self._keeper.cancel()
        done, _ = await asyncio.wait([self._keeper], timeout=STOP_WITHIN)
        if not done and self._process is not None:
            self._ours = False
            self._process.kill()
            await self._keeper

    async def gone(self) -> None:
        """Leave the seat empty after the group was closed."""
        self._wanted = False
        self._keeper.cancel()
        if self._process is not None:
            await self._process.wait()
