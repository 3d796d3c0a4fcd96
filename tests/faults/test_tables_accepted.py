"""The observer's changelog is lost, and a person does what the worker says: accept the loss, and go on."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memstream.schemas.observations import Observed
from memstream.schemas.topics import STAGES, changelog_of
from memstream.streams.engine.process_exit import BROKEN
from tests.support.conversation import ACTIONS, STATES, conversation, different_each_time, states
from tests.support.faults import FROM_CONSOLIDATION
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, actions, running, wait_for
from tests.support.polling import has_ended

pytestmark = [pytest.mark.timeout(240)]


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.kafka), "embedded"])
async def pipeline(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Pipeline, ModelServer]]:
    on_kafka = request.param == "kafka"
    broker = (
        f"kafka://{request.getfixturevalue('own_kafka').bootstrap}" if on_kafka else f"embedded://{tmp_path / 'log'}"
    )
    with ModelServer(different_each_time) as model:
        made = Pipeline(folder=tmp_path, broker=broker, model=model, env={"MEMSTREAM_PARTITIONS": "2"})
        async with running(made) as ready:
            ready.cli("topics", "create")
            yield ready, model


@pytest.mark.fault(
    broken="the observer's changelog and tables deleted; the loss is accepted as the worker says",
    holds="the worker runs; no turn is lost or doubled, later turns of a session are reflected",
)
@pytest.mark.parametrize("pipeline", ["embedded"], indirect=True)
async def test_after_an_accepted_loss_sessions_go_on(pipeline: tuple[Pipeline, ModelServer]) -> None:
    world, model = pipeline
    turns = conversation()
    world.spawn("all")
    await world.produce(*turns[:4])
    await world.settled()
    world.stop()

    changelog = changelog_of("observer")
    assert changelog is not None
    await world.log.delete([changelog.name])
    world.cli("topics", "create")
    shutil.rmtree(world.folder / "data" / "observer")
    await world.produce(*turns[4:6])
    refusing = world.spawn("all")
    await wait_for(refusing.poll, "the worker to refuse", until=has_ended, deadline=60)
    assert refusing.returncode == BROKEN
    assert "memstream tables accept-loss observer" in world.logs()
    world.workers.remove(refusing)

    shutil.rmtree(world.folder / "data" / "observer")
    world.cli("tables", "accept-loss", "observer")
    world.spawn("all")
    await world.produce(*turns[6:])
    await world.settled()
    facts = states(await world.consistent())
    assert {content: state for content, state in facts.items() if content not in FROM_CONSOLIDATION} == STATES
    told = [action for action in actions(await world.updates()) if action[1] not in FROM_CONSOLIDATION]
    assert sorted(told) == sorted(ACTIONS)
    assert [ask for ask in model.asks if ask.seen_before] == [], "nothing was observed twice"
    assert {Observed.read(value).epoch for value in await world.observed()} == {0, 1}, (
        "the numbers go on in a new epoch"
    )
    await world.verified(*STAGES)


@pytest.mark.long
async def test_it_is_refused_while_workers_run_or_have_to_read(pipeline: tuple[Pipeline, ModelServer]) -> None:
    world, _ = pipeline
    worker = world.spawn("observer")
    await world.produce(*conversation()[:2])
    await world.settled("observer")
    world.cli("tables", "accept-loss", "observer", expect=2)
    world.end(worker)
    code, _, said = world._run(("tables", "accept-loss", "observer"), env={})
    assert code == 2
    assert "reflector has 2 records to read" in said
