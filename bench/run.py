"""The whole pipeline in one process, on the embedded default with the offline model: `python -m bench.run`.

Two measurements: turns per second over many sessions side by side, and the time from a turn that is appended to its
fact on memory.facts.updated, one turn at a time.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import platform
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from memstream import __version__
from memstream.cli import logs
from memstream.cli.feed import Feed, Person, fed, nothing_left
from memstream.cli.inprocess import Beside, stages_or_beside
from memstream.cli.settings import load
from memstream.cli.turns import TurnSender, read_turn, user_turn
from memstream.streams.addresses import EMBEDDED

OUT = Path(__file__).resolve().parent / "out"
TENANT = "bench"
CITIES = ("Lisbon", "Berlin", "Oslo", "Vienna", "Prague", "Madrid", "Dublin", "Rome")
GIVE_UP = 600.0


def value(session: int, number: int) -> bytes:
    return user_turn(
        tenant_id=TENANT,
        user_id=f"user-{session}",
        session_id=f"session-{session}",
        turn_id=f"turn-{number}",
        text=f"I live in {CITIES[number % len(CITIES)]}.",
    )


async def throughput(ports: Beside, *, turns: int, sessions: int) -> float:
    """Turns per second, from the first append until every stage has read all it has to."""
    sender = TurnSender(ports.log, "bench")
    began = time.monotonic()
    values = [value(n % sessions, n // sessions) for n in range(turns)]
    await asyncio.gather(*(sender.send(read_turn(each), each) for each in values))
    while not await nothing_left(ports.log):
        if time.monotonic() - began > GIVE_UP:
            raise click.ClickException(f"not done after {GIVE_UP:.0f} s")
        await asyncio.sleep(0.1)
    return turns / (time.monotonic() - began)


async def latencies(ports: Beside, *, turns: int) -> list[float]:
    """Seconds from the append to the change of the fact, one turn at a time."""
    sender = TurnSender(ports.log, "bench")
    person = Person(TENANT, "user-alone")
    seconds: list[float] = []
    async with fed(ports.log, person, lambda seen: None) as feed:
        for number in range(turns):
            raw = user_turn(
                tenant_id=TENANT,
                user_id=person.user_id,
                session_id=f"alone-{number}",
                turn_id="turn",
                text=f"I have a cat named Cat{chr(65 + number % 26)}{chr(97 + number // 26)}.",
            )
            began = time.monotonic()
            await sender.send(read_turn(raw), raw)
            await until_done(feed, f"alone-{number}")
            seconds.append(time.monotonic() - began)
    return seconds


async def until_done(feed: Feed, session_id: str) -> None:
    if not await feed.turn_done(session_id, "turn", within=GIVE_UP):
        raise click.ClickException(f"{session_id} was not done after {GIVE_UP:.0f} s")


async def measure(turns: int, sessions: int, alone: int) -> dict[str, float]:
    settings, policy = load()
    with tempfile.TemporaryDirectory() as folder:
        address = f"{EMBEDDED}{folder}"
        settings = settings.model_copy(update={"broker": address, "qdrant": address, "datadir": Path(folder)})
        async with stages_or_beside(settings, policy, purpose="bench") as ports:
            rate = await throughput(ports, turns=turns, sessions=sessions)
            seconds = sorted(await latencies(ports, turns=alone))
    return {
        "turns_per_second": round(rate, 1),
        "turn_to_fact_p50_ms": round(statistics.median(seconds) * 1000, 1),
        "turn_to_fact_p95_ms": round(seconds[int(len(seconds) * 0.95)] * 1000, 1),
    }


@click.command()
@click.option("--turns", default=1_000, show_default=True)
@click.option("--sessions", default=100, show_default=True)
@click.option("--alone", default=100, show_default=True, help="Turns whose latency is taken, one at a time.")
def main(turns: int, sessions: int, alone: int) -> None:
    """Measure the pipeline on this machine."""
    logs.configure(level=logging.ERROR)
    figures = asyncio.run(measure(turns, sessions, alone))
    report = {
        "at": datetime.now(UTC).isoformat(),
        "version": __version__,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "turns": turns,
        "sessions": sessions,
        **figures,
    }
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "pipeline.json").write_text(json.dumps(report, indent=1) + "\n")
    table = Table("measure", "value", box=None)
    for name, figure in report.items():
        table.add_row(name, str(figure))
    Console().print(table)


if __name__ == "__main__":
    main()
