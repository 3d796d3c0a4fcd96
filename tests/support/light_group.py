"""Members of a stage's consumer group without tables: the assignor of a worker, and aiokafka's coordinator on a broker.

The sizes of the topics are made up. What the members and the broker send each other is not.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.errors import KafkaError
from yarl import URL

from memstream.schemas.topics import COMMANDS_SESSION, TURNS

CHANGELOG = "memory-observer-working_set-changelog"
TOPICS = frozenset({TURNS.name, COMMANDS_SESSION.name, CHANGELOG})


class MadeUpCluster:
    """Topics of a made-up size: `counts` by name, all others `every`."""

    def __init__(self, every: int = 0, **counts: int) -> None:
        self._every, self._counts = every, counts

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        count = self._counts.get(topic, self._every)
        return set(range(count)) if count else None


def assignor_of(kind: type[Any], folder: Path, name: str, *, replicas: int = 0) -> Any:
    """Build the assignor of one worker of the observer, on a host of its own."""
    datadir = folder / name
    datadir.mkdir(parents=True, exist_ok=True)
    app = SimpleNamespace(
        tables=SimpleNamespace(changelog_topics={CHANGELOG}, data={}),
        conf=SimpleNamespace(canonical_url=URL(f"http://{name}.memory.svc:6066"), datadir=datadir),
        sensors=SimpleNamespace(
            on_assignment_start=lambda *_: None,
            on_assignment_error=lambda *_: None,
            on_assignment_completed=lambda *_: None,
        ),
        tracer=None,
    )
    return kind(app, replicas=replicas)


class _OfMadeUpTopics:
    """An assignor that believes in the made-up cluster."""

    def __init__(self, assignor: Any, cluster: MadeUpCluster) -> None:
        self._assignor, self._cluster, self.name = assignor, cluster, assignor.name
        self.metadata, self.on_assignment = assignor.metadata, assignor.on_assignment

    def assign(self, _: Any, members: Any) -> Any:
        return self._assignor.assign(self._cluster, members)


class LightMember:
    """One member of a group on a broker. It joins when it is made, inside an event loop."""

    def __init__(self, client: AIOKafkaClient, assignor: Any, group: str, session: float) -> None:
        self._client, self._subscription = client, SubscriptionState()
        self._subscription.register_fetch_waiters(set())
        self._coordinator = GroupCoordinator(
            client,
            self._subscription,
            group_id=group,
            session_timeout_ms=int(session * 1000),
            heartbeat_interval_ms=200,
            rebalance_timeout_ms=120_000,
            max_poll_interval_ms=3_600_000,
            enable_auto_commit=False,
            assignors=(assignor,),
        )
        self._subscription.subscribe(set(TOPICS))

    def partitions(self) -> list[int]:
        """Return the partitions of the turns that it has now."""
        return [tp.partition for tp in self._subscription.assigned_partitions() if tp.topic == TURNS.name]

    def failure(self) -> str:
        """Return what the broker refused, "" if nothing."""
        try:
            self._coordinator.check_errors()
        except KafkaError as error:
            return repr(error)
        return ""

    async def leave(self) -> None:
        await self._coordinator.close()
        await self._client.close()

    async def die(self) -> None:
        """End without a word to the group."""
        self._coordinator._maybe_leave_group = _say_nothing
        await self.leave()


async def _say_nothing() -> None: ...


class LightGroup:
    """A group of light members, by name. `session`: seconds after which a silent one is removed."""

    def __init__(self, broker: str, partitions: int, folder: Path, session: float = 60.0) -> None:
        self._broker, self._folder, self._partitions, self._session = broker, folder, partitions, session
        self._cluster, self._id = MadeUpCluster(partitions), f"light-{uuid.uuid4().hex[:8]}"
        self.members: dict[str, LightMember] = {}

    async def join(self, kind: type[Any], *names: str) -> None:
        clients = [AIOKafkaClient(bootstrap_servers=self._broker, request_timeout_ms=60_000) for _ in names]
        await asyncio.gather(*(client.bootstrap() for client in clients))
        for name, client in zip(names, clients, strict=True):
            assignor = _OfMadeUpTopics(assignor_of(kind, self._folder, name), self._cluster)
            self.members[name] = LightMember(client, assignor, self._id, self._session)

    async def leave(self, name: str) -> None:
        await self.members.pop(name).leave()

    async def die(self, name: str) -> None:
        await self.members.pop(name).die()

    def owners(self) -> Mapping[int, str]:
        return {number: name for name, member in self.members.items() for number in member.partitions()}

    def is_shared_out(self) -> bool:
        """Whether each partition is at one member, and each member has some."""
        given = [member.partitions() for member in self.members.values()]
        return all(given) and sorted(chain.from_iterable(given)) == list(range(self._partitions))

    def failure(self) -> str:
        """Return what the broker refused, "" if nothing."""
        return next((told for told in (member.failure() for member in self.members.values()) if told), "")

    async def close(self) -> None:
        await asyncio.gather(*(self.leave(name) for name in list(self.members)))
