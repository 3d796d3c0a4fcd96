"""A session is erased on a real log while the worker dies in the middle of it, in each stage. A late turn, a redriven
letter and a repeated command come after it. Nothing of the session is left in any collection, and the session of
another user with the same id stays."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memstream.schemas.commands import Command, SessionRef
from memstream.schemas.topics import COMMANDS, STAGES
from tests.integration.test_edits_kafka import send
from tests.support.conversation import PERSISTENT
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import running, turn
from tests.support.pipeline_places import BROKERS, Place, place_for

pytestmark = [pytest.mark.timeout(400), pytest.mark.long]
LIKES = {
    f"I like {thing}": [{"content": f"Likes {thing}", "category": "preference", **PERSISTENT}]
    for thing in ("tea", "hiking")
}
CRASHES = {
    "observer:table": ("observer",),
    "observer:store": ("observer",),
    "reflector:store": ("observer", "reflector"),
    "consolidation:store": ("reflector", "consolidation"),
}
"""Stages that the command has to pass until each crash. Other stages would only make the start longer."""
EVERY = ("facts", "episodes", "working", "turns")


@pytest.fixture(params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


async def test_nothing_of_a_session_is_left_though_the_worker_dies_in_each_stage(place: Place) -> None:
    env = {"MEMSTREAM_OBSERVE_TOGETHER": "1", "MEMSTREAM_SESSION_TIMEOUT": "10"}
    with ModelServer(observing(LIKES)) as model:
        async with running(place.pipeline(model, env=env)) as pipeline:
            pipeline.spawn(*STAGES)
            said = [
                turn(text, n, user=user, session=session)
                for user, session in (("u1", "s1"), ("u1", "s2"), ("u2", "s1"))
                for n, text in enumerate(LIKES, start=1)
                if (session, text) != ("s2", "I like tea")
            ]
            await pipeline.produce(*said)
            await pipeline.settled()
            pipeline.stop()
            erasure = Command(
                command_id=f"{pipeline.tenant}-erase",
                kind="session.erase",
                tenant_id=pipeline.tenant,
                session=SessionRef(user_id="u1", session_id="s1"),
                issued_by="test",
                issued_at=datetime.now(UTC),
            )
            await send(pipeline, [erasure])
            for point, stages in CRASHES.items():
                await pipeline.crashes(*stages, at=point)
            pipeline.spawn(*STAGES)
            repeated = erasure.model_copy(update={"command_id": f"{erasure.command_id}-2"})
            await send(pipeline, [erasure, repeated])
            await pipeline.produce(said[0], turn("I like tea", 9))
            await pipeline.settled()

            shown = pipeline.shown(*EVERY)[pipeline.tenant]
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
