"""Commands and workers of a deployment as processes: where they run, with which settings, and how they end."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memstream.streams.engine.crash_points import CRASHED
from tests.support.environment import clean_environment, model_settings, worker_settings
from tests.support.fork_server import ForkedCommand
from tests.support.model_server import ModelServer
from tests.support.polling import has_ended, wait_for
from tests.support.qdrant import QdrantServer
from tests.support.secure_kafka import settings_at
from tests.support.supervisor import Supervised

Json = dict[str, Any]
END_OF_COMMAND = "\x1e"
NOTHING_FOLLOWS = "after_run = 3_600"
"""Policy without the steps that follow a consolidation run: they come seconds later and have their own tests."""


class Processes:
    """The addresses and processes of a deployment.

    `env` adds settings for every process. `consolidation` is the table [memory.consolidation] of memstream.toml,
    `policy` the rest of that file.
    """

    def __init__(
        self,
        *,
        folder: Path,
        broker: str,
        qdrant: QdrantServer | None,
        model: ModelServer | None,
        env: Mapping[str, str],
        consolidation: str,
        policy: str,
    ) -> None:
        self.folder = folder
        self.broker = broker
        self._qdrant = qdrant
        self._model = model
        self._env = dict(env)
        self._consolidation = consolidation
        self.configure(policy)
        self.workers: list[Supervised] = []
        self._spawned = 0

    def configure(self, policy: str) -> None:
        """Write memstream.toml for processes that start from now on."""
        text = f"[memory.consolidation]\n{self._consolidation}\n{policy}"
        (self.folder / "memstream.toml").write_text(text)

    def use(self, **env: str) -> None:
        """Add settings for every process that starts from now on."""
        self._env |= env

    def environment(self, **more: str) -> dict[str, str]:
        env = clean_environment() | {
            **worker_settings(self.broker, self.folder / "data", session_timeout=3),
            "MEMSTREAM_QDRANT": f"embedded://{self.folder / 'store'}",
            "MEMSTREAM_TESTING": "1",
        }
        if self._qdrant is not None:
            env |= self._qdrant.environment
        if self._model is not None:
            env |= model_settings(self._model.base_url)
        return env | settings_at(self.broker) | self._env | more

    def cli(self, *args: str, expect: int | None = 0, stdin: str = "", timeout: float = 60, **env: str) -> str:
        """Run a command to its end and return its stdout."""
        code, stdout, stderr = self._run(args, stdin=stdin, timeout=timeout, env=env)
        if expect is not None and code != expect:
            raise AssertionError(f"memstream {' '.join(args)}: exit {code}\n{stdout}\n{stderr}")
        return stdout

    def _run(
        self,
        *commands: Sequence[str],
        env: Mapping[str, str],
        stdin: str = "",
        timeout: float = 60,
        between: str = "",
    ) -> tuple[int, str, str]:
        """Run commands in one process; return exit code, stdout, stderr."""
        with TemporaryDirectory() as made:
            given, out, err = (Path(made) / name for name in ("stdin", "stdout", "stderr"))
            for path, text in ((given, stdin), (out, ""), (err, "")):
                path.write_text(text)
            process = ForkedCommand(
                *commands,
                cwd=self.folder,
                env=self.environment(**env),
                stdin=given,
                stdout=out,
                stderr=err,
                between=between,
            )
            try:
                return process.wait(timeout), out.read_text(), err.read_text()
            finally:
                process.kill()

    def json_lines(self, *args: str, **options: Any) -> list[Json]:
        return [json.loads(line) for line in self.cli(*args, "--json", **options).splitlines() if line.strip()]

    def several(self, *commands: Sequence[str], **env: str) -> list[list[Json]]:
        """Return what each command prints with --json. All run in one process, which imports once."""
        code, stdout, stderr = self._run(
            *([*command, "--json"] for command in commands), env=env, between=END_OF_COMMAND
        )
        assert code == 0, f"{commands}: exit {code}\n{stdout[-2000:]}\n{stderr}"
        parts = stdout.split(END_OF_COMMAND)[:-1]
        return [[json.loads(line) for line in part.splitlines() if line.strip()] for part in parts]

    def spawn(self, *stages: str, **env: str) -> Supervised:
        """Start a supervised worker. Its log goes to a file in the folder."""
        worker = Supervised(
            ["worker", *stages],
            cwd=self.folder,
            env=self.environment() | settings_at(self.broker, *stages) | self._env | env,
            log=self.folder / f"worker-{self._spawned}-{'-'.join(stages)}.log",
        )
        self._spawned += 1
        self.workers.append(worker)
        return worker

    async def crashes(self, *stages: str, at: str, deadline: float = 60.0, **env: str) -> None:
        """Start a worker and wait until it dies at this crash point."""
        worker = self.spawn(*stages, MEMSTREAM_CRASH_POINT=at, **env)
        await wait_for(worker.poll, f"the crash at {at}", until=has_ended, deadline=deadline, detail=self.logs)
        assert worker.returncode == CRASHED, f"{at}: exit {worker.returncode}\n{self.logs()}"

    def logs(self) -> str:
        """Return the ends of the workers' logs, for the message of a failing test."""
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}"
            for path in sorted(self.folder.glob("worker-*.log"))
        )

    def stop(self) -> None:
        """Send SIGTERM to all workers; each must exit with 0."""
        alive = [worker for worker in self.workers if worker.poll() is None]
        for worker in alive:
            worker.send_signal(signal.SIGTERM)
        codes = [worker.wait(60) for worker in alive]
        assert all(code == 0 for code in codes), f"exit codes {codes}\n{self.logs()}"
        self.workers.clear()

    def end(self, worker: Supervised) -> None:
        """Send SIGTERM to one worker; it must exit with 0."""
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0, f"exit {worker.returncode}\n{self.logs()}"
        self.workers.remove(worker)

    def kill(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
            worker.wait(10)
        self.workers.clear()
