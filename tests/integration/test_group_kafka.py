"""Groups of a stage on a real broker: large ones, and ones with workers of an earlier version."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from faust.assignor import PartitionAssignor

from memstream.streams.faust.assignor import StageAssignor
from tests.support.light_group import LightGroup
from tests.support.polling import wait_for

pytestmark = pytest.mark.kafka
WITHIN = 30.0
"""Seconds. It takes one."""
MakeGroup = Callable[..., LightGroup]


@pytest.fixture
async def group_of(kafka_broker: str, tmp_path: Path) -> AsyncIterator[MakeGroup]:
    made = []

    def make(partitions: int, **options: float) -> LightGroup:
        made.append(LightGroup(kafka_broker, partitions, tmp_path, **options))
        return made[-1]

    yield make
    for group in made:
        await group.close()


async def shared_out(group: LightGroup) -> None:
    """Wait until each partition is at one member. Fails when the broker refuses a request."""

    def probe() -> bool:
        assert group.failure() == ""
        return group.is_shared_out()

    await wait_for(probe, "each partition at one member", deadline=WITHIN)


@pytest.mark.fault(
    broken="a stage with 8 000 partitions and 12 workers, and one more joins",
    holds="each partition at one worker; no more move than the new one gets",
    often=True,
)
async def test_a_group_of_hundreds_forms_and_takes_one_more(group_of: MakeGroup) -> None:
    group = await formed(group_of(8_000), StageAssignor)
    before = group.owners()
    await group.join(StageAssignor, "one-more")
    await shared_out(group)
    moved = sum(before[number] != name for number, name in group.owners().items())
    assert moved == 8_000 // 13, "no more than what the new one gets"


async def test_the_broker_refuses_the_same_group_with_fausts_assignor(group_of: MakeGroup) -> None:
    with pytest.raises(AssertionError, match="UnknownError"):  # at its second rebalance, whenever that is
        await formed_with_one_more(group_of(8_000), PartitionAssignor)


async def formed_with_one_more(group: LightGroup, kind: type[Any]) -> None:
    await formed(group, kind)
    await group.join(kind, "one-more")
    await shared_out(group)


async def formed(group: LightGroup, kind: type[Any]) -> LightGroup:
    await group.join(kind, *(f"w{number}" for number in range(12)))
    await shared_out(group)
    return group


@pytest.mark.fault(
    broken="workers that die without a word and come back with their folder, the leader among them",
    holds="each partition at one worker; whoever comes back has what it had, and nobody else gets another",
)
async def test_a_worker_that_died_gets_back_what_it_had(group_of: MakeGroup) -> None:
    group = group_of(512, session=6.0)
    await formed(group, StageAssignor)
    for name in ("w0", "w7"):
        before = group.owners()
        await group.die(name)
        await shared_out(group)
        assert {number: owner for number, owner in before.items() if owner != name}.items() <= group.owners().items()
        await group.join(StageAssignor, name)
        await shared_out(group)
        had, has = (
            {number for number, owner in owners.items() if owner == name} for owners in (before, group.owners())
        )
        assert has <= had
        assert len(has) >= 512 // 12


@pytest.mark.fault(
    broken="workers of 0.3, with Faust's assignor, are replaced one by one, whoever leads the group",
    holds="each partition at one worker all the time",
)
async def test_workers_of_0_3_are_replaced_one_by_one(group_of: MakeGroup) -> None:
    group = group_of(12)
    await group.join(PartitionAssignor, "a", "b", "c")
    await shared_out(group)
    for name in "abc":  # whoever leads it, sooner or later
        await group.leave(name)
        await shared_out(group)
        await group.join(StageAssignor, name)
        await shared_out(group)
