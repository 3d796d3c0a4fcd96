"""Flush and compact as a user asks for them, in one process on a folder: each once, wherever a worker was killed."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memstream.schemas.commands import Command, Compact, SessionRef
from memstream.schemas.topics import COMMANDS, COMMANDS_SESSION, STAGES
from memstream.schemas.turns import Owner
from tests.support.model_server import Answer, Ask, ModelServer, observing
from tests.support.pipeline import CRASHED, Pipeline, running, turn, wait_for

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
SAID = ("I am in a hurry.", "I ran in Oslo.", "It rained a lot.", "I was soaked.", "Next year again.")


@pytest.fixture
def model() -> Iterator[ModelServer]:
    told: list[str] = []

    def summary(ask: Ask) -> Answer:
        if ask.task != "summary":
            return {}
        told.append(ask.last_user_message)
        return {"text": f"The user told of a wet run in Oslo, in the words of try {len(told)}."}

    hurry = {"content": "Is in a hurry", "importance": 0.7, "durability": "transient", "category": "event"}
    quick = {"content": "Was soaked", "importance": 0.3, "durability": "session", "category": "event"}
    with ModelServer(observing({"I am in a hurry": [hurry], "I was soaked": [quick]}, otherwise=summary)) as server:
        yield server


@pytest.fixture
async def pipeline(tmp_path: Path, model: ModelServer) -> AsyncIterator[Pipeline]:
    place = Pipeline(
        folder=tmp_path,
        broker=f"embedded://{tmp_path / 'log'}",
        model=model,
        consolidation='trigger = "manual"\nsummary_turns = 0',
    )
    async with running(place) as ready:
        yield ready


async def test_each_is_done_once_wherever_a_worker_dies(pipeline: Pipeline, model: ModelServer) -> None:
    who = ("--tenant", pipeline.tenant, "--user", "u1")
    session = (*who, "--session", "s1")
    pipeline.cli("topics", "create")
    await pipeline.produce(*(turn(text, n) for n, text in enumerate(SAID, start=1)))
    [first] = pipeline.json_lines("flush", *session)  # brings the stages with it, and waits for the turns
    assert (first["status"], first["waiting"], first["entries"], first["left"]) == ("applied", 0, 1, 0)
    assert [each["verdict"] for each in first["episodes"]] == ["applied"]
    [flushed] = pipeline.json_lines("show", "episodes", *who)
    assert (flushed["content"], flushed["durability"], flushed["turn_id"]) == ("Is in a hurry", "transient", "t1")

    pipeline.spawn("all")
    await pipeline.settled()
    pipeline.stop()
    flush = Command(
        command_id=str(uuid.uuid4()),
        kind="flush_important",
        tenant_id=pipeline.tenant,
        session=SessionRef(user_id="u1", session_id="s1"),
        args={"threshold": 0.3},
        issued_at=datetime.now(UTC),
    )
    compact = Command(
        command_id=str(uuid.uuid4()),
        kind="compact",
        tenant_id=pipeline.tenant,
        owner=Owner(scope="user", id="u1"),
        args=Compact(user_id="u1", session_id="s1", keep=1).to_payload(),
        issued_at=datetime.now(UTC),
    )
    for topic, command in ((COMMANDS_SESSION, flush), (COMMANDS, compact)):
        await pipeline.log.append(topic.name, key=command.key.encode(), value=command.to_bytes())
    for stages, crash in (
        (("observer",), "observer:table:1"),
        (("observer", "consolidation"), "consolidation:decide:1"),
        (STAGES, "reflector:store:1"),
    ):
        crashing = pipeline.spawn(*stages, MEMSTREAM_CRASH_POINT=crash)
        await wait_for(lambda worker=crashing: worker.poll() is not None, crash, 60)  # type: ignore[misc]
        assert crashing.returncode == CRASHED
    pipeline.spawn("all")
    await pipeline.settled()

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
    await pipeline.settled()
    await pipeline.verified()
    pipeline.stop()
