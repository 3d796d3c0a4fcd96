"""Cost of a stage's consumer group for its broker and its leader, by the number of partitions and workers.

    python -m bench.groups                                    # 1 000 x 50 and 10 000 x 100, simulated
    python -m bench.groups --broker HOST:PORT                 # the same groups on a broker, formed by light members
    python -m bench.groups --assignor faust --sizes 1000x50

The simulation runs the real assignor through a first assignment, a second assignment, and a join and a leave of one
worker. `record` is the size of the record in which the broker stores a group: subscription and assignment of each
member. A broker accepts 1 MB by default. `moved` counts partitions that moved between two workers that stay.

A light member is aiokafka's coordinator with a worker's assignor, without tables (tests/support/light_group.py).
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from faust.assignor import PartitionAssignor

from memstream.schemas.topics import TURNS
from memstream.streams.faust.assignor import StageAssignor
from tests.support.light_group import TOPICS, LightGroup, MadeUpCluster, assignor_of

ASSIGNORS: Mapping[str, type[Any]] = {"faust": PartitionAssignor, "ours": StageAssignor}
SIZES = "1000x50,10000x100"
#: bytes per member in the record besides its subscription and assignment: ids, host, time-outs
MEMBER_BYTES = 150


class SimulatedGroup:
    """A group of members in this process. In `rebalance` all members join, and one of them assigns the partitions."""

    def __init__(self, kind: str, partitions: int, folder: Path) -> None:
        self._kind, self._folder, self._cluster = kind, folder, MadeUpCluster(partitions)
        self._members: dict[str, Any] = {}
        self._started = 0

    def join(self, count: int = 1) -> None:
        for _ in range(count):
            assignor = assignor_of(ASSIGNORS[self._kind], self._folder, f"observer-{self._started}")
            self._members[f"faust-0.15.3-{uuid.uuid4()}"] = assignor
            self._started += 1

    def leave(self) -> None:
        del self._members[next(iter(self._members))]

    def rebalance(self) -> tuple[float, int, int]:
        """Return the seconds of `assign`, the bytes of the group's record, and the number of moved partitions."""
        before = self._owners()
        joined = {member: assignor.metadata(TOPICS) for member, assignor in self._members.items()}
        began = time.perf_counter()
        assigned = next(iter(self._members.values())).assign(self._cluster, joined)
        seconds = time.perf_counter() - began
        size = sum(
            MEMBER_BYTES + len(joined[member].encode()) + len(assigned[member].encode()) for member in self._members
        )
        for member, assignor in self._members.items():
            assignor.on_assignment(assigned[member])
        after = self._owners()
        return seconds, size, sum(before.get(number) not in (None, owner) for number, owner in after.items())

    def _owners(self) -> dict[int, str]:
        return {
            tp.partition: member
            for member, assignor in self._members.items()
            for tp in assignor.assigned_actives()
            if tp.topic == TURNS.name
        }


def simulate(kind: str, partitions: int, workers: int, folder: Path) -> None:
    group = SimulatedGroup(kind, partitions, folder)

    def tell(what: str) -> None:
        seconds, size, moved = group.rebalance()
        print(
            f"{kind:6}{partitions:7} x {workers:3}  {what:11} assign {seconds:7.3f} s  record {size / 1e6:7.3f} MB"
            f"  moved {moved}",
            flush=True,
        )

    group.join(workers)
    tell("first")
    tell("again")
    group.join()
    tell("one joins")
    group.leave()
    tell("one leaves")


async def form(kind: str, partitions: int, workers: int, folder: Path, broker: str, wait: float) -> None:
    """Form the group on a broker, then let one more worker join and leave. Print the time or failure of each step."""
    group = LightGroup(broker, partitions, folder)

    async def shared_out(what: str) -> bool:
        began = time.perf_counter()
        failure = ""
        while not failure and not group.is_shared_out():
            await asyncio.sleep(0.05)
            late = time.perf_counter() - began > wait
            failure = group.failure() or ("not shared out" if late else "")
        seconds = time.perf_counter() - began
        print(f"{kind:6}{partitions:7} x {workers:3}  {what:11} {seconds:6.1f} s  {failure}", flush=True)
        return not failure

    try:
        await group.join(ASSIGNORS[kind], *(f"observer-{number}" for number in range(workers)))
        if await shared_out("first"):
            await group.join(ASSIGNORS[kind], "one-more")
            if await shared_out("one joins"):
                await group.leave("one-more")
                await shared_out("one leaves")
    finally:
        await group.close()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", default=SIZES, help="partitions x workers")
    parser.add_argument("--assignor", choices=list(ASSIGNORS), action="append", help="both if not given")
    parser.add_argument("--broker", help="host:port")
    parser.add_argument("--wait", type=float, default=120.0, help="seconds for a group on a broker")
    options = parser.parse_args(arguments)
    logging.disable()
    for size in options.sizes.split(","):
        partitions, workers = map(int, size.split("x"))
        for kind in options.assignor or ASSIGNORS:
            with TemporaryDirectory() as folder:
                if options.broker:
                    asyncio.run(form(kind, partitions, workers, Path(folder), options.broker, options.wait))
                else:
                    simulate(kind, partitions, workers, Path(folder))


if __name__ == "__main__":
    main()
