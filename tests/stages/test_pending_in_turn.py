"""However many facts of an owner are pending, each is looked at in turn: by what settles without a model, and by the
judge."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memstream.agents.consolidation.steps.pending import PAGE, PAGES
from memstream.schemas.errors import Poison, Transient
from memstream.schemas.facts import WAITS_FOR, StoredFact
from memstream.streams.engine.crash_points import Step
from tests.support.consolidation_world import Consolidating
from tests.support.embedded_stage import open_bench
from tests.support.record_builders import NOW, stored_fact

LATER = NOW + timedelta(days=90)


def new_ones(shown: str) -> list[str]:
    """Return the pending facts of a question."""
    return re.findall(r"new: (.+)", shown)


class World(Consolidating):
    runs = 0

    async def wait(self, count: int, of: str = "Likes tea of sort", **changes: Any) -> list[StoredFact]:
        """Store pending facts that a judge may settle. Return them in the order of their ids."""
        (known,) = await self.store(stored_fact("Likes tea", turn="known"))
        changes = {"state": "pending", "metadata": {WAITS_FOR: known.fact_id}} | changes
        made = (stored_fact(f"{of} {n}", turn=f"{of} {n}", changes=changes) for n in range(count))
        return sorted(await self.store(*made), key=lambda each: each.fact_id)

    async def run(self) -> list[str]:
        """Run once. Return what the judge was shown."""
        self.runs += 1
        asked = len(self.model.asked)
        await self.bench.run(self.command(command_id=f"c{self.runs}"))
        return [text for shown in self.model.asked[asked:] for text in new_ones(shown)]


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    bench = await open_bench(tmp_path, "consolidation")
    await bench.store.ensure("archive", "digests", "labels", "procedures")
    world = World(bench)
    world.model.answers["judge"] = lambda shown: {"judgements": []}
    yield world
    await bench.store.close()


def contents(facts: list[StoredFact]) -> list[str]:
    return sorted(each.content for each in facts)


async def test_pairs_that_the_model_leaves_open_hide_no_others(it: World) -> None:
    waiting = await it.wait(45)
    shown = [await it.run() for _ in range(3)]
    assert [len(each) for each in shown] == [20, 20, 5]
    assert sorted(text for each in shown for text in each) == contents(waiting)
    assert sorted(await it.run()) == sorted(shown[0])


async def test_a_secret_pair_is_shown_in_its_turn_and_alone(it: World) -> None:
    plain = await it.wait(22)
    (secret,) = await it.wait(1, "Likes", sensitivity="secret")
    shown = [await it.run() for _ in range(5)]
    assert ["Likes 0"] in shown
    assert {text for each in shown for text in each} == {*contents(plain), secret.content}


def text_behind(fact: StoredFact) -> str:
    """Return a text whose fact comes behind this one: `wait(1, text)` stores it."""
    texts = (f"Likes milk of sort {n}" for n in range(100_000))
    return next(text for text in texts if stored_fact(f"{text} 0", turn=f"{text} 0").fact_id > fact.fact_id)


async def test_what_only_time_settles_hides_nothing_from_the_judge(it: World) -> None:
    early = await it.wait(PAGE + 10, "Moves", valid_from=LATER)
    (last,) = await it.wait(1, text_behind(early[PAGE]))
    assert await it.run() == [last.content]


async def test_a_run_reads_so_many_pages_and_the_next_one_goes_on(it: World) -> None:
    early = await it.wait(PAGE * PAGES + 10, "Moves", valid_from=LATER)
    (last,) = await it.wait(1, text_behind(early[PAGE * PAGES]))
    assert await it.run() == []
    assert await it.run() == [last.content]


async def test_what_settles_without_a_model_is_found_on_every_page(it: World) -> None:
    (gone,) = await it.store(stored_fact("Works at Google", changes={"state": "superseded"}))
    free = await it.wait(PAGE + 30, metadata={WAITS_FOR: gone.fact_id})
    await it.run()
    await it.run()
    assert {each.target_fact_id for each in it.changes()} == {each.fact_id for each in free}
    assert it.row().upkeep.settled_from == ""


async def test_pairs_that_have_no_usable_answer_hide_no_others(it: World) -> None:
    await it.wait(30)
    it.model.away = Poison("refused_by_model", "no JSON, also after one repair")
    await it.run()
    it.model.away = None
    assert len(await it.run()) == 10


async def test_pairs_that_the_model_was_not_asked_about_are_shown_when_it_is_back(it: World) -> None:
    await it.wait(30)
    it.model.away = Transient("model", "503")
    await it.run()
    it.model.away = None
    it.bench.calls._breakers.clear()
    assert len(await it.run()) == 20


@pytest.mark.parametrize("step", ["decide", "table", "store", "publish"])
async def test_a_worker_that_dies_passes_over_none(it: World, step: Step) -> None:
    waiting = await it.wait(30)
    await it.bench.killed(it.command(command_id="killed"), step)
    assert sorted([*new_ones(it.model.asked[-1]), *await it.run()]) == contents(waiting)
