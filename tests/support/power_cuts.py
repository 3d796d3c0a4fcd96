"""Power cuts at random moments under an embedded memory: `python -m tests.support.power_cuts --cuts 200 --seed 1`.

Each round starts a worker of all stages on a disk (loop_disk.py), waits until the log is worked off, and holds log,
tables and store to the invariants of `memstream verify` and to what was said. Then users tell where they work now, and
at a random moment the power is cut: also while it starts or recovers. A turn in doubt is sent again under its id.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import click
import httpx

from memstream.schemas import ids
from memstream.schemas.collections import FACTS
from memstream.schemas.errors import StageError
from memstream.schemas.facts import StoredFact
from memstream.schemas.topics import STAGES, TURNS, group_of, read_by
from memstream.schemas.turns import Turn
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import Log
from memstream.verification.rows import TurnName

from .environment import clean_environment
from .fork_server import ForkedCommand
from .kafka import free_port
from .loop_disk import LoopDisk, loop_disk
from .polling import wait_for
from .processes import NOTHING_FOLLOWS
from .verification import still_works, store_of, violations

TENANT, SESSION = "acme", "s1"
USERS = 6
PLACES = ("Google", "Stripe", "Siemens", "Nokia", "Spotify", "Airbus", "Ericsson", "Philips", "Bosch", "Volvo")
PAUSE = 0.3
"""Seconds between two turns of a user, at most."""
SCATTERED = 0.6
"""The share of cuts before which some unsynced pages reach the disk."""
DEADLINE = 120.0


class NotSurvived(AssertionError):
    """What a start after a power cut found wrong."""


@dataclass
class User:
    """A user who tells one thing after the other, in one session."""

    name: str
    told: int = 0

    def turn(self) -> dict[str, object]:
        """The turn that was not acknowledged yet."""
        now = PLACES[self.told % len(PLACES)]
        before = PLACES[(self.told - 1) % len(PLACES)]
        said = f"I left {before}. I now work at {now}." if self.told else f"I work at {now}."
        return {
            "tenant_id": TENANT,
            "user_id": self.name,
            "session_id": SESSION,
            "turn_id": f"t{self.told}",
            "messages": [{"role": "user", "content": said}],
        }


@dataclass
class PowerCuts:
    """One folder through many cuts."""

    disk: LoopDisk
    random: random.Random
    logs: Path
    users: list[User] = field(default_factory=lambda: [User(f"u{n}") for n in range(USERS)])
    acknowledged: set[TurnName] = field(default_factory=set)
    rounds: int = 0
    worker: ForkedCommand | None = None
    at: Counter[str] = field(default_factory=Counter)
    """How often the power was cut in which phase."""

    @property
    def _log_file(self) -> Path:
        return self.logs / f"worker-{self.rounds}.log"

    async def round(self) -> None:
        """Start, check, tell, cut. Raises NotSurvived."""
        self.rounds += 1
        self._start()
        phase = self.random.choices(("starting", "told"), (1, 4))[0] if self.rounds > 1 else "told"
        try:
            if phase == "starting":
                await asyncio.sleep(self.random.uniform(0.5, 4.0))
                self._alive()
            else:
                await self.settle_and_check()
                await self._tell(self.random.uniform(0.02, 1.0))
        finally:
            self._cut()
        self.at[phase] += 1

    async def end(self) -> None:
        """Start once more, check, and stop cleanly."""
        self.rounds += 1
        self._start()
        await self.settle_and_check()
        assert self.worker is not None
        self.worker.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(self.worker.wait, DEADLINE)
        if code:
            raise NotSurvived(f"exit {code} at a clean stop\n{self._tail()}")

    async def settle_and_check(self) -> None:
        log = EmbeddedLog(folder=self._data)
        await wait_for(self._ready, "a ready worker", deadline=DEADLINE, detail=self._tail)
        await log.start()
        try:
            wrong = None
            while wrong is None or still_works(wrong):  # reminders come when they are due
                await wait_for(
                    lambda: self._lag(log), "lag 0", until=lambda lag: lag == 0, deadline=DEADLINE, detail=self._tail
                )
                wrong = [*await self._violations(log), *await self._stale(log)]
        finally:
            await log.close()
        if wrong:
            raise NotSurvived(f"after cut {self.rounds - 1}:\n" + "\n".join(wrong) + "\n" + self._tail())

    # ------------------------------------------------------------------------------------------------ inside
    @property
    def _data(self) -> Path:
        return self.disk.folder / ".memstream"

    def _start(self) -> None:
        self._port = free_port()
        self.worker = ForkedCommand(
            ("worker", *STAGES),
            cwd=self.disk.folder,
            env=clean_environment() | {"MEMSTREAM_PARTITIONS": "4", "MEMSTREAM_HEALTH_PORT": str(self._port)},
            stdout=self._log_file,
        )

    def _alive(self) -> None:
        assert self.worker is not None
        code = self.worker.poll()
        if code is not None:
            raise NotSurvived(f"exit {code} at the start after cut {self.rounds - 1}\n{self._tail()}")

    async def _ready(self) -> bool:
        self._alive()
        try:
            async with httpx.AsyncClient() as client:
                return (await client.get(f"http://127.0.0.1:{self._port}/readyz", timeout=5)).status_code == 200
        except httpx.TransportError:
            return False

    async def _lag(self, log: Log) -> int:
        self._alive()
        lag = 0
        for stage in STAGES:
            for topic in read_by(stage):
                committed = await log.committed(group_of(stage), topic.name)
                ends = await log.ends(topic.name)
                lag += sum(end - (at or 0) for at, end in zip(committed, ends, strict=True))
        return lag

    async def _violations(self, log: Log) -> list[str]:
        return await violations(
            log=log,
            environment={"MEMSTREAM_QDRANT": f"embedded://{self._data}"},
            config=self.disk.folder / "memstream.toml",
            tenant=TENANT,
            since={},
            stages=STAGES,
            acknowledged=self.acknowledged,
            refused_by_model=frozenset(),
        )

    async def _stale(self, log: Log) -> list[str]:
        """Compare what is believed with what was said last."""
        said: dict[str, str] = {}
        if await log.partitions(TURNS.name):
            async for record in log.read(TURNS.name):
                turn = Turn.read(record.value or b"")
                said[turn.user_id] = f"Works at {PLACES[int(turn.turn_id[1:]) % len(PLACES)]}"
        believed: dict[str, list[str]] = {user: [] for user in said}
        async with store_of({"MEMSTREAM_QDRANT": f"embedded://{self._data}"}) as store:
            for row in await store.select(FACTS, tenant_id=TENANT) if said else ():
                fact = StoredFact.model_validate(row.payload)
                if fact.state == "active":
                    believed[fact.owner.id].append(fact.content)
        return [f"{user}: said {said[user]}, believed {got}" for user, got in believed.items() if got != [said[user]]]

    async def _tell(self, seconds: float) -> None:
        log = EmbeddedLog(folder=self._data)
        await log.start()
        telling = [asyncio.create_task(self._tell_all(log, user)) for user in self.users]
        await asyncio.wait(telling, timeout=seconds)
        if self.random.random() < SCATTERED:
            await asyncio.to_thread(self.disk.scatter, self.random)
        self.disk.cut()
        for task in telling:
            task.cancel()
        await asyncio.wait(telling)
        await log.close()

    async def _tell_all(self, log: Log, user: User) -> None:
        key = ids.session_key(TENANT, user.name, SESSION)
        while True:
            turn = user.turn()
            try:
                await log.append(TURNS.name, key=key.encode(), value=json.dumps(turn).encode())
            except StageError:  # the power is gone
                return
            self.acknowledged.add((key, str(turn["turn_id"])))
            user.told += 1
            await asyncio.sleep(self.random.uniform(0, PAUSE))

    def _cut(self) -> None:
        self.disk.cut()
        assert self.worker is not None
        self.worker.kill()
        self.worker.wait()
        self.disk.unmount()
        self.disk.mount()

    def _tail(self) -> str:
        return f"{self._log_file}:\n{self._log_file.read_text(errors='replace')[-3000:]}"


async def survive(folder: Path, *, cuts: int, seed: int, lives: int = 20) -> Counter[str]:
    """Cut the power `cuts` times, `lives` times in one folder before the next. Returns how often in which phase."""
    at: Counter[str] = Counter()
    began = time.monotonic()
    done = 0
    while done < cuts:
        with loop_disk(folder / f"disk-{done}") as disk:
            (disk.folder / "memstream.toml").write_text(f"[memory.consolidation]\n{NOTHING_FOLLOWS}\n")
            world = PowerCuts(disk, random.Random(f"{seed}/{done}"), folder)
            for _ in range(min(lives, cuts - done)):
                await world.round()
                done += 1
                click.echo(f"{done} cuts, {len(world.acknowledged)} turns, {time.monotonic() - began:.0f} s", err=True)
            await world.end()
            at += world.at
        with contextlib.suppress(OSError):
            shutil.rmtree(folder / f"disk-{done}")
    return at


@click.command()
@click.option("--cuts", default=200, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), help="Where the disk lies; a temporary folder unless told.")
def main(cuts: int, seed: int, folder: Path | None) -> None:
    """Cut the power under an embedded memory at random moments, and check each start after it."""
    with tempfile.TemporaryDirectory() as made:
        at = asyncio.run(survive(folder or Path(made), cuts=cuts, seed=seed))
    click.echo(f"survived: {dict(at)}")


if __name__ == "__main__":
    main()
