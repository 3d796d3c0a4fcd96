"""Alternating runs of two kinds: A/B, then B/A, so that changes on the machine affect both."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from memstream.cli.process.garbage_collection import tune_garbage_collection

Run = Callable[[], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Taken:
    """Times of consecutive runs in seconds: the median, the 95th percentile, and this process's CPU time per run."""

    p50: float
    p95: float
    cpu: float


async def taken(runs: Sequence[Run]) -> Taken:
    each, cpu = [], time.process_time()
    for run in runs:
        began = time.perf_counter()
        await run()
        each.append(time.perf_counter() - began)
    cpu = (time.process_time() - cpu) / len(runs)
    each.sort()
    return Taken(each[len(each) // 2], each[min(len(each) - 1, int(0.95 * len(each)))], cpu)


async def alternated(one: Sequence[Run], other: Sequence[Run], *, pairs: int) -> list[tuple[Taken, Taken]]:
    """Run both in pairs: A/B, then B/A. The garbage collector is tuned as in a process that serves reads."""
    tune_garbage_collection()
    await taken(one[:10])
    await taken(other[:10])
    found = []
    for number in range(pairs):
        if number % 2 == 0:
            first = await taken(one)
            second = await taken(other)
        else:
            second = await taken(other)
            first = await taken(one)
        found.append((first, second))
    return found
