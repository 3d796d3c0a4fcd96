"""Cost of a worker's start: `python -m bench.cold_start [--on embedded] [--rounds 5]`.

Each stage's worker is started as a separate process, with a scripted model over HTTP. The table has the processor time
(all threads, user and system) and the memory of the process when /readyz answers 200 without work. It also has the
processor time of another start until the worker has handled one turn (or the records from it), because modules that
load late count only there.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

import click
import httpx
import psutil
from rich.console import Console

from memstream.schemas.topics import STAGES, StageName
from tests.support.kafka import free_port

from .model import Model
from .report import Figure, as_table
from .run import WORLDS
from .turns import Speakers, produce
from .world import Worker, World

TARGET: Final = 1.5
"""Seconds of processor time until a worker is ready."""


def memory_mb(worker: Worker) -> float:
    """Return the private memory of a process (without mapped files) in MiB. Linux only."""
    used = psutil.Process(worker.process.pid).memory_info()
    return (used.rss - used.shared) / 2**20


async def started(world: World, stage: StageName) -> Worker:
    """Start a worker and return it when it is ready."""
    port = free_port()
    worker = world.worker(stage, MEMSTREAM_HEALTH_PORT=str(port))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:

        async def ready() -> bool:
            try:
                return (await client.get("/readyz")).status_code == 200
            except httpx.TransportError:
                return False

        await world.until(ready, f"{stage} ready")
    return worker


async def measure(world: World, *, rounds: int) -> list[Figure]:
    until_ready: dict[StageName, list[float]] = defaultdict(list)
    with_a_turn: dict[StageName, list[float]] = defaultdict(list)
    memory: dict[StageName, list[float]] = defaultdict(list)
    speakers = Speakers("cold", rounds + 1)
    for number in range(rounds + 1):
        for stage in STAGES:
            worker = await started(world, stage)
            if number:  # the first start creates collections and folders
                until_ready[stage].append(worker.cpu_seconds())
                memory[stage].append(memory_mb(worker))
            await world.stop()
        await produce(world.log, speakers.turns(1))
        for stage in STAGES:
            worker = await started(world, stage)
            await world.settled(stage)
            if number:
                with_a_turn[stage].append(worker.cpu_seconds())
            await world.stop()
    return [
        Figure(
            ratio="cold start",
            what=stage,
            on=world.where,
            value=median(until_ready[stage]),
            unit="s",
            target=TARGET,
            better="lower",
            detail={
                "least s": min(until_ready[stage]),
                "with a turn s": median(with_a_turn[stage]),
                "least": min(with_a_turn[stage]),
                "MiB": median(memory[stage]),
            },
        )
        for stage in STAGES
    ]


async def measured(kinds: Sequence[str], *, rounds: int) -> list[Figure]:
    figures = []
    model = Model()
    try:
        with tempfile.TemporaryDirectory(prefix="memstream-bench-", ignore_cleanup_errors=True) as folder:
            for kind in kinds:
                place = Path(folder) / kind
                place.mkdir()
                async with WORLDS[kind](place, model) as world:
                    figures += await measure(world, rounds=rounds)
    finally:
        await model.close()
    return figures


@click.command()
@click.option("--on", "kinds", type=click.Choice(list(WORLDS)), multiple=True, default=tuple(WORLDS))
@click.option("--rounds", default=5, help="Starts of each worker that count.")
def main(kinds: tuple[str, ...], rounds: int) -> None:
    """Measure the cold start of each stage's worker."""
    Console(width=150).print(as_table(asyncio.run(measured(kinds, rounds=rounds))))


if __name__ == "__main__":
    main()
