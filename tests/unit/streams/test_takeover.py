"""A static member that takes the place of another process: when it waits, and what it does meanwhile."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.consumer.group_coordinator import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest

from memstream.streams.faust.app import StageApp
from memstream.streams.faust.transports.kafka import ConsumerThread
from memstream.streams.faust.transports.takeover import FILE, MARGIN, member_of_instance
from tests.support.faust_fakes import TOPIC, stage_app
from tests.support.scripted_group import MEMBER, ScriptedGroup, member_of

TPS = (TopicPartition(TOPIC, 0),)
JAVA, BASE64 = "5a1ff7d0-4d35-4a2b-9f0b-0b0d2a4f5b6c", "Zm9vYmFyYmF6cXV4MTIzNA"


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """A listener that notes when partitions are assigned."""

    def __init__(self) -> None:
        self.assigned_at = 0.0

    async def on_partitions_revoked(self, _: Any) -> None: ...

    async def on_partitions_assigned(self, _: Any) -> None:
        self.assigned_at = time.monotonic()


@pytest.fixture
async def app(tmp_path: Path) -> StageApp:
    return stage_app(tmp_path, worker_id="w1", session_timeout=1.0)


def thread_of(app: StageApp) -> ConsumerThread:
    thread = app.consumer._thread
    assert isinstance(thread, ConsumerThread)
    return thread


async def joined(app: StageApp, group: ScriptedGroup) -> float:
    """Let the app's static member join the group. Return the seconds until it had its partitions."""
    async with member_of(group, TPS, instance_id="w1") as member:
        thread_of(app)._watch_membership(member.coordinator)
        listener, began = Listener(), time.monotonic()
        await member.join(listener)
        return listener.assigned_at - began


@pytest.mark.parametrize("given", [JAVA, BASE64])
def test_the_member_with_an_instance_id_is_found_by_its_own_id(given: str) -> None:
    others = [f"faust-0.15.3-{JAVA}", f"w1-2-{given}", f"w-{given}", "w1-x"]
    assert member_of_instance("w1", [*others, f"w1-{given}"]) == f"w1-{given}"
    assert member_of_instance("w1", others) is None


async def test_a_member_that_takes_a_place_waits_for_the_other_ones_lease(app: StageApp, tmp_path: Path) -> None:
    group = ScriptedGroup(TPS)
    group.members = [f"w1-{JAVA}"]
    assert await joined(app, group) >= app.lease_limit() + MARGIN
    first = group.seen[: group.seen.index("OffsetFetchRequest")] if "OffsetFetchRequest" in group.seen else group.seen
    assert first[:3] == ["DescribeGroupsRequest", "JoinGroupRequest", "SyncGroupRequest"]
    assert group.count(HeartbeatRequest) >= 2, "the wait must not cost the membership"
    assert (Path(app.conf.datadir) / FILE).read_text() == MEMBER


@pytest.mark.parametrize("before", ["nobody", "a process with this folder"])
async def test_a_restart_waits_for_nothing(app: StageApp, before: str) -> None:
    group = ScriptedGroup(TPS)
    if before != "nobody":
        group.members = [f"w1-{JAVA}", f"w2-{JAVA}"]
        (Path(app.conf.datadir) / FILE).write_text(f"w1-{JAVA}")
    assert await joined(app, group) < app.lease_limit()
    assert group.count(SyncGroupRequest) == 1


async def test_a_group_that_does_not_say_who_is_in_it_costs_the_wait(app: StageApp) -> None:
    group = ScriptedGroup(TPS)
    group.described_as = 30  # not allowed to describe it
    assert await joined(app, group) >= app.lease_limit()


async def test_it_is_not_ready_while_it_waits(app: StageApp) -> None:
    group = ScriptedGroup(TPS)
    group.members = [f"w1-{JAVA}"]
    joining = asyncio.create_task(joined(app, group))
    await group.until(lambda: group.count(HeartbeatRequest) > 0)
    assert "MEMSTREAM_WORKER_ID" in app.why_not_ready()
    await joining
    assert "MEMSTREAM_WORKER_ID" not in app.why_not_ready()


async def test_one_that_is_replaced_during_its_wait_ends(app: StageApp) -> None:
    group = ScriptedGroup(TPS)
    group.members, group.unknown = [f"w1-{JAVA}"], True
    await joined(app, group)  # its end is only noted here
    assert app.exits[:1] == [3]
    assert not (Path(app.conf.datadir) / FILE).exists()


async def test_a_dynamic_member_asks_nobody(tmp_path: Path) -> None:
    app, group = stage_app(tmp_path, session_timeout=1.0), ScriptedGroup(TPS)
    group.members = [f"w1-{JAVA}"]
    assert await joined(app, group) < app.lease_limit()
    assert group.seen[0] == JoinGroupRequest.__name__
