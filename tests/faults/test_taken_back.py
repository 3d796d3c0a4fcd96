"""A turn or a session is taken back while the worker dies in the middle of it, in each stage, and it arrives again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memstream.schemas.commands import Command, CommandResult, SessionRef
from memstream.schemas.topics import COMMANDS, RESULTS, STAGES, StageName
from tests.integration.test_edits_kafka import send
from tests.support.conversation import PERSISTENT
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import Json, Pipeline, turn

pytestmark = [pytest.mark.timeout(400, func_only=True)]
LIKES = {
    f"I like {thing}": [{"content": f"Likes {thing}", "category": "preference", **PERSISTENT}]
    for thing in ("tea", "hiking")
}
PASSED: dict[StageName, tuple[StageName, ...]] = {
    "observer": ("observer",),
    "reflector": ("observer", "reflector"),
    "consolidation": ("reflector", "consolidation"),
}
"""By stage that dies, the stages that the command has to pass. Other stages would only make the start longer."""


async def begin(pipeline: Pipeline, model: ModelServer, said: list[Json]) -> None:
    """Let all stages handle these turns, and end them."""
    model.script = observing(LIKES)
    pipeline.use(MEMSTREAM_OBSERVE_TOGETHER="1", MEMSTREAM_SESSION_TIMEOUT="10")
    pipeline.spawn(*STAGES)
    await pipeline.produce(*said)
    await pipeline.settled()
    pipeline.stop()


async def die_in_each_stage(pipeline: Pipeline) -> None:
    for stage, stages in PASSED.items():
        for step in ("table", "store", "publish"):
            await pipeline.crashes(*stages, at=f"{stage}:{step}")


@pytest.mark.fault(
    broken="kill in each stage while a turn is taken back; then the turn and the command come again",
    holds="nothing of the turn is left; a turn that comes behind its retraction has no effect; other users keep all",
)
async def test_nothing_of_a_turn_is_left_though_the_worker_dies_in_each_stage(
    place: Pipeline, model: ModelServer
) -> None:
    pipeline = place
    said = [turn(text, n, user=user) for user in ("u1", "u2") for n, text in enumerate(LIKES, start=1)]
    await begin(pipeline, model, said)
    late = turn("I like tea", 9)
    retractions = [
        Command(
            command_id=f"{pipeline.tenant}-{each['turn_id']}",
            kind="turn.retract",
            tenant_id=pipeline.tenant,
            session=SessionRef(user_id="u1", session_id=each["session_id"]),
            args={"turn_id": each["turn_id"]},
            issued_by="test",
            issued_at=datetime.now(UTC),
        )
        for each in (said[0], late)
    ]
    await send(pipeline, retractions)
    await die_in_each_stage(pipeline)
    pipeline.spawn(*STAGES)
    await send(pipeline, retractions)
    await pipeline.produce(said[0], late)
    await pipeline.settled()

    shown = pipeline.shown("facts", "episodes", "working", "turns")[pipeline.tenant]
    left = {
        kind: sorted((row.get("user_id") or row["owner"]["id"], row["content"]) for row in rows)
        for kind, rows in shown.items()
        if kind != "facts"
    }
    likes = [("u1", "Likes hiking"), ("u2", "Likes hiking"), ("u2", "Likes tea")]
    assert left == {
        "episodes": likes,
        "working": likes,
        "turns": [("u1", "I like hiking"), ("u2", "I like hiking"), ("u2", "I like tea")],
    }
    facts = {(row["owner"]["id"], row["content"]): row["state"] for row in shown["facts"]}
    assert facts == {("u1", "Likes tea"): "invalidated", **dict.fromkeys(likes, "active")}
    answers = [CommandResult.read(each.value or b"") for each in await pipeline.records(RESULTS.name)]
    for each in retractions:
        told = [answer.result for answer in answers if answer.command_id == each.command_id]
        assert len(told) >= 2
        assert all(result == told[0] for result in told)
    sent = [Command.read(each.value or b"") for each in await pipeline.records(COMMANDS.name)]
    of_facts = {each.key for each in sent if each.kind == "facts.retract" and each.tenant_id == pipeline.tenant}
    assert of_facts == {f"{pipeline.tenant}/user/u1"}, "no other user is asked"
    await pipeline.consistent()
    await pipeline.verified()
    pipeline.stop()


@pytest.mark.fault(
    broken="kill in each stage while a session is erased; then the turn, a late one and the command come",
    holds="nothing of the session is left in any collection; the same session id of another user stays",
)
async def test_nothing_of_a_session_is_left_though_the_worker_dies_in_each_stage(
    place: Pipeline, model: ModelServer
) -> None:
    pipeline = place
    said = [
        turn(text, n, user=user, session=session)
        for user, session in (("u1", "s1"), ("u1", "s2"), ("u2", "s1"))
        for n, text in enumerate(LIKES, start=1)
        if (session, text) != ("s2", "I like tea")
    ]
    await begin(pipeline, model, said)
    erasure = Command(
        command_id=f"{pipeline.tenant}-erase",
        kind="session.erase",
        tenant_id=pipeline.tenant,
        session=SessionRef(user_id="u1", session_id="s1"),
        issued_by="test",
        issued_at=datetime.now(UTC),
    )
    await send(pipeline, [erasure])
    await die_in_each_stage(pipeline)
    pipeline.spawn(*STAGES)
    repeated = erasure.model_copy(update={"command_id": f"{erasure.command_id}-2"})
    await send(pipeline, [erasure, repeated])
    await pipeline.produce(said[0], turn("I like tea", 9))
    await pipeline.settled()

    shown = pipeline.shown("facts", "episodes", "working", "turns")[pipeline.tenant]
    left = {
        kind: sorted((row.get("user_id") or row["owner"]["id"], row["content"]) for row in rows)
        for kind, rows in shown.items()
    }
    likes = [("u1", "Likes hiking"), ("u2", "Likes hiking"), ("u2", "Likes tea")]
    assert left == {
        **dict.fromkeys(("facts", "episodes", "working"), likes),
        "turns": [("u1", "I like hiking"), ("u2", "I like hiking"), ("u2", "I like tea")],
    }
    [hiking] = [row for row in shown["facts"] if row["owner"]["id"] == "u1"]
    assert {each["session_id"] for each in hiking["evidence"]} == {"s2"}
    assert not [row for row in shown["episodes"] if (row["owner"]["id"], row["session_id"]) == ("u1", "s1")]
    mine = [each for each in (await pipeline.compacted()).values() if each["owner"]["id"] == "u1"]
    assert [each["content"] for each in mine] == ["Likes hiking"]
    sent = [Command.read(each.value or b"") for each in await pipeline.records(COMMANDS.name)]
    erasing = {each.key for each in sent if each.kind == "facts.erase" and each.tenant_id == pipeline.tenant}
    assert erasing == {f"{pipeline.tenant}/user/u1"}, "no other user is asked"
    assert await pipeline.compacted() == pipeline.stored()
    await pipeline.check_versions_published_once()
    await pipeline.verified()
    pipeline.stop()
