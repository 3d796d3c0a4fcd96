"""Retention deletes records before a stage has read them."""

from __future__ import annotations

import json

import httpx
import pytest

from memstream.schemas import ids
from memstream.schemas.topics import STAGES, TURNS, group_of
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Position
from tests.support.faults import delete_up_to, said_by
from tests.support.health import watched
from tests.support.pipeline import Pipeline

pytestmark = [pytest.mark.timeout(120, func_only=True)]


@pytest.mark.fault(
    broken="records deleted (retention) before a group had read them",
    holds="what is left has its effect; log, metric, doctor and verify report the loss; I7 I8",
)
async def test_records_that_retention_took_before_they_were_read_stop_nobody(place: Pipeline) -> None:
    pipeline = place
    pipeline.spawn(*STAGES, MEMSTREAM_SESSION_TIMEOUT="10")
    turns = said_by("u1")
    await pipeline.produce(*turns[:2])
    await pipeline.settled()
    pipeline.stop()
    await pipeline.produce(*turns[2:5])
    key = ids.session_key(pipeline.tenant, turns[0]["user_id"], turns[0]["session_id"])
    partition = partition_for(key.encode(), await pipeline.log.partitions(TURNS.name) or 1)
    before = (await pipeline.log.committed(group_of("observer"), TURNS.name))[partition] or 0
    await delete_up_to(pipeline, Position(TURNS.name, partition, before + 1))
    await pipeline.produce(*turns[5:])
    async with watched() as health:
        worker = pipeline.spawn(*STAGES, MEMSTREAM_SESSION_TIMEOUT="10", **health.env)
        await pipeline.settled()
        assert worker.poll() is None
        assert "unread_records_deleted" in pipeline.logs()
        async with httpx.AsyncClient() as client:
            metrics = (await client.get(f"http://127.0.0.1:{health.port}/metrics")).text
    for stage in ("recorder", "observer"):
        assert f'memstream_unread_deleted_total{{stage="{stage}",topic="{TURNS.name}"}} 2.0' in metrics
    checks = {check["check"]: check for check in pipeline.json_lines("doctor", expect=None)}
    assert not checks["unread records"]["ok"]
    assert "observer 2 of memory.turns" in checks["unread records"]["detail"]
    notes = {check["invariant"]: check["notes"] for check in pipeline.json_lines("verify", expect=None)}["I8"]
    told = f"observer passed over 2 offsets from {TURNS.name}/{partition}@{before} on"
    assert any(told in note for note in notes), notes
    observed = [json.loads(value)["turn_id"] for value in await pipeline.observed()]
    assert observed == ["t1", "t2", "t5", "t6", "t7", "t8"]
    await pipeline.consistent()
    pipeline.forget(*turns[2:4])
    await pipeline.verified()
    pipeline.stop()
