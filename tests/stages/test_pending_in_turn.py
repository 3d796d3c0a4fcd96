"""However many facts of an owner are pending, each is looked at in turn: by what settles without a model, and by the
sweep that lists them for the judge."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from memstream.agents.consolidation.steps.pending import PAGE
from memstream.schemas.facts import WAITS_FOR
from tests.support.embedded_stage import open_bench
from tests.support.judgements import JudgeWorld
from tests.support.record_builders import NOW, stored_fact

LATER = NOW + timedelta(days=90)


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[JudgeWorld]:
    bench = await open_bench(tmp_path, "consolidation")
    await bench.store.ensure("archive", "digests", "labels", "procedures")
    yield JudgeWorld(bench)
    await bench.store.close()


async def test_a_run_lists_what_no_turn_listed_and_each_is_asked_about_once(it: JudgeWorld) -> None:
    waiting = await it.wait(45)
    await it.sweep()
    shown = await it.questions()
    assert [len(each) for each in shown] == [20, 20, 5]
    assert sorted(text for each in shown for text in each) == sorted(each.content for each in waiting)
    await it.sweep()
    assert await it.questions() == []


async def test_what_the_list_has_no_room_for_comes_with_a_later_run(it: JudgeWorld) -> None:
    await it.wait(130)
    await it.sweep()
    assert sum(map(len, await it.questions())) == 100
    await it.sweep()
    assert sum(map(len, await it.questions())) == 30


async def test_what_only_time_settles_is_not_listed_before_its_time(it: JudgeWorld) -> None:
    begins = it.bench.now() + timedelta(days=1)
    await it.wait(2, valid_from=begins)
    await it.sweep()
    assert it.row().judging is None
    it.bench.now.moment = begins
    await it.sweep()
    assert sum(map(len, await it.questions())) == 2


async def test_what_settles_without_a_model_is_found_on_every_page(it: JudgeWorld) -> None:
    (gone,) = await it.store(stored_fact("Works at Google", changes={"state": "superseded"}))
    free = await it.wait(PAGE + 30, metadata={WAITS_FOR: gone.fact_id})
    await it.sweep()
    await it.sweep()
    assert {each.target_fact_id for each in it.changes()} == {each.fact_id for each in free}
    assert it.row().upkeep.settled_from == ""
