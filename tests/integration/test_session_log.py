"""Flush and compact as a user asks for them: each once, wherever a worker was killed."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import pytest

from memstream.schemas.commands import Command, SessionRef
from memstream.schemas.topics import COMMANDS_SESSION, STAGES
from tests.support.consolidation_world import in_short
from tests.support.model_server import Answer, Ask, ModelServer, observing
from tests.support.pipeline import Pipeline, running, turn
from tests.support.pipeline_places import Place
from tests.support.polling import wait_for

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
SAID = ("I am in a hurry.", "I ran in Oslo.", "It rained a lot.", "I was soaked.", "Next year again.")
BY_COMMAND_ALONE = 'trigger = "manual"\nsummary_turns = 0'
Who = tuple[str, ...]


@pytest.fixture
def model() -> Iterator[ModelServer]:
    told: list[str] = []

    def summary(ask: Ask) -> Answer:
        if ask.task != "summary":
            return {}
        told.append(ask.last_user_message)
        return {"text": f"{'Again ' * len(told)}{in_short(ask.last_user_message)}"}

    hurry = {"content": "Is in a hurry", "importance": 0.7, "durability": "transient", "category": "event"}
    soaked = {"content": "Was soaked", "importance": 0.3, "durability": "session", "category": "event"}
    with ModelServer(observing({"I am in a hurry": [hurry], "I was soaked": [soaked]}, otherwise=summary)) as server:
        yield server


@pytest.fixture
async def embedded(in_folder: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(in_folder.pipeline(model, consolidation=BY_COMMAND_ALONE)) as ready:
        yield ready


@pytest.fixture
async def on_a_broker(on_kafka: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(on_kafka.pipeline(model, consolidation=BY_COMMAND_ALONE)) as ready:
        yield ready


def whose(pipeline: Pipeline) -> tuple[Who, Who]:
    """Arguments that name the user, and the session."""
    who = ("--tenant", pipeline.tenant, "--user", "u1")
    return who, (*who, "--session", "s1")


async def flush(pipeline: Pipeline, threshold: float) -> None:
    """As a tool sends it."""
    command = Command(
        command_id=str(uuid.uuid4()),
        kind="flush_important",
        tenant_id=pipeline.tenant,
        session=SessionRef(user_id="u1", session_id="s1"),
        args={"threshold": threshold},
        issued_at=datetime.now(UTC),
    )
    await pipeline.log.append(COMMANDS_SESSION.name, key=command.key.encode(), value=command.to_bytes())


def check(pipeline: Pipeline) -> None:
    """After both: two entries and four turns are episodes, and asking again makes nothing of them twice."""
    who, session = whose(pipeline)
    episodes = pipeline.json_lines("show", "episodes", *who)
    assert sorted(each["content"] for each in episodes if not each["tags"]) == ["Is in a hurry", "Was soaked"]
    [summary] = [each for each in episodes if each["tags"]]
    assert (summary["category"], summary["tags"], summary["turn_ids"]) == (
        "event",
        ["summary"],
        ["t1", "t2", "t3", "t4"],
    )
    [again] = pipeline.json_lines("flush", *session, "--threshold", "0.3")
    assert [each["verdict"] for each in again["episodes"]] == ["duplicate", "duplicate"]
    [more] = pipeline.json_lines("compact", *session, "--keep", "0")
    assert (more["status"], more["turns"], more["left"], len(more["episodes"])) == ("applied", 1, 0, 1)
    [none] = pipeline.json_lines("compact", *session)
    assert (none["status"], none["turns"], none["left"], none["episodes"]) == ("applied", 0, 0, [])
    assert len(pipeline.json_lines("show", "episodes", *who)) == 4


@pytest.mark.long
async def test_each_is_done_once_in_a_folder_wherever_a_worker_dies(embedded: Pipeline) -> None:
    pipeline = embedded
    who, session = whose(pipeline)
    await pipeline.produce(*(turn(text, n) for n, text in enumerate(SAID, start=1)))
    [first] = pipeline.json_lines("flush", *session)  # brings the stages with it, and waits for the turns
    assert (first["status"], first["waiting"], first["entries"], first["left"]) == ("applied", 0, 1, 0)
    assert [each["verdict"] for each in first["episodes"]] == ["applied"]
    [flushed] = pipeline.json_lines("show", "episodes", *who)
    assert (flushed["content"], flushed["durability"], flushed["turn_id"]) == ("Is in a hurry", "transient", "t1")
    pipeline.spawn("all")
    await wait_for(lambda: "worker_ready" in pipeline.logs(), "the worker takes signals")
    await pipeline.settled()
    pipeline.stop()

    await flush(pipeline, 0.3)
    await pipeline.command("compact", user_id="u1", session_id="s1", keep=1)
    await pipeline.crashes("observer", at="observer:table:1")
    await pipeline.crashes("observer", "consolidation", at="consolidation:decide:1")
    await pipeline.crashes(*STAGES, at="reflector:store:1")
    pipeline.spawn("all")
    await pipeline.settled()
    check(pipeline)
    await pipeline.settled()
    await pipeline.verified()
    pipeline.stop()


@pytest.mark.kafka
@pytest.mark.long
async def test_each_is_done_once_on_a_broker(on_a_broker: Pipeline) -> None:
    pipeline = on_a_broker
    _, session = whose(pipeline)
    await pipeline.produce(*(turn(text, n) for n, text in enumerate(SAID, start=1)))
    pipeline.spawn("all", MEMSTREAM_SESSION_TIMEOUT="10")
    await pipeline.settled()
    [flushed] = pipeline.json_lines("flush", *session, "--threshold", "0.3")
    assert [each["verdict"] for each in flushed["episodes"]] == ["applied", "applied"]
    [compacted] = pipeline.json_lines("compact", *session, "--keep", "1")
    assert (compacted["turns"], [each["verdict"] for each in compacted["episodes"]]) == (4, ["applied"])
    check(pipeline)
    await pipeline.settled()
    await pipeline.verified()
    pipeline.stop()
