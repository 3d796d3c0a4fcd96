"""Groups are read beside the memory, and an answer is never of groups that are not the owner's now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from memstream.recall import shared
from memstream.recall.request import RecallRequest
from memstream.recall.service import RecallResult
from memstream.recall.shared import SharedRecall
from memstream.schemas.errors import Fatal
from memstream.schemas.groups import MemoryGroup
from memstream.schemas.turns import Owner

NOW = datetime(2026, 11, 24, tzinfo=UTC)
ANN, BEN = Owner(scope="user", id="ann"), Owner(scope="user", id="ben")


def group(name: str) -> MemoryGroup:
    return MemoryGroup.model_construct(group_id=name, fact_ids=(f"fact of {name}",))


class Groups:
    """Groups that answer when they may."""

    def __init__(self) -> None:
        self.now: Sequence[MemoryGroup] = ()
        self.may = asyncio.Event()
        self.may.set()

    async def groups_of(self, tenant_id: str, member: Owner) -> Sequence[MemoryGroup]:
        await asyncio.sleep(0)  # an answer takes a while
        await self.may.wait()
        return self.now


class Memory:
    """An inner recall that notes what it is asked, and what was ended before its answer."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.ended: list[tuple[str, ...]] = []
        self.may = asyncio.Event()
        self.may.set()
        self.failing: Exception | None = None

    async def recall(self, request: RecallRequest, *, now: datetime) -> RecallResult:
        self.asked.append(request.groups)
        assert len(request.groups) == len(request.shared_facts)
        try:
            await self.may.wait()
        except asyncio.CancelledError:
            self.ended.append(request.groups)
            raise
        if self.failing is not None:
            raise self.failing
        return RecallResult((), ())


class World:
    def __init__(self) -> None:
        self.groups, self.memory = Groups(), Memory()
        self.recall = SharedRecall(inner=self.memory, groups=self.groups)

    async def ask(self, owner: Owner = ANN, tenant: str = "acme") -> RecallResult:
        return await self.recall.recall(RecallRequest(tenant, owner), now=NOW)


async def test_the_memory_is_searched_while_the_groups_are_read() -> None:
    world = World()
    world.groups.may.clear()
    answer = asyncio.create_task(world.ask())
    while not world.memory.asked:
        await asyncio.sleep(0)
    world.groups.may.set()
    assert not (await answer).missing
    assert world.memory.asked == [()]


async def test_who_joins_and_who_leaves_a_group_is_answered_by_the_groups_of_now() -> None:
    world = World()
    for of_now, asked in (
        ([], [()]),
        ([group("a")], [(), ("a",)]),
        ([group("a")], [("a",)]),
        ([group("b")], [("a",), ("b",)]),
        ([], [("b",), ()]),
        ([], [()]),
    ):
        world.groups.now, world.memory.asked = of_now, []
        await world.ask()
        assert world.memory.asked == asked


async def test_a_search_with_former_groups_is_ended() -> None:
    world = World()
    world.groups.now = [group("a")]
    await world.ask()
    world.groups.now = []
    world.memory.may.clear()
    answer = asyncio.create_task(world.ask())
    while world.memory.ended != [("a",)]:
        await asyncio.sleep(0)
    world.memory.may.set()
    await answer
    assert world.memory.asked[-1] == ()


async def test_where_groups_do_not_answer_nothing_of_the_former_ones_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "PATIENCE", 0.01)
    world = World()
    world.groups.now = [group("a")]
    await world.ask()
    world.groups.may.clear()
    answer = await world.ask()
    assert world.memory.asked[-1] == ()
    assert [each.part for each in answer.missing] == ["groups"]


async def test_groups_are_remembered_by_tenant_and_owner_and_so_many_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "OWNERS_MOST", 2)
    world = World()
    world.groups.now = [group("a")]
    for owner, tenant in ((ANN, "acme"), (BEN, "acme"), (ANN, "rival")):
        world.memory.asked = []
        await world.ask(owner, tenant)
        assert world.memory.asked == [(), ("a",)]
    world.memory.asked = []
    await world.ask(BEN)
    assert world.memory.asked == [("a",)]
    world.memory.asked = []
    await world.ask(ANN)  # the one read longest ago
    assert world.memory.asked == [(), ("a",)]


async def test_what_ends_the_read_is_told_though_the_groups_are_others() -> None:
    world = World()
    world.memory.failing = Fatal("a payload of another tenant")
    with pytest.raises(Fatal, match="another tenant"):
        await world.ask()
    world.groups.now = [group("a")]
    with pytest.raises(Fatal, match="another tenant"):
        await world.ask()


async def test_pins_are_read_without_groups() -> None:
    world = World()
    world.groups.now = [group("a")]
    await world.recall.recall(RecallRequest("acme", ANN, pinned=True), now=NOW)
    assert world.memory.asked == [()]
