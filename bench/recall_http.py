"""Reads of a chat service over HTTP: a single reader, many readers, contexts, and the cost of memory.recalled.

The server is a separate process (recall_server.py). Its processor time is counted, the client's is not.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from .recall_corpus import Cue
from .report import Figure
from .world import ROOT, cpu_seconds

TARGET_RECALL: float = 12.0
TARGET_CONTEXT: float = 15.0
TARGET_PUBLISHING: float = 0.05
TARGET_READERS: float = 250.0
READERS = 16
START_SECONDS = 60.0
STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Asked:
    """The times of requests: sorted seconds, and the server's processor time per request."""

    seconds: Sequence[float]
    cpu: float
    incomplete: int
    """Number of answers with a missing part."""

    @property
    def p50(self) -> float:
        return self.seconds[len(self.seconds) // 2]

    @property
    def p95(self) -> float:
        return self.seconds[min(len(self.seconds) - 1, int(0.95 * len(self.seconds)))]


@dataclass(frozen=True, slots=True)
class Served:
    """A server with a client."""

    url: str
    pid: int
    client: aiohttp.ClientSession

    async def ask(self, path: str, cue: Cue) -> bool:
        """Return whether the answer is complete: on a busy machine, a part may be missing because it was too late."""
        body = {"tenant_id": cue.whose.tenant_id, "user_id": cue.whose.user_id, "cue": cue.text}
        async with self.client.post(f"{self.url}{path}", json=body) as response:
            answer = await response.json()
            assert response.status == 200, answer
            return not answer["missing"]

    async def taken(self, path: str, cues: Sequence[Cue], *, readers: int = 1) -> Asked:
        """Send all cues from each of `readers` concurrent readers. Each reader starts with another cue."""
        took: list[float] = []
        complete = 0

        async def read(first: int) -> None:
            nonlocal complete
            for cue in (*cues[first:], *cues[:first]):
                began = time.perf_counter()
                whole = await self.ask(path, cue)  # a separate line: `+=` would read the count before the answer
                complete += whole
                took.append(time.perf_counter() - began)

        cpu = cpu_seconds(self.pid)
        await asyncio.gather(*(read(number % len(cues)) for number in range(readers)))
        return Asked(sorted(took), (cpu_seconds(self.pid) - cpu) / len(took), len(took) - complete)


@asynccontextmanager
async def served(
    qdrant: str, prefix: str, folder: Path, cues: Sequence[Cue], *, publishing: bool
) -> AsyncIterator[Served]:
    [whose] = {each.whose for each in cues}
    command = [sys.executable, "-m", "bench.recall_server", "--qdrant", qdrant, "--prefix", prefix]
    command += ["--folder", str(folder), "--tenant", whose.tenant_id, "--user", whose.user_id]
    command += ["--cues", str(len(cues)), "--publishing" if publishing else "--silent"]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_SECONDS):
            url = (await process.stdout.readline()).decode().strip()
        assert url, "the server did not start"
        async with aiohttp.ClientSession(headers={"Accept-Encoding": "identity"}) as client:
            yield Served(url, process.pid, client)
    finally:
        process.stdin.close()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def measure(
    qdrant: str, prefix: str, folder: Path, cues: Sequence[Cue], *, pairs: int, what: str, on: str
) -> list[Figure]:
    """Measure a server that publishes memory.recalled, as by default, and a second server that does not."""
    async with (
        served(qdrant, prefix, folder / "publishing", cues, publishing=True) as publishing,
        served(qdrant, prefix, folder / "silent", cues, publishing=False) as silent,
    ):
        for each in (publishing, silent):
            await each.taken("/v1/recall", cues[:10])
            await each.taken("/v1/context", cues[:10])
        recalls, others = [], []
        for number in range(pairs):
            order = (publishing, silent) if number % 2 == 0 else (silent, publishing)
            for each in order:
                (recalls if each is publishing else others).append(await each.taken("/v1/recall", cues))
        contexts = [await publishing.taken("/v1/context", cues) for _ in range(pairs)]
        many = await publishing.taken("/v1/recall", cues, readers=READERS)
    both = list(zip(recalls, others, strict=True))
    return [
        _latency("recall over HTTP, p95", recalls, TARGET_RECALL, what=what, on=on),
        _latency("context (default) over HTTP, p95", contexts, TARGET_CONTEXT, what=what, on=on),
        Figure(
            ratio="readers",
            what=f"recalls a second and core of the HTTP server, {READERS} readers, {what}",
            on=on,
            value=1.0 / many.cpu,
            target=TARGET_READERS,
            detail={"p50 ms": 1_000 * many.p50, "p95 ms": 1_000 * many.p95, "incomplete": many.incomplete},
        ),
        Figure(
            ratio="recalled",
            what=f"share of a reader's processor time that memory.recalled takes, {what}",
            on=on,
            value=statistics.median(1.0 - other.cpu / one.cpu for one, other in both),
            target=TARGET_PUBLISHING,
            better="lower",
            detail={
                "ms": 1_000 * statistics.median(one.cpu - other.cpu for one, other in both),
                "p50 with ms": 1_000 * statistics.median(each.p50 for each in recalls),
                "p50 without ms": 1_000 * statistics.median(each.p50 for each in others),
            },
        ),
    ]


def _latency(name: str, asked: Sequence[Asked], target: float, *, what: str, on: str) -> Figure:
    return Figure(
        ratio="HTTP",
        what=f"{name}, {what}",
        on=on,
        value=1_000 * statistics.median(each.p95 for each in asked),
        unit="ms",
        target=target,
        better="lower",
        detail={
            "p50 ms": 1_000 * statistics.median(each.p50 for each in asked),
            "server's CPU ms": 1_000 * statistics.median(each.cpu for each in asked),
            "incomplete": sum(each.incomplete for each in asked),
        },
    )
