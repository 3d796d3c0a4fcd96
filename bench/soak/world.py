"""The world of a soak: broker, store, model and the seats of the workers."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import subprocess
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from bench.soak.model import Away
from bench.soak.workers import Group, Seat
from memstream.schemas.topics import STAGES
from memstream.streams.log.port import Log
from tests.support.environment import clean_environment, model_settings, worker_settings
from tests.support.kafka import NO_BROKER, Broker, own_broker
from tests.support.logs import log_at
from tests.support.qdrant import LoopbackQdrant

SESSION_TIMEOUT = 10
"""Session time-out of workers in seconds (MEMSTREAM_SESSION_TIMEOUT)."""
MODEL_TIMEOUT = 10
POLICY = """[memory.observe]
patience = 20  # seconds, so that models which are away for longer than that are met too
"""
PARTITIONS = 4
"""Number of partitions at the beginning. It is small, so that a growth moves most keys."""
SEAT_PORTS = range(10_000, 15_000)
WORKERS_A_STAGE = 2
"""Workers per stage. No fault is applied to the first."""


class World:
    """The addresses and processes of a soak. `broker` and `store` are None when a folder replaces them."""

    def __init__(self, *, folder: Path, seed: int, embedded: bool) -> None:
        self.folder = folder
        self.seed = seed
        self.embedded = embedded
        self.group = Group()
        self.seats: list[Seat] = []
        self.left_seats: list[Seat] = []
        """Seats of stopped workers: workers that were added for some time, and all workers before a growth."""
        self.partitions = PARTITIONS
        self.clock = time.monotonic()
        """The start of all times; set again when the load begins."""
        self.broker: Broker | None = None
        self.store: LoopbackQdrant | None = None
        self.broker_lock = asyncio.Lock()
        self.store_lock = asyncio.Lock()
        self._given: set[int] = set()
        self._model_port = self._port()
        self.server_port = self._port()
        self._control = f"http://127.0.0.1:{self._port()}"
        self._model: Process | None = None
        self._added = 0

    def now(self) -> float:
        """Return the seconds since the load began."""
        return time.monotonic() - self.clock

    async def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "memstream.toml").write_text(POLICY)
        if not self.embedded:
            self.broker = own_broker(self.folder / "kafka")
            if self.broker is None:
                raise RuntimeError(NO_BROKER)
            await asyncio.to_thread(self.broker.start)
            self.store = LoopbackQdrant(self.folder / "store")
            await asyncio.to_thread(self.store.start)
        self._model = await self.group.start(
            [sys.executable, "-m", "bench.soak.model", "--port", str(self._model_port), "--seed", str(self.seed),
             "--control", self._control.rpartition(":")[2]],
            cwd=Path.cwd(), env=os.environ, log=self.folder / "model.log",
        )  # fmt: skip
        await self._model_answers()
        await self._run("topics", "create")

    def fill_seats(self) -> None:
        """Create the seats. The seed makes some workers static group members: their restart moves no partition."""
        rng = random.Random(f"seats/{self.seed}")
        if self.embedded:  # one process holds the folder, so the server runs in it
            self.seats.append(self._seat("all", ["serve", "--with-stages"], spared=False, port=self.server_port))
            return
        self.seats.append(self._seat("serve", ["serve"], spared=True, port=self.server_port))
        for stage in STAGES:
            for number in range(WORKERS_A_STAGE):
                name = f"{stage}-{number + 1}"
                more = {"MEMSTREAM_WORKER_ID": name} if rng.random() < 0.5 else {}
                self.seats.append(self._seat(name, ["worker", stage], spared=number == 0, **more))

    def add_seat(self, stage: str) -> Seat:
        self._added += 1
        seat = self._seat(f"{stage}-added-{self._added}", ["worker", stage], spared=False)
        self.seats.append(seat)
        return seat

    async def remove_seat(self, seat: Seat) -> None:
        """Stop the worker of a seat. The seat is then no longer used."""
        await seat.stop()
        self.seats.remove(seat)
        self.left_seats.append(seat)

    def _seat(self, name: str, command: Sequence[str], *, spared: bool, port: int | None = None, **more: str) -> Seat:
        """Return a new seat. `port`: the port of a server, which also serves /readyz and /metrics."""
        return Seat(
            name=name,
            command=command if port is None else [*command, "--port", str(port)],
            spared=spared,
            group=self.group,
            env=self.environment(**more),
            folder=self.folder,
            health_port=port or self._port(),
            now=self.now,
        )

    def _port(self) -> int:
        """Return a free port outside the range of brokers and tests on this machine, because a seat keeps its port."""
        while True:
            port = random.choice(SEAT_PORTS)
            if port in self._given:
                continue
            with socket.socket() as probe:
                try:
                    probe.bind(("", port))
                except OSError:
                    continue
            self._given.add(port)
            return port

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of workers and commands."""
        env = clean_environment() | model_settings(f"http://127.0.0.1:{self._model_port}/v1")
        env |= {
            **worker_settings(self.address, self.folder / "data", session_timeout=SESSION_TIMEOUT),
            "MEMSTREAM_QDRANT": f"embedded://{self.folder / 'store'}",
            "MEMSTREAM_MODEL_TIMEOUT": str(MODEL_TIMEOUT),
        }
        env["MEMSTREAM_PARTITIONS"] = str(self.partitions)
        if self.store is not None:
            env |= self.store.environment
        return env | more

    @property
    def server(self) -> str:
        """Return the address of `memstream serve`."""
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def address(self) -> str:
        if self.broker is None:
            return f"embedded://{self.folder / 'log'}"
        return f"kafka://{self.broker.bootstrap}"

    def log(self, *, timeout: float = 30.0) -> Log:
        return log_at(self.address, timeout=timeout, client_id="soak")

    def pids(self) -> Mapping[str, int | None]:
        """Return the process ids of the servers."""
        broker = getattr(self.broker, "_process", None)
        store = self.store._process if self.store is not None else None
        others = {"broker": broker, "store": store, "model": self._model}
        return {name: process.pid for name, process in others.items() if process is not None}

    # ------------------------------------------------------------------------------------------------ the model
    async def model_away(self, how: Away) -> None:
        await self._post(f"away/{how}")

    async def model_back(self) -> None:
        await self._post("back")

    async def model_counts(self) -> dict[str, object]:
        async with aiohttp.ClientSession() as http, http.get(f"{self._control}/counts") as answer:
            counts: dict[str, object] = await answer.json()
            return counts

    async def _post(self, path: str) -> None:
        async with aiohttp.ClientSession() as http, http.post(f"{self._control}/{path}") as answer:
            answer.raise_for_status()

    async def _model_answers(self) -> None:
        async with asyncio.timeout(20):
            while True:
                try:
                    await self.model_counts()
                    return
                except aiohttp.ClientConnectionError:
                    await asyncio.sleep(0.1)

    # ------------------------------------------------------------------------------------------------ the end
    async def _run(self, *args: str) -> None:
        code, out = await self.command(*args)
        if code:
            raise RuntimeError(f"memstream {' '.join(args)}: exit {code}\n{out}")

    async def command(self, *args: str, killed_after: float | None = None) -> tuple[int, str]:
        """Run a command. Return its exit code and its output.

        It is killed (-9) if it still runs after `killed_after` seconds.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "memstream.cli", *args,
            cwd=self.folder, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        reading = asyncio.ensure_future(process.communicate())
        _, running = await asyncio.wait([reading], timeout=killed_after)
        if running:
            process.kill()
        out, _ = await reading
        assert process.returncode is not None
        return process.returncode, out.decode()

    async def stop_workers(self) -> None:
        await asyncio.gather(*(seat.stop() for seat in self.seats))

    def leave_seats(self) -> None:
        """Move the seats of the stopped workers to `left_seats`; new seats follow."""
        self.left_seats += self.seats
        self.seats = []

    async def ended(self) -> None:
        """Wait for the processes that the event loop started. Called after `close`."""
        if self._model is not None:
            await self._model.wait()
        for seat in (*self.left_seats, *self.seats):
            await seat.gone()

    def close(self) -> None:
        """End all processes. Blocks until the broker is dead."""
        self.group.close()
        if self.store is not None:
            self.store.kill()
        if self.broker is not None:
            self.broker.close()


@asynccontextmanager
async def running(*, folder: Path, seed: int, embedded: bool) -> AsyncIterator[World]:
    """Yield a world with running servers. End all of its processes afterwards."""
    world = World(folder=folder, seed=seed, embedded=embedded)
    try:
        await world.start()
        yield world
    finally:
        world.close()
        await world.ended()
