"""What a consumer group of a stage costs at its broker and its leader, by the number of partitions and workers.

    python -m bench.groups                                    # 1 000 x 50 and 10 000 x 100, simulated
    python -m bench.groups --broker HOST:PORT                 # the same groups, formed on a broker by light members
    python -m bench.groups --assignor faust --sizes 1000x50

The simulation runs the assignor itself through a first assignment, a join and a leave of one worker. `MB` is what the
broker stores of a group in one record of its offsets topic: subscription and assignment of each member. It takes 1 MB
by default.

A light member is aiokafka's coordinator with the assignor of a worker, without tables. All of them run in this process.
The sizes of the topics are made up, the records of the group are not.
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
from types import SimpleNamespace
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.errors import KafkaError
from faust.assignor import PartitionAssignor
from yarl import URL

from memstream.schemas.topics import COMMANDS_SESSION, TURNS
from memstream.streams.faust.assignor import StageAssignor

ASSIGNORS: Mapping[str, type[Any]] = {"faust": PartitionAssignor, "ours": StageAssignor}
SOURCES = (TURNS.name, COMMANDS_SESSION.name)
CHANGELOG = "memory-observer-working_set-changelog"
TOPICS = {*SOURCES, CHANGELOG}
SIZES = "1000x50,10000x100"
#: bytes of a member in the record, beside what it sent and got: ids, host, time-outs
MEMBER_BYTES = 150


class Topics:
    """Topics of a made-up size."""

    def __init__(self, partitions: int) -> None:
        self._numbers = set(range(partitions))

    def partitions_for_topic(self, topic: str) -> set[int]:
        return self._numbers


def assignor_of(kind: str, worker: int, folder: Path) -> Any:
    """Build the assignor of one worker of the observer, on a host of its own."""
    sensors = SimpleNamespace(
        on_assignment_start=lambda *_: None,
        on_assignment_error=lambda *_: None,
        on_assignment_completed=lambda *_: None,
    )
    datadir = folder / f"w{worker}"
    datadir.mkdir(parents=True, exist_ok=True)
    app = SimpleNamespace(
        tables=SimpleNamespace(changelog_topics={CHANGELOG}, data={}),
        conf=SimpleNamespace(canonical_url=URL(f"http://observer-{worker}.memory.svc:6066"), datadir=datadir),
        sensors=sensors,
        tracer=None,
    )
    return ASSIGNORS[kind](app)


class Group:
    """A simulated group. `rebalance` lets everybody join and takes the assignment of its first member."""

    def __init__(self, kind: str, partitions: int, folder: Path) -> None:
        self._kind, self._folder, self._topics = kind, folder, Topics(partitions)
        self.members: dict[str, Any] = {}
        self._count = 0

    def join(self) -> None:
        self.members[f"faust-0.15.3-{uuid.uuid4()}"] = assignor_of(self._kind, self._count, self._folder)
        self._count += 1

    def leave(self) -> None:
        del self.members[next(iter(self.members))]

    def rebalance(self) -> tuple[float, int, int]:
        """Return the seconds of `assign`, the bytes of the group's record, and how many partitions moved."""
        before = self._owners()
        joined = {member: assignor.metadata(TOPICS) for member, assignor in self.members.items()}
        began = time.perf_counter()
        assigned = next(iter(self.members.values())).assign(self._topics, joined)
        seconds = time.perf_counter() - began
        size = sum(
            len(member) * 2 + MEMBER_BYTES + len(joined[member].encode()) + len(assigned[member].encode())
            for member in joined
        )
        for member, assignor in self.members.items():
            assignor.on_assignment(assigned[member])
        after = self._owners()
        return seconds, size, sum(before.get(number) not in (None, owner) for number, owner in after.items())

    def _owners(self) -> dict[int, str]:
        return {
            tp.partition: member
            for member, assignor in self.members.items()
            for tp in assignor.assigned_actives()
            if tp.topic == TURNS.name
        }


def simulate(kind: str, partitions: int, workers: int, folder: Path) -> None:
    group = Group(kind, partitions, folder)
    for _ in range(workers):
        group.join()
    tell(kind, partitions, workers, "first", *group.rebalance())
    tell(kind, partitions, workers, "again", *group.rebalance())
    group.join()
    tell(kind, partitions, workers, "one joins", *group.rebalance())
    group.leave()
    tell(kind, partitions, workers, "one leaves", *group.rebalance())


def tell(kind: str, partitions: int, workers: int, what: str, seconds: float, size: int, moved: int) -> None:
    print(
        f"{kind:6} {partitions:6} x {workers:3}  {what:11} assign {seconds:7.3f} s  record {size / 1e6:7.3f} MB"
        f"  moved {moved}",
        flush=True,
    )


# ------------------------------------------------------------------------------------------------ on a broker
class OfMadeUpTopics:
    """An assignor that believes in topics of another size."""

    def __init__(self, assignor: Any, topics: Topics) -> None:
        self.inner, self._topics = assignor, topics
        self.name = assignor.name
        self.metadata, self.on_assignment = assignor.metadata, assignor.on_assignment

    def assign(self, _: Any, members: Any) -> Any:
        return self.inner.assign(self._topics, members)


class Light:
    """A light member of a group on a broker."""

    def __init__(self, client: AIOKafkaClient, assignor: Any, topics: Topics, group: str) -> None:
        self._client, self._subscription = client, SubscriptionState()
        self._subscription.register_fetch_waiters(set())
        self._coordinator = GroupCoordinator(
            client,
            self._subscription,
            group_id=group,
            session_timeout_ms=60_000,
            heartbeat_interval_ms=500,
            rebalance_timeout_ms=120_000,
            max_poll_interval_ms=3_600_000,
            enable_auto_commit=False,
            assignors=(OfMadeUpTopics(assignor, topics),),
        )

    def join(self) -> None:
        self._subscription.subscribe(TOPICS)

    def numbers(self) -> list[int]:
        """Return the partitions of the turns that it has now."""
        return [tp.partition for tp in self._subscription.assigned_partitions() if tp.topic == TURNS.name]

    def failure(self) -> str:
        try:
            self._coordinator.check_errors()
        except KafkaError as error:
            return repr(error)
        return ""

    async def leave(self) -> None:
        await self._coordinator.close()
        await self._client.close()


async def form(kind: str, partitions: int, workers: int, folder: Path, broker: str, wait: float) -> None:
    """Form the group on a broker, then let one more join and leave. Print how long each took, or what failed."""
    group, topics, members = f"groups-{uuid.uuid4().hex[:8]}", Topics(partitions), list[Light]()

    async def join() -> None:
        client = AIOKafkaClient(bootstrap_servers=broker, request_timeout_ms=60_000)
        await client.bootstrap()
        members.append(Light(client, assignor_of(kind, len(members), folder), topics, group))

    async def shared_out(what: str) -> bool:
        """Wait until each partition has one owner and everybody has some."""
        began, failure = time.perf_counter(), f"not shared out in {wait:.0f} s"
        while time.perf_counter() - began < wait:
            given = [member.numbers() for member in members]
            if all(given) and sorted(n for numbers in given for n in numbers) == list(range(partitions)):
                failure = ""
                break
            failed = [text for text in (member.failure() for member in members) if text]
            if failed:
                failure = failed[0]
                break
            await asyncio.sleep(0.05)
        seconds = time.perf_counter() - began
        print(f"{kind:6} {partitions:6} x {workers:3}  on a broker, {what:10} {seconds:6.1f} s  {failure}", flush=True)
        return not failure

    try:
        for _ in range(workers):
            await join()
        for member in members:
            member.join()
        if await shared_out("first"):
            await join()
            members[-1].join()
            if await shared_out("one joins"):
                await members.pop().leave()
                await shared_out("one leaves")
    finally:
        for member in members:
            await member.leave()


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
