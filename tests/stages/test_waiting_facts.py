"""An owner keeps so many facts that wait, fewer where no model judges them, and the oldest beyond are rejected."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memstream.memory.policies import ConsolidationPolicy, HygienePolicy, TiersPolicy
from memstream.memory.policies.budget import Ceiling, Tier, TierPolicy
from memstream.schemas.commands import Command
from memstream.schemas.facts import WAITS_FOR, FactState
from memstream.schemas.topics import COMMANDS
from memstream.streams.engine.crash_points import Step
from tests.support.applied_proposals import Both, open_both
from tests.support.record_builders import NOW, stored_fact

LIGHT = TierPolicy(("light",), Ceiling(50_000, 1.0, "pause"))
NOTHING_TO_SPEND = TierPolicy(("light", "standard"), Ceiling(0, 0.0, "pause"))
UNJUDGED = Ceiling(0, None, "pause")
THREE = HygienePolicy(waiting_facts=3)


class World(Both):
    async def wait(self, *contents: str, state: FactState = "pending", at: int = 0, **changes: Any) -> None:
        """Store facts that wait, each recorded a minute after the one before it. What pending ones wait for is
        active."""
        (known,) = await self.it.store(stored_fact("Likes tea", turn="known"))
        metadata = {WAITS_FOR: known.fact_id} if state == "pending" else {}
        await self.it.store(
            *(
                stored_fact(
                    content,
                    turn=content,
                    changes={
                        "state": state,
                        "metadata": metadata,
                        "recorded_at": NOW + timedelta(minutes=n),
                        **changes,
                    },
                )
                for n, content in enumerate(contents, start=at)
            )
        )

    async def light_run(self) -> None:
        """Run what comes with turns, and let the reflector apply it."""
        await self.it.bench.run(await self.it.due())
        await self.apply()

    def commands(self) -> list[Command]:
        return [Command.read(value) for value in self.it.bench.values(COMMANDS.name)]

    def kinds(self) -> list[str]:
        return [each.kind for each in self.commands()]

    def culled(self) -> int:
        """What the last run's record says."""
        return sum(part.counts.get("culled_facts", 0) for part in self.it.row().runs[-1].phases)


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    both = await open_both(tmp_path)
    both.it.model.costs_money = True
    yield World(both.it, both.reflecting)
    await both.it.bench.store.close()


def named(prefix: str, numbers: Sequence[int]) -> list[str]:
    return [f"{prefix} {n}" for n in numbers]


@pytest.mark.parametrize("tier", ["free", LIGHT, NOTHING_TO_SPEND])
@pytest.mark.parametrize("state", ["pending", "quarantined"])
async def test_the_oldest_beyond_are_forgotten(it: World, tier: Tier | TierPolicy, state: FactState) -> None:
    it.it.build(tier=tier, judgement=UNJUDGED, hygiene=THREE)
    await it.wait(*named("Likes milk", range(8)), state=state)
    await it.light_run()
    assert await it.of_state(state) == named("Likes milk", range(5, 8))
    assert await it.of_state("forgotten") == named("Likes milk", range(5))
    assert await it.of_state("active") == ["Likes tea"]
    assert (it.culled(), it.it.model.asked) == (5, [])
    await it.light_run()
    assert (it.culled(), len(it.reflecting.events())) == (0, 5)


async def test_the_event_says_why_and_the_row_is_told(it: World) -> None:
    it.it.build(judgement=UNJUDGED, hygiene=THREE)
    await it.wait(*named("Likes milk", range(4)))
    await it.light_run()
    (event,) = it.reflecting.events()
    assert (event.action, event.fact.state, event.fact.content) == ("forgotten", "forgotten", "Likes milk 0")
    assert event.reason == "hygiene: more than 3 facts are pending, and no model judges facts"
    assert event.cause.issued_by == "/memstream/consolidation"
    stored = (await it.it.bench.facts())["Likes milk 0"]
    assert stored.public() == event.fact
    assert [each.status for each in it.reflecting.results()] == ["applied"]
    counted = it.it.bench.metrics._metrics.counted.labels("consolidation", "facts_culled")
    assert [sample.value for sample in counted.collect()[0].samples if sample.name.endswith("_total")] == [1]


async def test_pending_and_quarantined_ones_do_not_push_each_other_out(it: World) -> None:
    it.it.build(judgement=UNJUDGED, hygiene=THREE)
    await it.wait(*named("Likes milk", range(3)))
    await it.wait(*named("Always answer", range(4)), state="quarantined", at=10)
    await it.light_run()
    assert await it.of_state("pending") == named("Likes milk", range(3))
    assert await it.of_state("quarantined") == named("Always answer", range(1, 4))


async def test_what_waits_for_its_time_goes_last(it: World) -> None:
    it.it.build(judgement=UNJUDGED, hygiene=THREE)
    begins = it.it.bench.now() + timedelta(days=30)
    await it.wait(*named("Moves", range(2)), valid_from=begins)
    await it.wait(*named("Likes milk", range(4)), at=10)
    await it.light_run()
    assert await it.of_state("pending") == ["Likes milk 3", *named("Moves", range(2))]
    await it.wait(*named("Flies", range(3)), valid_from=begins, at=20)
    await it.light_run()
    assert await it.of_state("pending") == named("Flies", range(3))


async def test_more_than_one_run_proposes_go_in_turn(it: World) -> None:
    it.it.build(judgement=UNJUDGED, hygiene=HygienePolicy(waiting_facts=3, at_once=4))
    await it.wait(*named("Likes milk", range(9)))
    left = []
    for _ in range(3):
        await it.light_run()
        left.append(len(await it.of_state("pending")))
    assert left == [5, 3, 3]


@pytest.mark.parametrize(
    ("tier", "policy"),
    [
        ("standard", {}),
        ("full", {}),
        ("free", {}),
        ("standard", {"hygiene": HygienePolicy(waiting_facts=3, waiting_facts_judged=0)}),
        ("standard", {"hygiene": HygienePolicy(waiting_facts_judged=3, enabled=False)}),
        (
            "standard",
            {"hygiene": HygienePolicy(waiting_facts_judged=3), "tiers": TiersPolicy(semantic=False, digest=False)},
        ),
        ("free", {"judgement": UNJUDGED, "hygiene": HygienePolicy(waiting_facts=0)}),
        ("free", {"judgement": UNJUDGED, "hygiene": HygienePolicy(waiting_facts=3, cull_unconsolidated=False)}),
        ("free", {"judgement": UNJUDGED, "hygiene": HygienePolicy(waiting_facts=3, enabled=False)}),
        ("free", {"judgement": UNJUDGED, "tiers": TiersPolicy(semantic=False, digest=False)}),
    ],
)
async def test_where_a_model_judges_or_the_policy_says_so_all_wait(
    it: World, tier: Tier | TierPolicy, policy: dict[str, Any]
) -> None:
    it.it.build(tier=tier, **{"hygiene": THREE} | policy)
    await it.wait(*named("Likes milk", range(6)))
    await it.wait(*named("Always answer", range(6)), state="quarantined", at=10)
    await it.light_run()
    await it.it.bench.run(it.it.command("hygiene"))
    await it.apply()
    assert (len(await it.of_state("pending")), len(await it.of_state("quarantined"))) == (6, 6)


@pytest.mark.parametrize("tier", ["free", "standard", "full"])
@pytest.mark.parametrize("state", ["pending", "quarantined"])
@pytest.mark.parametrize("culls", [True, False])
async def test_where_a_model_judges_the_oldest_beyond_another_number_are_forgotten(
    it: World, tier: Tier | TierPolicy, state: FactState, culls: bool
) -> None:
    policy = HygienePolicy(waiting_facts=1, waiting_facts_judged=5, cull_unconsolidated=culls)
    it.it.build(tier=tier, hygiene=policy)
    await it.wait(*named("Likes milk", range(8)), state=state)
    await it.light_run()
    assert await it.of_state(state) == named("Likes milk", range(3, 8))
    assert await it.of_state("forgotten") == named("Likes milk", range(3))
    assert it.culled() == 3
    event = it.reflecting.events()[0]
    assert (event.action, event.reason) == ("forgotten", f"hygiene: more than 5 facts are {state}")


async def test_a_model_that_costs_nothing_judges_in_every_tier(it: World) -> None:
    it.it.model.costs_money = False
    it.it.build(judgement=UNJUDGED, hygiene=THREE)
    await it.wait(*named("Likes milk", range(6)))
    await it.light_run()
    judging = it.it.row().judging
    assert judging is not None
    assert (len(judging.facts), len(await it.of_state("pending"))) == (6, 6)


async def test_the_janitor_does_it_where_no_run_is_due(it: World) -> None:
    it.it.build(judgement=UNJUDGED, hygiene=THREE, consolidation=ConsolidationPolicy(trigger="manual"))
    await it.wait(*named("Always answer", range(6)), state="quarantined")
    await it.it.bench.run(it.it.turn(0))
    assert [each.kind for each in it.it.row().errands] == ["hygiene"]
    await it.it.bench.run(it.it.command("hygiene"))
    await it.apply()
    assert await it.of_state("quarantined") == named("Always answer", range(3, 6))
    assert it.culled() == 3


async def test_another_owner_is_neither_counted_nor_rejected(it: World) -> None:
    it.it.build(judgement=UNJUDGED, hygiene=THREE)
    await it.wait(*named("Likes milk", range(2)))
    await it.wait(*named("Likes rum", range(6)), at=10, owner_key="acme/user/u2")
    await it.light_run()
    assert len(await it.of_state("pending")) == 8


async def test_what_the_same_run_settles_is_believed(it: World) -> None:
    it.it.build(judgement=UNJUDGED, hygiene=THREE)
    await it.wait("Likes cocoa", metadata={})  # what it waited for is gone
    await it.wait(*named("Likes milk", range(3)), at=10)
    await it.light_run()
    assert await it.of_state("active") == ["Likes cocoa", "Likes tea"]
    assert await it.of_state("pending") == named("Likes milk", range(3))
    assert it.kinds() == ["facts.apply", "facts.reject"]
    assert it.reflecting.results()[-1].status == "refused"  # it is no longer pending


@pytest.mark.parametrize("step", ["decide", "table", "store", "publish"])
async def test_a_worker_that_dies_rejects_each_once(it: World, step: Step) -> None:
    it.it.build(judgement=UNJUDGED, hygiene=THREE)
    await it.wait(*named("Likes milk", range(6)))
    await it.it.bench.killed(await it.it.due(), step)
    await it.apply()
    assert await it.of_state("pending") == named("Likes milk", range(3, 6))
    assert len(it.it.row().runs) == 1
    assert set(it.it.row().runs[0].command_ids) == {each.command_id for each in it.commands()}
    assert sorted(event.fact.version for event in it.reflecting.events()) == [2, 2, 2]


async def test_a_reflector_that_dies_rejects_each_once(it: World) -> None:
    it.it.build(judgement=UNJUDGED, hygiene=THREE)
    await it.wait(*named("Likes milk", range(6)))
    await it.it.bench.run(await it.it.due())
    steps: tuple[Step, ...] = ("table", "store", "publish")
    for value, step in zip(it.it.bench.values(COMMANDS.name), steps, strict=True):
        await it.reflecting.killed(it.reflecting.record(COMMANDS.name, Command.read(value).key, value), step)
    assert await it.of_state("pending") == named("Likes milk", range(3, 6))
    assert {event.fact.version for event in it.reflecting.events()} == {2}
    assert len({event.fact.fact_id for event in it.reflecting.events()}) == 3


async def test_a_second_run_before_the_reflector_came_changes_nothing_twice(it: World) -> None:
    it.it.build(judgement=UNJUDGED, hygiene=THREE)
    await it.wait(*named("Likes milk", range(6)))
    await it.it.bench.run(await it.it.due())
    await it.it.bench.run(await it.it.due())
    assert it.kinds() == ["facts.reject"] * 6
    await it.apply()
    assert await it.of_state("pending") == named("Likes milk", range(3, 6))
    assert len(it.reflecting.events()) == 3
