"""Where the budget tier lets no run make facts of episodes, upkeep does not wait for one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memstream.adapters.ports import Point
from memstream.memory.policies import HygienePolicy, RoutingPolicy
from memstream.memory.policies.budget import Ceiling, Tier, TierPolicy
from memstream.recall.record_filters import RecordSelection, episodes_filter
from tests.support.consolidation_world import Consolidating
from tests.support.embedded_stage import open_bench
from tests.support.record_builders import NOW, OWNER, episode

LIGHT = TierPolicy(("light",), Ceiling(50_000, 1.0, "pause"))
NOTHING_TO_SPEND = TierPolicy(("light", "standard"), Ceiling(0, 0.0, "pause"))
FIVE = RoutingPolicy(episodes_kept=5)
WAITS = HygienePolicy(cull_unconsolidated=False)


def days(number: float) -> datetime:
    """Return a time before the bench's now."""
    return NOW + timedelta(days=1) - timedelta(days=number)


class World(Consolidating):
    async def some(self, *contents: str, **fields: Any) -> None:
        """Episodes that no run has looked at, each a minute younger than the one before it."""
        at = fields.pop("occurred_at", NOW)
        made = [
            episode(content, turn=content, occurred_at=at + timedelta(minutes=n), **fields)
            for n, content in enumerate(contents)
        ]
        vectors = await self.bench.embedder.embed(contents, tenant_id="acme")
        points = [Point(e.episode_id, e.to_payload(), v, e.content) for e, v in zip(made, vectors, strict=True)]
        await self.bench.store.insert("episodes", points)

    async def read(self) -> set[str]:
        """Return the episodes that readers see."""
        where = episodes_filter(RecordSelection("acme", OWNER))
        found = await self.bench.store.select("episodes", tenant_id="acme", where=where)
        return {str(each.payload["content"]) for each in found}

    def culled(self) -> list[int]:
        """What each run's record says."""
        return [sum(part.counts.get("culled_episodes", 0) for part in run.phases) for run in self.row().runs]


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    bench = await open_bench(tmp_path, "consolidation")
    await bench.store.ensure("archive", "digests", "labels", "procedures")
    world = World(bench)
    world.model.costs_money = True
    yield world
    await bench.store.close()


@pytest.mark.parametrize("tier", ["free", LIGHT, NOTHING_TO_SPEND])
async def test_an_owner_keeps_so_many_episodes_and_the_oldest_persistent_ones_go_first(
    it: World, tier: Tier | TierPolicy
) -> None:
    it.build(tier=tier, routing=FIVE)
    await it.some("born", "married", durability="permanent", occurred_at=NOW - timedelta(days=9))
    await it.some(*(f"e{n}" for n in range(10)))
    await it.bench.run(await it.due())
    assert await it.read() == {"born", "married", "e7", "e8", "e9"}
    assert (it.culled(), it.model.asked) == ([7], [])
    await it.bench.run(await it.due())
    assert it.culled() == [7, 0]


async def test_permanent_ones_go_when_there_are_only_these(it: World) -> None:
    it.build(routing=FIVE)
    await it.some(*(f"p{n}" for n in range(7)), durability="permanent")
    await it.some("last")
    await it.bench.run(await it.due())
    assert await it.read() == {"p2", "p3", "p4", "p5", "p6"}


@pytest.mark.parametrize(
    ("tier", "policy"),
    [
        ("free", {"hygiene": WAITS}),
        ("free", {"hygiene": HygienePolicy(enabled=False)}),
        ("free", {"routing": RoutingPolicy(episodes_kept=0)}),
        ("standard", {}),
    ],
)
async def test_who_waits_for_a_run_loses_nothing(it: World, tier: Tier, policy: dict[str, Any]) -> None:
    it.build(tier=tier, **{"routing": FIVE} | policy)
    await it.some(*(f"e{n}" for n in range(10)))
    await it.bench.run(await it.due())
    assert len(await it.read()) == 10


async def test_another_owner_is_not_counted(it: World) -> None:
    it.build(routing=FIVE)
    await it.some(*(f"e{n}" for n in range(4)))
    await it.some(*(f"o{n}" for n in range(4)), owner_key="acme/user/u2")
    await it.bench.run(await it.due())
    assert it.culled() == [0]


async def test_the_janitor_comes_by_the_hour_and_takes_what_is_over_age(it: World) -> None:
    it.build()
    await it.some("old", occurred_at=days(91))
    await it.some("young")
    await it.bench.run(await it.due())
    assert it.row().waiting is not None  # the run that never comes
    (visit,) = it.row().errands
    assert (visit.kind, visit.not_before - it.bench.now() > timedelta(hours=23)) == ("hygiene", True)
    await it.bench.run(it.command("hygiene"))
    assert await it.read() == {"young"}
    assert it.row().errands == ()
    await it.bench.run(it.turn(1))
    assert [each.kind for each in it.row().errands] == ["hygiene"]


@pytest.mark.parametrize(("tier", "policy"), [("free", {"hygiene": WAITS}), ("standard", {})])
async def test_elsewhere_the_janitor_follows_a_run(it: World, tier: Tier, policy: dict[str, Any]) -> None:
    it.build(tier=tier, **policy)
    await it.some("old", occurred_at=days(91))
    await it.bench.run(it.turn(1))
    assert it.row().errands == ()


async def test_a_run_that_waits_for_its_tier_keeps_old_episodes_if_it_is_told_to(it: World) -> None:
    it.build(hygiene=WAITS)
    await it.some("old", occurred_at=days(91))
    await it.bench.run(await it.due())
    await it.bench.run(it.command("hygiene"))
    assert await it.read() == {"old"}
