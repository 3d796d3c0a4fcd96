"""A tenant's policy on running workers: in force without a restart, kept by what was decided, refused where wrong."""

from __future__ import annotations

import json

import pytest

from memstream.schemas import ids
from memstream.schemas.observations import Observed
from memstream.schemas.topics import POLICIES, STAGES
from tests.support.pipeline import Pipeline, running, turn, wait_for
from tests.support.pipeline_places import BROKERS, Place, place_for

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
COACH = {"personas": {"coach": {"openness": 0.9}}}
SILENT = {"capture": {"enabled": False}}


@pytest.fixture(params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


async def told(pipeline: Pipeline, event: str) -> None:
    """Wait until each worker has logged the event for this tenant."""

    def lines() -> int:
        return sum(event in line and pipeline.tenant in line for line in pipeline.logs().splitlines())

    await wait_for(lines, f"{event} in the logs", until=bool, deadline=30, detail=pipeline.logs)


async def observed(pipeline: Pipeline) -> dict[str, Observed]:
    """The records of this tenant by turn; a record that came twice is equal in every byte."""
    found: dict[str, bytes] = {}
    for raw in await pipeline.observed():
        record = Observed.read(raw)
        assert found.setdefault(record.turn_id, raw) == raw
    return {turn_id: Observed.read(raw) for turn_id, raw in found.items()}


async def test_a_policy_holds_without_a_restart_and_what_was_decided_keeps_its_own(place: Place) -> None:
    async with running(place.pipeline()) as pipeline:
        policy = pipeline.folder / "policy.json"
        policy.write_text(json.dumps(COACH))
        pipeline.spawn(*STAGES)
        await pipeline.produce(turn("I work at Stripe.", 0, agent_id="coach"))
        await pipeline.settled()
        pipeline.cli("policies", "set", "--tenant", pipeline.tenant, str(policy))
        await told(pipeline, "policy_in_force")
        await pipeline.produce(turn("I live in Vienna.", 1, agent_id="coach"))
        await pipeline.settled()
        key = ids.encode(pipeline.tenant).encode()
        await pipeline.log.append(POLICIES.name, key=key, value=b'{"capture": {"threshold": 7}}')
        await told(pipeline, "policy_refused")
        await pipeline.produce(turn("I like green tea.", 2, agent_id="coach"))
        await pipeline.settled()
        (state,) = pipeline.json_lines("policies", "show", "--tenant", pipeline.tenant, "--json")
        assert (state["policy"], state["refused"]) == (
            COACH,
            ["capture: capture.threshold must be between 0 and 1, not 7.0"],
        )
        pipeline.stop()

        await pipeline.produce(turn("My brother is called Tom.", 3, agent_id="coach"))
        await pipeline.crashes("observer", at="observer:table")
        policy.write_text(json.dumps(SILENT))
        pipeline.cli("policies", "set", "--tenant", pipeline.tenant, str(policy))
        pipeline.spawn(*STAGES)
        await pipeline.produce(turn("I moved to Graz.", 4, agent_id="coach"))
        await pipeline.settled()

        records = [record for _, record in sorted((await observed(pipeline)).items())]
        applied = [record.cause.applied for record in records]
        assert [None if each is None else each.persona for each in applied] == [None, *["coach"] * 3, None]
        assert applied[-1] is not None
        assert applied[-1].settings == {"capture.enabled": False}
        assert [len(record.observations) for record in records] == [1, 1, 1, 1, 0]
        await pipeline.verified()
        rows = pipeline.shown("facts")[pipeline.tenant]["facts"]
        (vienna,) = [each for each in rows if "Vienna" in each["content"]]
        traced = " ".join(pipeline.cli("trace", vienna["fact_id"], "--tenant", pipeline.tenant).split())
        assert "by the persona coach: capture.threshold 0.3, capture.max_per_message 9, capture.emotion true" in traced
        pipeline.stop()
