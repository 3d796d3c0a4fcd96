"""A turn is taken back on a real log while the worker dies in the middle of it, in each stage, and it arrives again.
Another turn is taken back before it arrives. Nothing of both is left, and the turn of another user with the same ids
stays."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memstream.schemas.commands import Command, CommandResult, SessionRef
from memstream.schemas.topics import COMMANDS, RESULTS, STAGES
from tests.integration.test_edits_kafka import send
from tests.support.conversation import PERSISTENT
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import CRASHED, running, turn, wait_for
from tests.support.pipeline_places import BROKERS, Place, place_for

pytestmark = pytest.mark.timeout(240)
LIKES = {
    f"I like {thing}": [{"content": f"Likes {thing}", "category": "preference", **PERSISTENT}]
    for thing in ("tea", "hiking")
}
CRASHES = ("observer:store", "reflector:store", "consolidation:store")


@pytest.fixture(params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


@pytest.mark.long
async def test_nothing_of_a_turn_is_left_though_the_worker_dies_in_each_stage(place: Place) -> None:
    env = {"MEMSTREAM_OBSERVE_TOGETHER": "1", "MEMSTREAM_SESSION_TIMEOUT": "10"}
    with ModelServer(observing(LIKES)) as model:
        async with running(place.pipeline(model, env=env)) as pipeline:
            pipeline.spawn(*STAGES)
            said = [turn(text, n, user=user) for user in ("u1", "u2") for n, text in enumerate(LIKES, start=1)]
            await pipeline.produce(*said)
            await pipeline.settled()
            pipeline.stop()
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
            for point in CRASHES:
                dying = pipeline.spawn(*STAGES, MEMSTREAM_CRASH_POINT=point)
                await wait_for(lambda worker=dying: worker.poll() is not None, f"the crash at {point}", deadline=60)  # type: ignore[misc]
                assert dying.returncode == CRASHED, pipeline.logs()
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
