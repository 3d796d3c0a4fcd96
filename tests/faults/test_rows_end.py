"""Rows of a session end, or lose their outcome, while the worker is killed; the session comes back, or goes on."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memstream.agents.common.session_ends import TRIMS
from memstream.agents.observer.rows import SessionRow
from memstream.schemas import ids
from memstream.schemas.command_kinds import END_SESSION
from memstream.schemas.observations import Observed
from memstream.schemas.topics import COMMANDS_SESSION, STAGES, StageName, changelog_of
from memstream.streams.engine.crash_points import STEPS, Step
from tests.support.conversation import ACTIONS, STATES, conversation, different_each_time, states
from tests.support.faults import FROM_CONSOLIDATION
from tests.support.model_server import ModelServer
from tests.support.pipeline import CRASHED, Pipeline, actions, running, turn, wait_for
from tests.support.polling import has_ended

pytestmark = [pytest.mark.timeout(240)]
LIFE = 8
"""Seconds after its last turn until a row ends, or is trimmed."""
PATIENCE = 120


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.kafka), "embedded"])
async def pipeline(request: pytest.FixtureRequest, tmp_path: Path, days: str) -> AsyncIterator[Pipeline]:
    """A pipeline whose rows are old after LIFE. `days`: the policy that says so."""
    on_kafka = request.param == "kafka"
    broker = (
        f"kafka://{request.getfixturevalue('own_kafka').bootstrap}" if on_kafka else f"embedded://{tmp_path / 'log'}"
    )
    policy = f"[memory.rows]\n{days} = {LIFE / 86_400}\n"
    with ModelServer(different_each_time) as model:
        made = Pipeline(folder=tmp_path, broker=broker, model=model, env={"MEMSTREAM_PARTITIONS": "1"}, policy=policy)
        async with running(made) as ready:
            ready.cli("topics", "create")
            yield ready


class Others:
    """Other sessions, whose turns tell the time. Each call of `speak` is a new session with one turn."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self.spoken = 0

    async def speak(self) -> None:
        self.spoken += 1
        name = f"o{self.spoken}"
        await self._pipeline.produce(turn("Nothing to keep.", self.spoken, session=name, user=name))


async def observer_rows(pipeline: Pipeline, session_key: str) -> dict[str, bytes]:
    """Return the session's rows of the observer as the changelog has them, index rows included."""
    changelog = changelog_of("observer")
    assert changelog is not None
    last = {(record.key or b"").decode(): record.value for record in await pipeline.records(changelog.name)}
    return {key: value for key, value in last.items() if value is not None and key.endswith(session_key)}


async def rows_of(pipeline: Pipeline, session_key: str) -> dict[StageName, list[str]]:
    """Return the keys of the session's rows in each table, index rows included."""
    found: dict[StageName, list[str]] = {}
    for stage in STAGES:
        changelog = changelog_of(stage)
        if changelog is not None:
            last = {record.key or b"": record.value for record in await pipeline.records(changelog.name)}
            mine = [key.decode() for key, value in last.items() if value is not None]
            found[stage] = [key for key in mine if key.endswith(session_key)]
    return found


@pytest.mark.parametrize("days", ["session_days"])
@pytest.mark.fault(
    broken="kill -9 of the worker while the rows of a session end",
    holds="the rows of all stages go; the session comes back with all of its facts; I1 I2 I7 I8",
)
async def test_a_session_whose_rows_end_under_a_kill_comes_back(pipeline: Pipeline) -> None:
    turns, others = conversation(), Others(pipeline)
    key = ids.session_key(pipeline.tenant, turns[0]["user_id"], turns[0]["session_id"])
    worker = pipeline.spawn("all")
    await pipeline.produce(*turns[:4])
    await pipeline.settled()
    begun = await rows_of(pipeline, key)
    assert begun["observer"]
    assert begun["reflector"]  # consolidation keeps so few turns in the owner's row

    async def ends_sent() -> int:
        await others.speak()
        commands = await pipeline.records(COMMANDS_SESSION.name)
        return sum(END_SESSION.encode() in (record.value or b"") for record in commands)

    await wait_for(ends_sent, "the end of a session", until=bool, deadline=PATIENCE, pause=0.5, detail=pipeline.logs)
    worker.kill()
    worker.wait()
    pipeline.spawn("all")

    async def rows() -> dict[StageName, list[str]]:
        await others.speak()
        return await rows_of(pipeline, key)

    def gone(rows: dict[StageName, list[str]]) -> bool:
        return not any(rows.values())

    await wait_for(rows, "all rows gone", until=gone, deadline=PATIENCE, pause=0.5, detail=pipeline.logs)
    await pipeline.produce(*turns[4:])
    await pipeline.settled()
    numbers = [each.number for each in map(Observed.read, await pipeline.observed()) if each.user_id == "u1"]
    before, after = numbers[:4], numbers[4:]
    assert [number.n for number in before] == [number.n for number in after] == [1, 2, 3, 4]
    assert {number.epoch for number in before} == {0}
    assert min(number.epoch for number in after) > 0
    await check_facts(pipeline)


async def check_facts(pipeline: Pipeline) -> None:
    """Check that all of the conversation is remembered, and each of it once."""
    facts = states(await pipeline.consistent())
    assert {content: state for content, state in facts.items() if content not in FROM_CONSOLIDATION} == STATES
    told = [action for action in actions(await pipeline.updates()) if action[1] not in FROM_CONSOLIDATION]
    assert sorted(told) == sorted(ACTIONS)
    await pipeline.verified(*STAGES)


class Trimming:
    """The session's row in the observer's changelog, and the commands that trim it."""

    def __init__(self, pipeline: Pipeline, session_key: str) -> None:
        self._pipeline = pipeline
        self._key = session_key

    async def rows(self) -> dict[str, bytes]:
        changelog = changelog_of("observer")
        assert changelog is not None
        rows = {(record.key or b"").decode(): record.value for record in await self._pipeline.records(changelog.name)}
        return {key: value for key, value in rows.items() if value is not None and key.endswith(self._key)}

    async def is_done(self) -> bool:
        """Whether the row has no outcome, and no index row that says that it has one."""
        rows = await self.rows()
        return SessionRow.read(rows[self._key]).last is None and not any(TRIMS in key for key in rows)


@pytest.mark.parametrize("days", ["trim_days"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.fault(
    broken="the observer is gone after each step in which a session's row loses its outcome",
    holds="the row has no outcome, in the changelog too; a turn that comes once more is known; I1 I2 I7 I8",
)
async def test_a_session_whose_row_is_trimmed_under_a_kill_goes_on(pipeline: Pipeline, step: Step) -> None:
    turns, others = conversation(), Others(pipeline)
    key = ids.session_key(pipeline.tenant, turns[0]["user_id"], turns[0]["session_id"])
    worker = pipeline.spawn("all")
    await pipeline.produce(*turns[:4])
    await pipeline.settled()
    pipeline.end(worker)
    row = SessionRow.read((await observer_rows(pipeline, key))[key])
    assert row.last is not None
    await wait_for(lambda: time.time() - row.last_at, "an old row", until=lambda age: age > LIFE)
    # the first event is a turn of another session, which tells the time; the second is the command
    crashing = pipeline.spawn("all", MEMSTREAM_CRASH_POINT=f"observer:{step}:2")
    await others.speak()
    await wait_for(crashing.poll, f"the crash after {step}", until=has_ended, deadline=PATIENCE, detail=pipeline.logs)
    assert crashing.returncode == CRASHED, pipeline.logs()
    pipeline.spawn("all")

    async def trimmed() -> bool:
        await others.speak()
        rows = await observer_rows(pipeline, key)
        return SessionRow.read(rows[key]).last is None and not any(TRIMS in each for each in rows)

    await wait_for(trimmed, "a row without its outcome", deadline=PATIENCE, pause=0.5, detail=pipeline.logs)
    await pipeline.produce(*turns[:4])
    await pipeline.produce(*turns[4:])
    await pipeline.settled()
    observed = [each for each in map(Observed.read, await pipeline.observed()) if each.user_id == "u1"]
    assert {(each.number.epoch, each.number.n): each.turn_id for each in observed} == {
        (0, n): each["turn_id"] for n, each in enumerate(turns, start=1)
    }
    await check_facts(pipeline)
