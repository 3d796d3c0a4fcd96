"""Worker processes on a real broker (tests/support/kafka_worker.py), their input, and an audit for lost or
repeated records.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from memstream.streams.log.kafka import KafkaLog
from memstream.streams.log.port import TopicSpec
from tests.support.polling import wait_for

PARTITIONS = 4
ROOT = Path(__file__).resolve().parents[2]


class Workers:
    """Worker processes of one test; `close` ends them all. `static`: each is a static member with its own name."""

    def __init__(self, *, folder: Path, broker: str, name: str, static: bool = False, **options: Any) -> None:
        self.folder, self.name, self.static = folder, name, static
        self.options = {"broker": f"kafka://{broker}", "name": name, "partitions": PARTITIONS, **options}
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, worker: str) -> None:
        member = {"worker_id": worker} if self.static else {}
        options = {**self.options, **member, "datadir": str(self.folder / worker), "note": str(self._notes(worker))}
        with (self.folder / f"{worker}.err").open("ab") as err:
            self.running[worker] = subprocess.Popen(
                [sys.executable, "-m", "tests.support.kafka_worker", json.dumps(options)],
                cwd=ROOT,
                stderr=err,
                stdout=err,
            )

    def signal(self, worker: str, how: signal.Signals) -> None:
        os.kill(self.running[worker].pid, how)

    async def ended(self, worker: str, timeout: float = 60) -> int:
        process = self.running.pop(worker)
        try:
            return await asyncio.to_thread(process.wait, timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"{worker} did not end in {timeout} s\n{self.errors(worker)}") from None

    async def supervise(self, stop: asyncio.Event) -> None:
        """Restart workers that end with exit 3 (a server cannot be reached); any other end is final."""
        while not stop.is_set():
            for worker, process in list(self.running.items()):
                if process.poll() == 3:
                    self.start(worker)
            await asyncio.sleep(0.2)

    def notes(self, worker: str) -> list[dict[str, Any]]:
        path = self._notes(worker)
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def of(self, worker: str, what: str) -> list[dict[str, Any]]:
        return [n for n in self.notes(worker) if n["what"] == what]

    def readies(self, worker: str) -> list[dict[str, Any]]:
        return self.of(worker, "ready")

    def errors(self, worker: str) -> str:
        return (self.folder / f"{worker}.err").read_text()[-4000:]

    def close(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()

    def _notes(self, worker: str) -> Path:
        return self.folder / f"{worker}.notes"


async def make_topics(log: KafkaLog, name: str, partitions: int = PARTITIONS) -> None:
    await log.create(
        [
            TopicSpec(f"{name}-in", partitions, 1, {}),
            TopicSpec(f"{name}-out", partitions, 1, {}),
            TopicSpec(f"{name}-count-changelog", partitions, 1, {"cleanup.policy": "compact"}),
        ]
    )


async def feed(log: KafkaLog, name: str, counts: Counter[str], n: int, keys: int = 20) -> None:
    for i in range(n):
        key = f"k{i % keys}"
        await log.append(f"{name}-in", key=key.encode(), value=str(counts[key]).encode())
        counts[key] += 1


async def lag(log: KafkaLog, name: str) -> int:
    committed, ends = await log.committed(name, f"{name}-in"), await log.ends(f"{name}-in")
    return sum(end - (at or 0) for at, end in zip(committed, ends, strict=True))


async def drained(log: KafkaLog, name: str, timeout: float = 60) -> None:
    """Wait until the workers have committed all that is on their topic."""
    await wait_for(lambda: lag(log, name), "lag 0", until=lambda left: left == 0, deadline=timeout, pause=0.2)


async def audit(log: KafkaLog, name: str, counts: Counter[str], *, table: bool = True) -> dict[str, int]:
    """Count lost, disordered (first arrivals per key) and repeated records, and wrong last rows of the changelog."""
    seen: dict[str, list[int]] = {}
    doubles = disorder = 0
    async for record in log.read(f"{name}-out"):
        assert record.key is not None
        assert record.value is not None
        firsts = seen.setdefault(record.key.decode(), [])
        seq = int(record.value)
        if seq in firsts:
            doubles += 1
            continue
        disorder += bool(firsts) and seq < firsts[-1]
        firsts.append(seq)
    lost = sum(n - len(seen.get(key, [])) for key, n in counts.items())
    rows: dict[str, dict[str, int]] = {}
    async for record in log.read(f"{name}-count-changelog"):
        assert record.key is not None
        assert record.value is not None
        rows[record.key.decode()] = json.loads(record.value)
    wrong = table and sum(rows[key]["n"] != n or rows[key]["wrong"] > 0 for key, n in counts.items())
    return {"lost": lost, "disorder": disorder, "wrong_rows": int(wrong), "doubles": doubles}


NOTHING_WRONG = {"lost": 0, "disorder": 0, "wrong_rows": 0}


def without_doubles(found: dict[str, int]) -> dict[str, int]:
    return {k: v for k, v in found.items() if k != "doubles"}
