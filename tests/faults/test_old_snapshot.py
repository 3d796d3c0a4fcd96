"""A Qdrant that goes back to an older snapshot: nothing is handled before the facts are rebuilt."""

from __future__ import annotations

import shutil

import pytest

from memstream.schemas.collections import FACTS
from memstream.schemas.topics import STAGES
from tests.support.faults import check_all_remembered, said_by
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, running
from tests.support.pipeline_places import Place
from tests.support.polling import at_least, wait_for
from tests.support.verification import store_of

pytestmark = [pytest.mark.timeout(300)]


async def check_refused_until_rebuilt(pipeline: Pipeline) -> None:
    """Start workers on the old snapshot, and follow the remedy."""
    waiting, events = said_by("u1")[4:], len(await pipeline.fact_events())
    await pipeline.produce(*waiting)
    pipeline.spawn(*STAGES)

    def refusals() -> int:
        return pipeline.logs().count("memstream rebuild facts")

    await wait_for(refusals, "a refusal", until=at_least(1), deadline=90, detail=pipeline.logs)
    assert len(await pipeline.fact_events()) == events, "nothing was handled"
    assert (await pipeline.lags("observer"))["observer:memory.turns"] == len(waiting)
    pipeline.kill()
    pipeline.cli("rebuild", "facts")
    pipeline.spawn(*STAGES)
    await pipeline.settled()
    await check_all_remembered(pipeline, ["u1"])
    pipeline.stop()


@pytest.mark.fault(
    broken="an older snapshot of a folder's store is restored, and facts are not rebuilt",
    holds="exit 4 and the remedy before anything is handled; after the rebuild no event id twice, subscribers agree",
)
async def test_an_older_folder_is_refused(in_folder: Place, model: ModelServer) -> None:
    async with running(in_folder.pipeline(model)) as pipeline:
        store, snapshot = pipeline.folder / "store", pipeline.folder / "snapshot"
        for turns in (said_by("u1")[:2], said_by("u1")[2:4]):
            pipeline.spawn(*STAGES)
            await pipeline.produce(*turns)
            await pipeline.settled()
            pipeline.stop()
            if not snapshot.exists():
                shutil.copytree(store, snapshot)
        shutil.rmtree(store)
        snapshot.rename(store)
        await check_refused_until_rebuilt(pipeline)


@pytest.mark.kafka
@pytest.mark.fault(
    broken="the facts of a Qdrant server are set back, on Kafka, and not rebuilt",
    holds="exit 4 and the remedy before anything is handled; after the rebuild no event id twice, subscribers agree",
)
async def test_an_older_qdrant_is_refused(pipeline: Pipeline) -> None:
    tenant = pipeline.tenant
    pipeline.spawn(*STAGES)
    await pipeline.produce(*said_by("u1")[:2])
    await pipeline.settled()
    async with store_of(pipeline.environment()) as store:
        snapshot = await store.select(FACTS, tenant_id=tenant)
    await pipeline.produce(*said_by("u1")[2:4])
    await pipeline.settled()
    pipeline.stop()
    async with store_of(pipeline.environment()) as store:
        later = {row.id for row in await store.select(FACTS, tenant_id=tenant)} - {row.id for row in snapshot}
        await store.delete(FACTS, tenant_id=tenant, ids=sorted(later))
        for row in snapshot:
            fields = {name: value for name, value in row.payload.items() if name != "tenant_id"}
            await store.set_payload(FACTS, tenant_id=tenant, ids=[row.id], fields=fields)
    await check_refused_until_rebuilt(pipeline)
