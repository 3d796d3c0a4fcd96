"""Counting workers on a log: processes that tests kill and start again, and a check of what they wrote."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path
from typing import TypeVar

from memstream.schemas.topics import COMMANDS_SESSION, OBSERVATIONS, TURNS
from memstream.streams.log import topic_admin
from memstream.streams.log.markers import MARKER_KEY
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Log, Record
from tests.support.counting_stage import CountRow
from tests.support.polling import Probe, at_least, has_ended, wait_for

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
GROUP = "memory-observer"
CHANGELOG = "memory-observer-working_set-changelog"
LETTERS = "memory.turns.dlq"


class CountingRun:
    """One run. `log` is open. `sent` has the produced ids by key, in order, each once."""

    def __init__(self, *, log: Log, broker: str, folder: Path, partitions: int) -> None:
        self.log, self.broker, self.folder, self.partitions = log, broker, folder, partitions
        self.sent: dict[str, list[str]] = defaultdict(list)
        self._workers: list[subprocess.Popen[bytes]] = []

    async def prepare(self) -> None:
        deployment = topic_admin.Deployment(partitions=self.partitions, replication=1)
        await topic_admin.create(self.log, deployment=deployment)

    # ------------------------------------------------------------------------------------------------ in
    async def produce(self, count: int, *, keys: int = 6, duplicates: bool = True) -> None:
        """Produce `count` new records over `keys` keys; send every tenth twice."""
        for n in range(count):
            key = f"k{n % keys}"
            await self.send(key, str(len(self.sent[key])))
            if duplicates and n % 10 == 9:
                await self._append(key, self.sent[key][-1], "again")

    async def send(self, key: str, id: str, value: str = "x") -> Record:
        if value == "x":
            self.sent[key].append(id)
        return await self._append(key, id, value)

    async def add(self, key: str, *, value: str = "x", padding: int = 0) -> None:
        """Send the next record of a key, which counts whatever its value."""
        id = str(len(self.sent[key]))
        self.sent[key].append(id)
        await self._append(key, id, value, padding)

    async def _append(self, key: str, id: str, value: str, padding: int = 0) -> Record:
        raw = json.dumps({"id": id, "value": value, "padding": "." * padding}).encode()
        position = await self.log.append(TURNS.name, key=key.encode(), value=raw)
        return Record(position, key.encode(), raw)

    # ------------------------------------------------------------------------------------------------ workers
    def start(self, worker: str = "w", **options: str) -> subprocess.Popen[bytes]:
        given = {
            "broker": self.broker,
            "folder": str(self.folder),
            "partitions": str(self.partitions),
            "worker": worker,
        }
        with (self.folder / f"{worker}.log").open("ab") as out:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.support.counting_worker",
                    json.dumps(given | options),
                ],
                cwd=ROOT,
                stdout=out,
                stderr=out,
            )
        self._workers.append(process)
        return process

    def output(self, worker: str = "w") -> str:
        path = self.folder / f"{worker}.log"
        return path.read_text() if path.exists() else ""

    async def ended(self, process: subprocess.Popen[bytes], timeout: float = 40) -> int:
        code = await self.wait_for(process.poll, "the worker to end", until=has_ended, deadline=timeout)
        assert code is not None
        return code

    async def stop(self, process: subprocess.Popen[bytes]) -> None:
        """Send SIGTERM and require exit code 0."""
        process.send_signal(signal.SIGTERM)
        assert await self.ended(process) == 0, self.output()

    async def kill(self, process: subprocess.Popen[bytes]) -> None:
        os.kill(process.pid, signal.SIGKILL)
        assert await self.ended(process) == -signal.SIGKILL

    def close(self) -> None:
        for process in self._workers:
            if process.poll() is None:
                process.kill()
            process.wait()

    async def a_backlog_keeps_nobody_waiting(self) -> None:
        """Check that a turn behind one tenant's backlog of large records is handled while that tenant's events wait.

        The backlog is twenty times what the worker may hold of the partition. Then the worker is killed, and everything
        is handled once.
        """
        hold = self.folder / "hold"
        hold.touch()
        home = partition_for(b"calm/k", self.partitions)
        names = (f"loud/{n}" for n in count())
        keys = list(islice((key for key in names if partition_for(key.encode(), self.partitions) == home), 30))
        size, events = 20_000, 300
        for n in range(events):
            await self.add(keys[n % len(keys)], value="hold", padding=size)
        await self.add("calm/k")
        held = str(2 * self.partitions * size * events // 20)  # it reads two topics, whose partitions have equal parts
        worker = self.start(held_bytes=held)
        before = len(self.sent["calm/k"]) - 1

        async def calm() -> int:
            return sum(record.key == b"calm/k" for record in await self.records(OBSERVATIONS.name))

        await self.wait_for(calm, "the calm tenant's record", until=at_least(before + 1))
        await self.kill(worker)
        hold.unlink()
        worker = self.start(held_bytes=held)
        await self.drained(60)
        await self.stop(worker)
        await self.check()

    # ------------------------------------------------------------------------------------------------ waiting
    async def wait_for(
        self, probe: Probe[T], what: str, *, until: Callable[[T], object] = bool, deadline: float = 40
    ) -> T:
        """Call `polling.wait_for` with a message that ends with the worker's output."""
        return await wait_for(probe, what, until=until, deadline=deadline, detail=lambda: self.output()[-5000:])

    async def handled(self, count: int) -> None:
        """Wait until so many records came out."""

        async def out() -> int:
            return sum(await self.log.ends(OBSERVATIONS.name))

        await self.wait_for(out, f"{count} records out", until=at_least(count))

    async def drained(self, timeout: float = 40) -> None:
        """Wait for lag 0 on all topics that the stage reads."""
        await self.wait_for(self.lag, "lag 0", until=lambda lag: lag == 0, deadline=timeout)

    async def lag(self) -> int:
        lag = 0
        for topic in (TURNS.name, COMMANDS_SESSION.name):
            committed, ends = await self.log.committed(GROUP, topic), await self.log.ends(topic)
            lag += sum(end - (at or 0) for at, end in zip(committed, ends, strict=True))
        return lag

    # ------------------------------------------------------------------------------------------------ looking
    async def records(self, topic: str) -> list[Record]:
        return [record async for record in self.log.read(topic)]

    def points(self) -> list[tuple[str, str]]:
        with sqlite3.connect(self.folder / "sink.db") as sink:
            return list(sink.execute("SELECT id, payload FROM point"))

    async def check(self) -> None:
        """Check that nothing is lost or counted twice, that each key keeps its order, and that duplicates are
        equal in every byte.
        """
        forms: dict[str, set[str]] = defaultdict(set)
        order: dict[str, list[str]] = defaultdict(list)
        counts: dict[str, list[int]] = defaultdict(list)
        for record in await self.records(OBSERVATIONS.name):
            assert record.value is not None
            fields = json.loads(record.value)
            name = f"{fields['key']}/{fields['id']}"
            if name not in forms:
                order[fields["key"]].append(fields["id"])
                counts[fields["key"]].append(fields["count"])
            forms[name].add(record.value.decode())
        assert order == self.sent
        assert counts == {key: list(range(1, len(ids) + 1)) for key, ids in self.sent.items()}
        stored: set[str] = set()
        for name, payload in self.points():
            forms[name].add(payload)
            stored.add(name)
        assert {name: len(each) for name, each in forms.items() if len(each) > 1} == {}
        assert stored == set(forms), "a point and a record for each"
        rows = {record.key: record.value for record in await self.records(CHANGELOG)}
        table = {key.decode(): raw for key, raw in rows.items() if key is not None and raw is not None}
        table.pop(MARKER_KEY, None)
        kept = {key: CountRow.model_validate_json(raw).count for key, raw in table.items() if "#" not in key}
        assert kept == {key: len(ids) for key, ids in self.sent.items()}
        assert not [key for key in table if key.endswith("#gone")]
