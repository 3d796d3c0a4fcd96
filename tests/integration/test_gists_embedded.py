"""Gists as a user has them, in one process on a folder: compressed, given back, and not when they were damaged."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.folder_lock import FolderLock
from memstream.adapters.vectors.factory import open_store
from memstream.schemas import ids
from memstream.schemas.archive import ArchivedText
from memstream.schemas.collections import ARCHIVE
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import Json, Pipeline, running, turn
from tests.support.pipeline_places import Place

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
WORDS = "Ran a marathon in Oslo with Jennifer." + " The hills were steep and it rained on the way that day." * 5
SAID = {"ran a marathon": [{"content": WORDS, "durability": "permanent", "importance": 0.8, "category": "event"}]}
LONG_AGO = datetime.now(UTC) - timedelta(days=50)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(observing(SAID)) as server:
        yield server


@pytest.fixture
async def pipeline(in_folder: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(in_folder.pipeline(model)) as ready:
        yield ready


async def archive(pipeline: Pipeline, **changed: str) -> list[ArchivedText]:
    """What it holds, while no worker runs; `changed` in each of them afterwards."""
    folder = pipeline.folder / "store"
    with FolderLock(folder=folder) as lock:
        assert lock.try_acquire()
        store = await open_store(f"embedded://{folder}", embedder=HashingEmbedder().identity, holds_folder=True)
        try:
            rows = [
                ArchivedText.from_payload(each.payload)
                for each in await store.select(ARCHIVE, tenant_id=pipeline.tenant)
            ]
            if changed:
                named = [row.archive_id for row in rows]
                await store.set_payload(ARCHIVE, tenant_id=pipeline.tenant, ids=named, fields=dict(changed))
        finally:
            await store.close()
    return rows


async def test_an_old_episode_is_compressed_and_its_words_come_back_until_they_are_damaged(pipeline: Pipeline) -> None:
    who = ("--tenant", pipeline.tenant, "--user", "u1")
    pipeline.spawn("all")
    await pipeline.produce(turn("I ran a marathon.", 1, occurred_at=LONG_AGO.isoformat().replace("+00:00", "Z")))
    await pipeline.settled()
    [whole] = pipeline.json_lines("show", "episodes", *who)
    rehydrate = ("rehydrate", whole["episode_id"], "--tenant", pipeline.tenant, "--json")
    assert '"nothing":"whole"' in pipeline.cli(*rehydrate, expect=1)
    pipeline.cli("consolidate", *who)
    [visit] = pipeline.json_lines("hygiene", *who)
    assert visit["compressed"] == 1
    [gist] = pipeline.json_lines("show", "episodes", *who)
    assert WORDS.startswith(gist["content"])
    assert len(gist["content"]) <= 160
    assert gist["archived_at"] is not None
    assert (gist["evidence"], gist["content_hash"]) == (whole["evidence"], whole["content_hash"])
    [found] = pipeline.json_lines("recall", *who, "--cue", "rained on the way", "--limit", "1")
    assert (found["id"], found["content"]) == (gist["episode_id"], gist["content"])
    told: list[Json] = pipeline.json_lines(*rehydrate[:-1])
    assert [(each["verbatim_content"], each["sha256"]) for each in told] == [(WORDS, ids.text_hash(WORDS))]
    await pipeline.settled()
    await pipeline.verified()
    pipeline.stop()

    [row] = await archive(pipeline, content=WORDS.replace("Jennifer", "Mallory"))
    assert (row.access_count, row.accessed_at > row.archived_at) == (1, True)
    assert "Mallory" not in pipeline.cli(*rehydrate, expect=1)
    assert pipeline.cli(*rehydrate[:-1], expect=1) == ""
