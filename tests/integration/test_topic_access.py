"""The table of who may write, against what the stages really write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memstream.schemas.access import accesses
from memstream.schemas.topics import (
    COMMANDS,
    EPISODES_RECORDED,
    FACTS,
    FACTS_UPDATED,
    OBSERVATIONS,
    RESULTS,
    STAGES,
    TASKS_DUE,
    TOPICS,
)
from tests.support.conversation import conversation, different_each_time
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, running, wait_for
from tests.support.sent_commands import edit, send

pytestmark = [pytest.mark.timeout(240)]
ACCESS = {each.role: each for each in accesses()}
WRITTEN = {
    ("observer", OBSERVATIONS.name),
    ("observer", RESULTS.name),
    ("reflector", EPISODES_RECORDED.name),
    ("reflector", FACTS_UPDATED.name),
    ("reflector", FACTS.name),
    ("reflector", TASKS_DUE.name),
    ("reflector", COMMANDS.name),
    ("reflector", RESULTS.name),
    ("consolidation", RESULTS.name),
}
"""What each run of the test shows at least."""


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[Pipeline]:
    with ModelServer(different_each_time) as model:
        env = {"MEMSTREAM_PARTITIONS": "2"}
        async with running(
            Pipeline(folder=tmp_path, broker=f"embedded://{tmp_path / 'log'}", model=model, env=env)
        ) as ready:
            ready.cli("topics", "create")
            yield ready


async def test_stages_write_what_the_table_says(pipeline: Pipeline) -> None:
    due = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    pipeline.spawn("all")
    await pipeline.produce(*conversation())
    for each in (
        edit(pipeline, "working.add", {"content": "The deploy is on Friday"}, session=True),
        edit(pipeline, "facts.remember", {"content": "Works at Stripe"}),
        edit(pipeline, "tasks.add", {"content": "Call Ana", "due_at": due}),
        edit(pipeline, "procedures.define", {"name": "Deploy", "trigger": "now", "steps": ["step"]}),
        edit(pipeline, "hygiene", {"run": "reflect"}),
    ):
        await send(pipeline, each)

    async def written() -> set[tuple[str, str]]:
        found = set()
        for topic in TOPICS:
            for record in await pipeline.records(topic.name):
                source = dict(record.headers).get("ce_source", b"").decode().removeprefix("/memstream/")
                found |= {(source, topic.name)} & {(stage, topic.name) for stage in STAGES}
        return found

    seen = await wait_for(written, "every stage to write", until=lambda found: found >= WRITTEN, deadline=90)
    assert seen <= {(stage, topic.name) for stage in STAGES for topic in ACCESS[stage].produces}
