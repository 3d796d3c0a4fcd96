"""The world of a measurement: a broker with a Qdrant server, or a folder, and worker processes as users run them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memstream.adapters.vectors.embedded.loopback import ENGINE_FOLDER
from memstream.schemas.topics import StageName, group_of, read_by
from memstream.streams.log import topic_admin
from memstream.streams.log.broker_url import EMBEDDED
from memstream.streams.log.port import Log, TopicSpec
from tests.support.environment import clean_environment, worker_settings
from tests.support.kafka import session_broker
from tests.support.logs import log_at
from tests.support.polling import wait_for
from tests.support.qdrant import LoopbackQdrant, loopback_qdrant

from .model import Model

ROOT = Path(__file__).resolve().parents[1]
KAFKA_PARTITIONS = 12
SESSION_TIMEOUT = 6.0
"""Maximum seconds that the partitions of a killed worker wait."""
GIVE_UP = 120.0
LOOK_SECONDS = 0.05
STOP_SECONDS = 60.0
Kind = Literal["kafka", "embedded"]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of another process, with a resolution of a nanosecond.

    /proc/<pid>/stat counts hundredths of a second, which is more than a plain client needs for hundreds of records. The
    clock id is computed as clock_getcpuclockid(3) does on Linux.
    """
    return time.clock_gettime((~pid << 3) | 2)


class NotMeasured(RuntimeError):
    """A measurement did not end. The message has the ends of the workers' logs."""


class Worker:
    """One process of a world."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(command, cwd=ROOT, env=dict(env), stdout=out, stderr=out)

    def cpu_seconds(self) -> float:
        """Return the user and system time of all its threads since its start, in seconds."""
        return cpu_seconds(self.process.pid)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Stop the process (SIGSTOP) during the block, which must be shorter than its session time-out."""
        self.hold()
        try:
            yield
        finally:
            self.let_go()

    def hold(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def let_go(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def alive(self) -> bool:
        return self.process.poll() is None

    def log_end(self) -> str:
        return f"{self._log.name} (exit {self.process.poll()}):\n{self._log.read_text(errors='replace')[-1500:]}"

    def kill(self) -> None:
        if self.alive():
            self.process.kill()
        self.process.wait()

    async def stop(self) -> None:
        """Send SIGTERM and require exit code 0."""
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        try:
            code = await asyncio.to_thread(self.process.wait, STOP_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        if code != 0:
            self.kill()
            raise NotMeasured(self.log_end())


@dataclass(slots=True)
class World:
    """One broker, or one folder. `log` is open; the topics exist."""

    kind: Kind
    folder: Path
    broker: str
    log: Log
    model: Model
    stores: Mapping[str, str]
    """The settings of the vector store."""
    server: LoopbackQdrant | None = None
    """The vector store's loopback server; None when there is none."""
    workers: list[Worker] = field(default_factory=list)
    _made: int = 0

    @property
    def where(self) -> str:
        """The name of this world in a table. It has the kind of store, because a loopback store has other latencies."""
        if self.kind == "embedded":
            return self.kind
        return f"{self.kind}, {'Qdrant server' if self.server is None else 'stand-in store'}"

    @property
    def partitions(self) -> int:
        return KAFKA_PARTITIONS if self.kind == "kafka" else 1

    # ------------------------------------------------------------------------------------------------ processes
    def worker(self, *stages: StageName, in_flight: int = 64, name: str | None = None, **env: str) -> Worker:
        """Start `memstream worker …`.

        With a `name` it is a static member of its groups: it returns to its partitions and its folder, and its
        partitions stay reserved for one session time-out after its end.
        """
        settings = {
            **worker_settings(self.broker, self.folder / "data", session_timeout=SESSION_TIMEOUT),
            "MEMSTREAM_IN_FLIGHT": str(in_flight),
            **self.stores,
            **self.model.environment,
            **env,
        }
        if name is not None:
            settings["MEMSTREAM_WORKER_ID"] = name
        return self.process(["memstream.cli", "worker", *stages], "-".join([*stages, name or ""]), settings)

    def process(self, module: Sequence[str], name: str, settings: Mapping[str, str] | None = None) -> Worker:
        """Start `python -m module …`; its output goes to a file in the folder."""
        env = clean_environment()
        worker = Worker(
            [sys.executable, "-m", *module], env=env | dict(settings or {}), log=self.folder / f"{name}.log"
        )
        self.workers.append(worker)
        return worker

    async def stop(self) -> None:
        """Stop every process with SIGTERM; each must exit with 0."""
        workers, self.workers = self.workers, []
        await asyncio.gather(*(worker.stop() for worker in workers))

    def kill(self) -> None:
        for worker in self.workers:
            worker.kill()
        self.workers.clear()

    @asynccontextmanager
    async def engine_folder(self) -> AsyncIterator[Path]:
        """Yield the folder of the vector store's engine, closed by all processes meanwhile. No worker may run."""
        if self.server is None:
            yield self.folder / "log" / ENGINE_FOLDER
            return
        await asyncio.to_thread(self.server.stop)
        try:
            yield self.server.folder / ENGINE_FOLDER
        finally:
            await asyncio.to_thread(self.server.start)

    # ------------------------------------------------------------------------------------------------ topics
    async def fresh_topics(self, *names: str) -> tuple[str, ...]:
        """Create new topics with unique names that begin with these names. Return the names."""
        self._made += 1
        made = tuple(f"bench-{self._made}-{name}" for name in names)
        await self.log.create([TopicSpec(name, self.partitions, 1, {}) for name in made])
        return made

    # ------------------------------------------------------------------------------------------------ waiting
    async def until(
        self, true: Callable[[], Awaitable[bool]], what: str, *, within: float = GIVE_UP, pause: float = LOOK_SECONDS
    ) -> None:
        """Wait until `true` returns True; check every `pause` seconds.

        Raises NotMeasured after `within` seconds, or when a process has ended.
        """

        async def holds() -> bool:
            met = await true()
            assert met or all(worker.alive() for worker in self.workers), f"a worker ended before: {what}"
            return met

        try:
            await wait_for(holds, what, deadline=within, pause=pause)
        except AssertionError as error:
            logs = "\n".join(worker.log_end() for worker in self.workers)
            raise NotMeasured(f"{self.kind}: {error}\n{logs}") from error

    async def grown(self, topic: str, since: Sequence[int], by: int, *, within: float = GIVE_UP) -> None:
        """Wait until `by` records were added to a topic whose ends were `since`."""

        async def enough() -> bool:
            return sum(await self.log.ends(topic)) - sum(since) >= by

        await self.until(enough, f"{by} records on {topic}", within=within)

    async def settled(self, *stages: StageName, within: float = GIVE_UP, pause: float = LOOK_SECONDS) -> None:
        """Wait until these stages have no lag. A check of all four makes about forty requests to the broker."""

        async def nothing_left() -> bool:
            return not any([await self._lag(stage) for stage in stages])

        await self.until(nothing_left, "no lag", within=within, pause=pause)

    async def _lag(self, stage: StageName) -> int:
        lag = 0
        for topic in read_by(stage):
            ends = await self.log.ends(topic.name)
            committed = await self.log.committed(group_of(stage), topic.name)
            lag += sum(end - (at or 0) for end, at in zip(ends, committed, strict=True))
        return lag


@contextmanager
def _qdrant(folder: Path) -> Iterator[LoopbackQdrant | str]:
    """Yield the address of the Qdrant server that MEMSTREAM_TEST_QDRANT names, or the engine behind a loopback server.

    Only the first has the latency of a real server.
    """
    given = os.environ.get("MEMSTREAM_TEST_QDRANT")
    if given:
        yield given
        return
    with loopback_qdrant(folder) as qdrant:
        yield qdrant


@asynccontextmanager
async def kafka_world(folder: Path, model: Model) -> AsyncIterator[World]:
    """Yield a world on its own broker (or MEMSTREAM_TEST_KAFKA), with the Qdrant engine behind a server process."""
    broker = session_broker(folder / "kafka")
    if broker is None:
        raise NotMeasured("no Kafka: set MEMSTREAM_TEST_KAFKA=host:port, start Docker, or install Java 17+ and Maven")
    try:
        await asyncio.to_thread(broker.start)
        with _qdrant(folder / "qdrant") as qdrant:
            address = f"kafka://{broker.bootstrap}"
            async with _opened(
                World(
                    kind="kafka",
                    folder=folder,
                    broker=address,
                    log=log_at(address),
                    model=model,
                    stores={"MEMSTREAM_QDRANT": qdrant} if isinstance(qdrant, str) else qdrant.environment,
                    server=None if isinstance(qdrant, str) else qdrant,
                )
            ) as world:
                yield world
    finally:
        broker.close()


@asynccontextmanager
async def embedded_world(folder: Path, model: Model) -> AsyncIterator[World]:
    """Yield a world in one folder, which has the log and the engine."""
    address = f"{EMBEDDED}{folder / 'log'}"
    async with _opened(
        World(
            kind="embedded",
            folder=folder,
            broker=address,
            log=log_at(address),
            model=model,
            stores={"MEMSTREAM_QDRANT": address},
        )
    ) as world:
        yield world


@asynccontextmanager
async def _opened(world: World) -> AsyncIterator[World]:
    await world.log.start()
    try:
        await topic_admin.create(
            world.log, deployment=topic_admin.Deployment(partitions=world.partitions, replication=1)
        )
        yield world
    finally:
        world.kill()
        await world.log.close()
