"""Outcomes that a crash left while the log changed: records deleted, offsets lost, topics created again. Edits and
commands are in the traffic."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio

from memstream.schemas.commands import Command, CommandResult, SessionRef
from memstream.schemas.topics import (
    COMMANDS,
    COMMANDS_SESSION,
    EPISODES_RECORDED,
    OBSERVATIONS,
    RESULTS,
    STAGES,
    TURNS,
    StageName,
    Topic,
    group_of,
    read_by,
)
from memstream.schemas.turns import Owner
from tests.support.faults import check_all_remembered, delete_up_to, is_kafka, said_by, written_since
from tests.support.model_server import ModelServer
from tests.support.pipeline import Json, Pipeline, running, turn
from tests.support.pipeline_places import BROKERS, Place

pytestmark = [pytest.mark.timeout(240, func_only=True)]
USER = "u1"
SESSION = f"of-{USER}"
Event = Literal["turn", "edit"]
READ_FROM: dict[tuple[StageName, Event], Topic] = {
    ("observer", "turn"): TURNS,
    ("observer", "edit"): COMMANDS_SESSION,
    ("reflector", "turn"): OBSERVATIONS,
    ("reflector", "edit"): COMMANDS,
    ("consolidation", "turn"): EPISODES_RECORDED,
    ("consolidation", "edit"): COMMANDS,
}
BEFORE = 4
"""Turns of the conversation that are handled before the crash. The next one starts a run of consolidation."""


@pytest_asyncio.fixture(params=BROKERS)
async def alone(request: pytest.FixtureRequest, tmp_path: Path, model: ModelServer) -> AsyncIterator[Pipeline]:
    """A pipeline with a broker of its own: its topics are deleted, or all of their records come again."""
    place = Place.in_folder(tmp_path)
    if request.param == "kafka":
        place = Place(tmp_path, f"kafka://{request.getfixturevalue('own_kafka').bootstrap}")
    async with running(place.pipeline(model, env={"MEMSTREAM_PARTITIONS": "2"})) as pipeline:
        pipeline.cli("topics", "create")
        yield pipeline


class Edits:
    """Edits of each stage: lines that are added to a block of the session and of the owner, versions of a procedure."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self.sent: list[str] = []
        self._lines: dict[StageName, int] = defaultdict(int)

    async def make(self, *stages: StageName) -> None:
        """Make one edit of each of these stages."""
        for stage in stages:
            n = self._lines[stage]
            self._lines[stage] += 1
            await self._send(stage, n)

    async def _send(self, stage: StageName, n: int) -> None:
        append: tuple[str, dict[str, Any]] = ("blocks.append", {"name": "Notes", "text": f"line {n}"})
        first: tuple[str, dict[str, Any]] = ("blocks.rethink", {"name": "Notes", "value": "line 0"})
        kind, args = append if n else first
        if stage == "consolidation":
            kind, args = "procedures.define", {"name": "Deploy", "trigger": "now", "steps": [f"step {n}"]}
        whose: dict[str, Any] = {"owner": Owner(scope="user", id=USER)}
        if stage == "observer":
            whose = {"session": SessionRef(user_id=USER, session_id=SESSION)}
        command = Command(
            command_id=f"{self._pipeline.tenant}-{stage}-{n}",
            kind=kind,
            args=args,
            tenant_id=self._pipeline.tenant,
            issued_by="test",
            issued_at=datetime.now(UTC),
            **whose,
        )
        topic = COMMANDS_SESSION if stage == "observer" else COMMANDS
        await self._pipeline.log.append(topic.name, key=command.key.encode(), value=command.to_bytes())
        self.sent.append(command.command_id)

    async def check(self) -> None:
        """Check that each edit was applied once and has one result."""
        results: dict[str, set[bytes]] = defaultdict(set)
        for record in await self._pipeline.records(RESULTS.name):
            result = CommandResult.read(record.value or b"")
            if result.command_id in self.sent:
                results[result.command_id].add(record.value or b"")
        assert {name: len(answers) for name, answers in results.items()} == dict.fromkeys(self.sent, 1)
        answered = [CommandResult.read(answer) for answers in results.values() for answer in answers]
        assert {answer.status for answer in answered} == {"applied"}
        whose = ("--tenant", self._pipeline.tenant, "--user", USER)
        blocks, procedures = self._pipeline.several(["block", "list", *whose], ["procedure", "list", *whose])
        lines, last = self._lines["reflector"], self._lines["consolidation"] - 1
        assert [each["value"] for each in blocks] == ["\n".join(f"line {n}" for n in range(lines))]
        assert [(each["steps"], each["version"]) for each in procedures] == [([f"step {last}"], last + 1)]


EDITING: tuple[StageName, ...] = ("observer", "reflector", "consolidation")


def start(pipeline: Pipeline) -> None:
    pipeline.spawn(*STAGES, MEMSTREAM_SESSION_TIMEOUT="10")


async def until_crash(
    pipeline: Pipeline, edits: Edits, turns: Sequence[Json], stage: StageName, event: Event, step: str
) -> list[Json]:
    """Handle the first turns and an edit of each stage, then die after this step of one more event. Return the turns
    that were not said."""
    start(pipeline)
    await pipeline.produce(*turns[:BEFORE])
    await edits.make(*EDITING)
    await pipeline.settled()
    pipeline.stop()
    if event == "turn":
        await pipeline.produce(turns[BEFORE])
    else:
        await edits.make(stage)
    await pipeline.crashes(*STAGES, at=f"{stage}:{step}")
    return list(turns[BEFORE + 1 if event == "turn" else BEFORE :])


def crashes() -> Iterator[object]:
    for stage, event in READ_FROM:
        for step in ("table", "store", "publish"):
            row = pytest.mark.fault(
                broken="kill between two effects, and retention deletes the record before the restart",
                holds="the decision has all of its effects; I1 I2 I7, edits too",
                often=(stage, event, step) == ("observer", "turn", "table"),
            )
            yield pytest.param(stage, event, step, marks=row, id=f"{stage}-{event}-{step}")


@pytest.mark.parametrize(("stage", "event", "step"), list(crashes()))
async def test_a_decision_whose_record_is_gone_is_applied(
    place: Pipeline, stage: StageName, event: Event, step: str
) -> None:
    pipeline, edits = place, Edits(place)
    left = await until_crash(pipeline, edits, said_by(USER), stage, event, step)
    topic = READ_FROM[stage, event]
    last = (await written_since(pipeline, topic.name))[-1].position
    committed = (await pipeline.log.committed(group_of(stage), topic.name))[last.partition]
    assert (committed or 0) <= last.offset, "the crash left nothing"
    others = [each for each in STAGES if each != stage and topic in read_by(each)]
    if is_kafka(pipeline) and others and any((await pipeline.lags(*others)).values()):  # they have read it before
        pipeline.spawn(*others)
        await pipeline.settled(*others)
        pipeline.stop()
    observed = await pipeline.observed()
    await delete_up_to(pipeline, last)
    start(pipeline)  # the group's offset passes over the hole, and nothing touches the key
    await pipeline.settled()
    pipeline.stop()
    start(pipeline)
    await edits.make(*EDITING)
    await pipeline.produce(*left)
    await pipeline.settled()
    await edits.check()
    await check_all_remembered(pipeline, [USER], consolidated=True, lost=observed)
    await pipeline.verified()
    pipeline.stop()


@pytest.mark.fault(
    broken="a topic deleted and created again, after a clean stop: new events have the offsets of old ones",
    holds="each new event has its effects; facts and events agree",
)
@pytest.mark.parametrize("topic", [TURNS, OBSERVATIONS, COMMANDS, COMMANDS_SESSION, EPISODES_RECORDED])
async def test_events_of_a_topic_that_was_created_again_are_new(alone: Pipeline, topic: Topic) -> None:
    pipeline, edits, turns = alone, Edits(alone), said_by(USER)
    start(pipeline)
    for each in turns[:BEFORE]:
        await pipeline.produce(each)
        await edits.make(*EDITING)
    await pipeline.settled()
    pipeline.stop()
    await pipeline.log.delete([topic.name])
    pipeline.cli("topics", "create")
    start(pipeline)
    for each in turns[BEFORE:]:
        await pipeline.produce(each)
        await edits.make(*EDITING)
        await pipeline.settled()
    await edits.check()
    await pipeline.consistent()
    observed = {json.loads(value)["turn_id"] for value in await pipeline.observed()}
    new = {each["turn_id"] for each in turns[BEFORE:]}
    assert observed == (new if topic is OBSERVATIONS else {each["turn_id"] for each in turns})
    known = {fact["content"] for fact in pipeline.stored().values()}
    pipeline.stop()
    assert {"Works at Stripe", "Name is Jack"} <= known, known


LONG = 1_100


@pytest.mark.timeout(600, func_only=True)
@pytest.mark.fault(
    broken="the offsets of all groups are lost, or set back to the beginning, behind a session of 1 100 turns",
    holds="nobody is asked again, nothing is told twice but in equal bytes; I1 I7, edits too",
)
async def test_a_log_that_comes_once_more_has_no_effect_again(alone: Pipeline, model: ModelServer) -> None:
    pipeline, edits = alone, Edits(alone)
    start(pipeline)
    for n in range(LONG):
        await pipeline.produce(turn(f"chatter number {n}", 1_000 + n, session=SESSION, user=USER))
    for each in said_by(USER):
        await pipeline.produce(each)
    await edits.make(*EDITING)
    await edits.make(*EDITING)
    await pipeline.settled(deadline=300)
    pipeline.stop()
    known, asks = pipeline.stored(), len(model.asks)
    observed, events = set(await pipeline.observed()), {record.value for record in await pipeline.fact_events()}
    for stage in STAGES:
        for topic in read_by(stage):
            partitions = await pipeline.log.partitions(topic.name) or 0
            await pipeline.log.commit(group_of(stage), topic.name, dict.fromkeys(range(partitions), 0))
    start(pipeline)
    await pipeline.settled(deadline=300)
    assert len(model.asks) == asks
    assert set(await pipeline.observed()) == observed
    assert {record.value for record in await pipeline.fact_events()} == events
    assert pipeline.stored() == known
    await edits.check()
    await pipeline.verified()
    pipeline.stop()
