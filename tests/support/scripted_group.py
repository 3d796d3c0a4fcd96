"""aiokafka's group coordinator as the member of a scripted group, without a broker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection
from types import SimpleNamespace
from typing import Any

from aiokafka import TopicPartition
from aiokafka.cluster import ClusterMetadata
from aiokafka.consumer.group_coordinator import (
    GroupCoordinator,
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocol
from aiokafka.protocol.admin import DescribeGroupsRequest
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.structs import OffsetAndMetadata

from tests.support.polling import wait_for

COMMITTED = 7
"""Offset that the group has committed in each partition."""
OK, ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCING = 0, 22, 25, 27
MEMBER = "m-1"
WITHIN = 5.0
"""Seconds within which the requests of a member arrive."""


class ScriptedGroup:
    """The client of one member and the group behind it, as far as Kafka's classic protocol goes.

    Requests of one connection are answered in order, so that a request after a JoinGroup waits until the group is
    complete.
    """

    def __init__(self, tps: Collection[TopicPartition]) -> None:
        self.cluster = ClusterMetadata()
        self.generation = 0
        self.whole = asyncio.Event()
        """Set when every other member has joined."""
        self.whole.set()
        self.seen: list[str] = []
        """Requests in arrival order, and the results of commits."""
        self.rebalancing = False
        self.members: list[str] = []
        """Ids that DescribeGroups shows."""
        self.described_as = OK
        self.offsets_refused: list[int] = []
        """Errors of the whole group that its next answers about offsets have."""
        self.unknown = False
        """Another process has the member's place."""
        self._tps = tps
        self._connection = asyncio.Lock()

    def rebalance(self) -> None:
        """Start a rebalance: another member joins or leaves, and the group waits for the rest."""
        self.rebalancing = True
        self.whole.clear()

    async def send(self, node_id: int, request: Any, *, group: Any) -> Any:
        self.seen.append(type(request).__name__)
        async with self._connection:
            if isinstance(request, JoinGroupRequest):
                await self.whole.wait()
                self.generation, self.rebalancing = self.generation + 1, False
                return SimpleNamespace(
                    error_code=OK,
                    generation_id=self.generation,
                    member_id=MEMBER,
                    leader_id="somebody else",
                    group_protocol=RoundRobinPartitionAssignor.name,
                )
            if isinstance(request, SyncGroupRequest):
                return SimpleNamespace(error_code=OK, member_assignment=self._assignment())
            if isinstance(request, DescribeGroupsRequest):
                return SimpleNamespace(
                    groups=[(self.described_as, "g", "Stable", "", "", [(member,) for member in self.members])]
                )
            if isinstance(request, HeartbeatRequest):
                return SimpleNamespace(
                    error_code=UNKNOWN_MEMBER if self.unknown else REBALANCING if self.rebalancing else OK
                )
            if isinstance(request, OffsetFetchRequest):
                if self.offsets_refused:
                    return SimpleNamespace(topics=[], error_code=self.offsets_refused.pop(0))
                topics = [
                    (topic, [(each, COMMITTED, "", OK) for each in parts]) for topic, parts in request._partitions
                ]
                return SimpleNamespace(topics=topics, error_code=OK)
            if isinstance(request, OffsetCommitRequest):
                code = OK if request._consumer_group_generation_id == self.generation else ILLEGAL_GENERATION
                self.seen.append("committed" if code == OK else "refused")
                return SimpleNamespace(topics=[(tp.topic, [(tp.partition, code)]) for tp in self._tps])
        return SimpleNamespace(error_code=OK)

    def _assignment(self) -> bytes:
        topics = {tp.topic for tp in self._tps}
        parts = [(topic, [tp.partition for tp in self._tps if tp.topic == topic]) for topic in topics]
        return bytes(ConsumerProtocol.ASSIGNMENT(0, parts, b"").encode())

    def count(self, request: type[Any]) -> int:
        return self.seen.count(request.__name__)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until this holds of the requests that arrived."""
        await wait_for(
            holds, "requests of the member", deadline=WITHIN, pause=0, detail=lambda: f"arrived: {self.seen}"
        )

    async def coordinator_lookup(self, *_: Any) -> int:
        return 1

    async def ready(self, *_: Any, **__: Any) -> bool:
        return True

    def set_topics(self, _: Any) -> None: ...


class Member:
    """A member of the scripted group. `coordinator` is aiokafka's."""

    def __init__(self, group: ScriptedGroup, tps: Collection[TopicPartition], *, instance_id: str | None) -> None:
        self.group, self.tps = group, tps
        self._subscription = SubscriptionState()
        self.coordinator = GroupCoordinator(
            group,
            self._subscription,
            group_id="g",
            group_instance_id=instance_id,
            session_timeout_ms=20_000,
            heartbeat_interval_ms=5,
            retry_backoff_ms=1,
            enable_auto_commit=False,
        )

    async def join(self, listener: Any) -> None:
        self._subscription.subscribe({tp.topic for tp in self.tps}, listener)
        async with asyncio.timeout(WITHIN):
            await self._subscription.wait_for_assignment()

    @property
    def assignment(self) -> Any:
        return self._subscription.subscription.assignment

    async def commit(self, offset: int) -> None:
        """Commit the same offset for each partition, as aiokafka's consumer does."""
        offsets = {tp: OffsetAndMetadata(offset, "") for tp in self.tps}
        await self.coordinator.commit_offsets(self.assignment, offsets)


@contextlib.asynccontextmanager
async def member_of(
    group: ScriptedGroup, tps: Collection[TopicPartition], *, instance_id: str | None = None
) -> AsyncIterator[Member]:
    """Yield a member that has not joined yet; make it leave at the end."""
    member = Member(group, tps, instance_id=instance_id)
    try:
        yield member
    finally:
        group.whole.set()
        await member.coordinator.close()
