"""Events, rows and points of other versions: what was known stays, what is not known survives or is refused clearly."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient

from memstream.agents.common.stored_row import ROW_VERSION
from memstream.schemas import ids
from memstream.schemas.collections import FACTS
from memstream.schemas.topics import (
    COMMANDS,
    COMMANDS_SESSION,
    EPISODES_RECORDED,
    OBSERVATIONS,
    RESULTS,
    STAGES,
    TURNS,
    StageName,
    changelog_of,
)
from memstream.streams.engine.process_exit import BROKEN
from memstream.streams.log.port import Record
from tests.support.conversation import AGAIN
from tests.support.faults import check_all_remembered, repeated, said_by, written_since
from tests.support.model_server import ModelServer
from tests.support.pipeline import CRASHED, Json, Pipeline, turn, wait_for
from tests.support.polling import has_ended
from tests.support.qdrant import QdrantServer
from tests.support.release_0_1_rows import of_first_release

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120, func_only=True)]
GOLDEN = Path(__file__).resolve().parents[1] / "data" / "golden" / "v1"
LATER = {"later_field": {"deep": [1, None, {"later": "x"}]}}
USER = "u1"
OWN_ROWS: dict[StageName, str] = {
    "observer": "observer.SessionRow",
    "reflector": "reflector.OwnerRow",
    "consolidation": "consolidation.OwnerRow",
}


def golden(name: str, **fields: Any) -> Json:
    return {**json.loads((GOLDEN / f"{name}.json").read_text()), **fields}


def with_later_fields(value: Any) -> Any:
    """The same, as a later minor version might write it: every object has a field more."""
    if isinstance(value, dict):
        return {name: with_later_fields(item) for name, item in value.items()} | LATER
    return [with_later_fields(item) for item in value] if isinstance(value, list) else value


@pytest.mark.fault(
    broken="events as version 1 wrote them, and as a later minor version writes them, on every topic",
    holds="taken with all that is known of them; I5 I8",
)
@pytest.mark.parametrize("later", [False, True], ids=["first", "later-minor"])
async def test_events_of_the_first_and_of_a_later_minor_version_are_taken(pipeline: Pipeline, later: bool) -> None:
    as_written = with_later_fields if later else lambda fields: fields
    tenant = pipeline.tenant
    owner = ids.owner_key(tenant, "user", USER)
    session = ids.session_key(tenant, USER, "s1")
    sent: list[tuple[str, str, Json]] = [
        (TURNS.name, session, golden(f"turn.{name}", tenant_id=tenant, turn_id=name, scope="user"))
        for name in ("minimal", "full", "ends_session")
    ]
    sent += [
        (OBSERVATIONS.name, owner, golden(f"observed.{name}", tenant_id=tenant, session_id=f"of-{name}"))
        for name in ("empty", "full")
    ]
    sent += [
        (EPISODES_RECORDED.name, owner, golden(f"episodes_recorded.{name}", tenant_id=tenant, session_id=f"in-{name}"))
        for name in ("empty", "full")
    ]
    sent += [
        (COMMANDS.name, owner, golden(f"command.{name}", tenant_id=tenant, command_id=f"{tenant}-{name}"))
        for name in ("consolidate_minimal", "facts_apply")
    ]
    observe = golden("command.observe", tenant_id=tenant, command_id=f"{tenant}-observe")
    sent.append((COMMANDS_SESSION.name, ids.session_key(tenant, **observe["session"]), observe))
    pipeline.spawn(*STAGES, MEMSTREAM_SESSION_TIMEOUT="10")
    for topic, key, fields in sent:
        await pipeline.log.append(topic, key=key.encode(), value=json.dumps(as_written(fields)).encode())
    await pipeline.settled()
    letters = [letter for topic in {topic for topic, _, _ in sent} for letter in await pipeline.dead_letters(topic)]
    assert letters == []
    answered = {json.loads(record.value or b"")["command_id"] for record in await written_since(pipeline, RESULTS.name)}
    assert {f"{tenant}-{name}" for name in ("consolidate_minimal", "facts_apply", "observe")} <= answered
    observed = {json.loads(value)["turn_id"] for value in await pipeline.observed()}
    assert {"minimal", "full", "ends_session"} <= observed
    contents = {fact["content"] for fact in pipeline.stored().values()}
    assert {item["content"] for item in golden("observed.full")["observations"]} & contents
    await pipeline.verified(invariants=("I5", "I8"))
    pipeline.stop()


async def rows_of(pipeline: Pipeline, stage: StageName, key: str) -> list[Record]:
    changelog = changelog_of(stage)
    assert changelog is not None
    return [record for record in await written_since(pipeline, changelog.name) if record.key == key.encode()]


async def put_row(pipeline: Pipeline, row: Record, value: bytes) -> None:
    await pipeline.log.append(row.position.topic, key=row.key, value=value, partition=row.position.partition)


def row_key(pipeline: Pipeline, stage: StageName) -> str:
    if stage == "observer":
        return ids.session_key(pipeline.tenant, USER, f"of-{USER}")
    return ids.owner_key(pipeline.tenant, "user", USER)


def others(stage: StageName) -> list[StageName]:
    return [other for other in STAGES if other != stage]


@pytest.mark.fault(
    broken="rows of a later version in the changelog (an older worker is started after a newer one)",
    holds="refused with a clear word, nothing committed or dropped; afterwards I1",
)
@pytest.mark.parametrize("stage", list(OWN_ROWS))
async def test_a_row_of_a_later_version_stops_the_worker_and_loses_nothing(
    pipeline: Pipeline, model: ModelServer, stage: StageName
) -> None:
    pipeline.spawn(*others(stage), MEMSTREAM_SESSION_TIMEOUT="10")
    worker = pipeline.spawn(stage)
    turns = said_by(USER)
    await pipeline.produce(*turns[:2])
    await pipeline.settled()
    pipeline.end(worker)
    shutil.rmtree(pipeline.folder / "data" / stage)
    row = (await rows_of(pipeline, stage, row_key(pipeline, stage)))[-1]
    await put_row(pipeline, row, json.dumps({**json.loads(row.value or b""), "row_version": ROW_VERSION + 1}).encode())
    await pipeline.produce(*turns[2:])
    lags = await pipeline.lags(stage)
    older = pipeline.spawn(stage)
    await wait_for(older.poll, "the older version to stop", until=has_ended, deadline=60)
    assert older.returncode == BROKEN, pipeline.logs()
    assert "later version of memstream" in pipeline.logs()
    assert not list(pipeline.folder.rglob("attempts/*.json")), "a record was blamed for it"
    assert sum((await pipeline.lags(stage)).values()) >= sum(lags.values()), "something was committed"
    pipeline.workers.remove(older)
    await put_row(pipeline, row, row.value or b"")  # the later version is started again; here: what it would go on from
    shutil.rmtree(pipeline.folder / "data" / stage)
    pipeline.spawn(stage)
    await pipeline.settled()
    await check_all_remembered(pipeline, [USER], consolidated=True)
    await pipeline.verified()
    pipeline.stop()


@pytest.mark.fault(
    broken="rows and stored outcomes of the release before, found by this version after a crash",
    holds="the outcome is applied, not decided again; I1",
)
@pytest.mark.parametrize("stage", list(OWN_ROWS))
async def test_an_outcome_that_the_release_before_kept_is_applied(
    pipeline: Pipeline, model: ModelServer, stage: StageName
) -> None:
    pipeline.spawn(*others(stage), MEMSTREAM_SESSION_TIMEOUT="10")
    crashing = pipeline.spawn(stage, MEMSTREAM_CRASH_POINT=f"{stage}:table:2", MEMSTREAM_OBSERVE_TOGETHER="1")
    await pipeline.produce(*said_by(USER))
    await wait_for(crashing.poll, "the crash", until=has_ended, deadline=60)
    assert crashing.returncode == CRASHED
    row = (await rows_of(pipeline, stage, row_key(pipeline, stage)))[-1]
    before = of_first_release(OWN_ROWS[stage], json.loads(row.value or b""))
    assert before["last"] is not None
    await put_row(pipeline, row, json.dumps(before).encode())
    shutil.rmtree(pipeline.folder / "data" / stage)
    pipeline.spawn(stage)
    await pipeline.settled()
    assert not repeated(model.asks)
    await check_all_remembered(pipeline, [USER], consolidated=True)
    await pipeline.verified()
    pipeline.stop()


@pytest.mark.fault(
    broken="a fact in Qdrant with a field that this version does not know",
    holds="the field survives when the reflector changes the fact, and is told to nobody",
)
async def test_a_field_of_a_later_version_survives_a_change_of_the_fact(
    pipeline: Pipeline, shared_qdrant: QdrantServer
) -> None:
    pipeline.spawn(*STAGES, MEMSTREAM_SESSION_TIMEOUT="10")
    await pipeline.produce(turn("I like green tea.", 1))
    await pipeline.settled()
    (fact_id,) = pipeline.stored()
    client = AsyncQdrantClient(url=shared_qdrant.url, api_key=shared_qdrant.token, check_compatibility=False)
    try:
        await client.set_payload(FACTS, payload=LATER, points=[fact_id], wait=True)
        await pipeline.produce(turn("I like green tea, as I said.", 2))
        await pipeline.settled()
        (point,) = await client.retrieve(FACTS, ids=[fact_id], with_payload=True)
    finally:
        await client.close()
    assert point.payload is not None
    assert (point.payload["version"], point.payload["reinforcement_count"]) == (2, 1)
    assert {name: point.payload.get(name) for name in LATER} == LATER
    facts = await pipeline.consistent()
    assert [fact["content"].removesuffix(AGAIN) for fact in facts.values()] == ["Likes green tea"]
    await pipeline.verified()
    pipeline.stop()
