"""Cost of durability in the embedded default: `python -m bench.durability [--turns 300] [--rounds 3]`.

Each round creates a folder, starts one worker of all stages with the offline model, and measures the rate at which a
backlog is handled. Then, with one turn at a time, it measures the time of `produce` and the time until the fact's
event. Run it alternately with two versions of the code, and compare.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import click

from memstream.schemas import ids
from memstream.schemas.topics import FACTS_UPDATED, STAGES, TURNS, group_of, read_by
from memstream.streams.log.embedded import EmbeddedLog
from tests.support.environment import clean_environment
from tests.support.polling import wait_for

from .turns import percentile
from .world import cpu_seconds

PLACES = ("Google", "Stripe", "Siemens", "Nokia", "Spotify", "Airbus", "Ericsson", "Philips", "Bosch", "Volvo")
USERS = 60
GIVE_UP = 180.0


def _turn(number: int, user: str) -> tuple[bytes, bytes]:
    place = PLACES[number % len(PLACES)]
    said = f"I now work at {place}."
    turn = {
        "tenant_id": "acme", "user_id": user, "session_id": "s1", "turn_id": f"t{number}",
        "messages": [{"role": "user", "content": said}],
    }  # fmt: skip
    return ids.session_key("acme", user, "s1").encode(), json.dumps(turn).encode()


async def _lag(log: EmbeddedLog) -> int:
    lag = 0
    for stage in STAGES[:3]:  # consolidation runs when it is due
        for topic in read_by(stage):
            if await log.partitions(topic.name):
                committed = await log.committed(group_of(stage), topic.name)
                lag += sum(e - (c or 0) for e, c in zip(await log.ends(topic.name), committed, strict=True))
    return lag


def _worker(folder: Path) -> subprocess.Popen[bytes]:
    env = clean_environment() | {"MEMSTREAM_DATADIR": str(folder / "data"), "MEMSTREAM_HEALTH_PORT": "0"}
    command = (sys.executable, "-m", "memstream.cli", "worker", *STAGES)
    with (folder / "worker.log").open("wb") as out:
        return subprocess.Popen(command, cwd=folder, env=env, stdout=out, stderr=out)


async def measure(folder: Path, turns: int) -> dict[str, float]:
    worker = _worker(folder)
    log = EmbeddedLog(folder=folder / "data")
    try:
        await log.start()
        await wait_for(lambda: log.partitions(FACTS_UPDATED.name), "the topics", deadline=GIVE_UP)
        for number in range(3):
            key, value = _turn(number, "warm")
            await log.append(TURNS.name, key=key, value=value)
        await wait_for(lambda: _lag(log), "lag 0", until=lambda lag: not lag, deadline=GIVE_UP)

        began, worked = time.perf_counter(), cpu_seconds(worker.pid)
        for number in range(turns):
            key, value = _turn(number // USERS, f"u{number % USERS}")
            await log.append(TURNS.name, key=key, value=value)
        await wait_for(lambda: _lag(log), "lag 0", until=lambda lag: not lag, deadline=GIVE_UP, pause=0.02)
        rate = turns / (time.perf_counter() - began)
        worked = cpu_seconds(worker.pid) - worked

        since = dict(enumerate(await log.ends(FACTS_UPDATED.name)))
        told = log.read(FACTS_UPDATED.name, start=since, follow=True)
        produced, known = [], []
        for number in range(60):
            key, value = _turn(number, f"one{number}")
            sent = time.perf_counter()
            await log.append(TURNS.name, key=key, value=value)
            produced.append(1000 * (time.perf_counter() - sent))
            async for record in told:
                if f"/one{number}".encode() in (record.key or b""):
                    break
            known.append(1000 * (time.perf_counter() - sent))
        await told.aclose()
    finally:
        await log.close()
        worker.terminate()
        worker.wait(GIVE_UP)
    return {
        "turns/s": rate,
        "cpu ms a turn": 1000 * worked / turns,
        "produce p50 ms": percentile(produced, 0.5),
        "produce p95 ms": percentile(produced, 0.95),
        "fact p50 ms": percentile(known, 0.5),
        "fact p95 ms": percentile(known, 0.95),
    }


@click.command()
@click.option("--turns", default=300, show_default=True)
@click.option("--rounds", default=3, show_default=True)
def main(turns: int, rounds: int) -> None:
    """Measure the embedded default; the last line has the medians."""
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as made:
            found.append(asyncio.run(measure(Path(made), turns)))
        click.echo(json.dumps({name: round(value, 1) for name, value in found[-1].items()}))
    click.echo(json.dumps({name: round(median(each[name] for each in found), 1) for name in found[0]}))


if __name__ == "__main__":
    main()
