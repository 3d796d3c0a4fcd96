"""Commands under the key of one tenant, whose value names another one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memstream.schemas.topics import COMMANDS, COMMANDS_SESSION, RESULTS
from tests.support.conversation import different_each_time
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, running, wait_for
from tests.support.sent_commands import edit, send

pytestmark = [pytest.mark.timeout(240)]


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.kafka), "embedded"])
async def pipeline(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pipeline]:
    broker = (
        f"kafka://{request.getfixturevalue('own_kafka').bootstrap}"
        if request.param == "kafka"
        else f"embedded://{tmp_path / 'log'}"
    )
    with ModelServer(different_each_time) as model:
        made = Pipeline(folder=tmp_path, broker=broker, model=model, env={"MEMSTREAM_PARTITIONS": "2"})
        async with running(made) as ready:
            ready.cli("topics", "create")
            yield ready


@pytest.mark.fault(
    broken="commands under the key of one tenant, whose value names another one",
    holds="dead letters, `invalid`; nothing of the other tenant changes, the next good command is applied; I5 I8",
)
async def test_a_command_under_the_key_of_somebody_else_changes_nothing(pipeline: Pipeline) -> None:
    pipeline.spawn("all")
    for session, kind in ((False, "facts.remember"), (True, "working.add")):
        forged = edit(pipeline, kind, {"content": "Owned by a forged command"}, session=session)
        foreign = "t/u/s" if session else "t/user/u"
        await send(pipeline, forged.model_copy(update={"command_id": f"forged-{kind}"}), key=foreign)
        await send(pipeline, edit(pipeline, kind, {"content": "Works at Stripe"}, session=session))

    async def answered() -> set[str]:
        return {(record.key or b"").decode() for record in await pipeline.records(RESULTS.name)}

    wanted = {"facts.remember-False", "working.add-True"}
    assert await wait_for(answered, "the good commands", until=lambda found: found >= wanted, deadline=90) == wanted
    await pipeline.settled()
    for topic in (COMMANDS, COMMANDS_SESSION):
        (letter,) = await pipeline.dead_letters(topic.name)
        assert dict(letter.headers)["memstream-reason"] == b"invalid"
    shown = pipeline.shown("facts", "working")[pipeline.tenant]
    assert [row["content"] for row in shown["facts"]] == ["Works at Stripe"]
    assert [row["content"] for row in shown["working"]] == ["Works at Stripe"]
