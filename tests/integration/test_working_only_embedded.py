"""A working-only deployment as a user has it, in one process on a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from memstream.schemas.topics import EPISODES_RECORDED, FACTS_UPDATED
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import running, turn
from tests.support.pipeline_places import Place

pytestmark = pytest.mark.timeout(120)
ALONE = "[memory.tiers]\nepisodic = false\nsemantic = false\ndigest = false\n"
FACT: dict[str, Any] = {"durability": "permanent", "importance": 0.9, "category": "profession"}
SAID = {
    "work at Google": [{"content": "Works at Google", **FACT}],
    "joined Stripe": [{"content": "Works at Stripe", "replaces": "Works at Google", **FACT}],
}


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(observing(SAID)) as server:
        yield server


@pytest.mark.long
async def test_the_working_set_alone(in_folder: Place, model: ModelServer) -> None:
    async with running(in_folder.pipeline(model, policy=ALONE)) as pipeline:
        pipeline.spawn("all", MEMSTREAM_OBSERVE_TOGETHER="1")
        await pipeline.produce(turn("I work at Google.", 1), turn("I joined Stripe.", 2))
        await pipeline.settled()
        who = ("--tenant", pipeline.tenant, "--user", "u1")
        shown = pipeline.several(
            ["show", "working", *who],
            ["show", "facts", *who],
            ["show", "episodes", *who],
            ["recall", *who, "--session", "s1", "--cue", "Works at Stripe"],
            ["doctor"],
        )
        working, facts, episodes, recalled, doctor = shown
        assert [entry["content"] for entry in working] == ["Works at Stripe"]
        assert (facts, episodes) == ([], [])
        assert {item["tier"] for item in recalled} == {"working", "turns"}
        [tiers] = [line for line in doctor if line["check"] == "tiers"]
        assert tiers["ok"]
        assert "reflector and consolidation have nothing to do" in tiers["detail"]
        assert await pipeline.observed() == []
        for topic in (EPISODES_RECORDED, FACTS_UPDATED):
            assert await pipeline.records(topic.name) == []
        form: Any = model.asks[0].body["response_format"]
        properties = form["json_schema"]["schema"]["properties"]["observations"]["items"]["properties"]
        assert sorted(properties) == ["content", "importance", "pinned", "replaces"]
        await pipeline.verified()
        pipeline.stop()
        [log] = pipeline.folder.glob("worker-*.log")
        said = [json.loads(line) for line in log.read_text().splitlines() if "stage_idle" in line]
        assert [line["stage"] for line in said] == ["reflector", "consolidation"]
