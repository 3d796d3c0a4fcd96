"""A change of the embedder on Kafka and a Qdrant server: three workers, waiting turns, and a killed command."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from memstream.schemas.topics import STAGES
from tests.support.cli_process import COMMAND
from tests.support.conversation import different_each_time
from tests.support.faults import check_all_remembered, said_by
from tests.support.kafka import Broker
from tests.support.model_server import ModelServer
from tests.support.pipeline import Pipeline, running
from tests.support.qdrant import QdrantServer

NEW = {"MEMSTREAM_EMBEDDER": "openai:words"}
TO = ("migrate-embedder", "--to", NEW["MEMSTREAM_EMBEDDER"], "--batch", "1", "--json")


@pytest.mark.kafka
@pytest.mark.long
@pytest.mark.timeout(300)
async def test_three_workers_change_their_embedder_and_lose_no_turn(
    own_kafka: Broker, qdrant: QdrantServer, tmp_path: Path
) -> None:
    with ModelServer(different_each_time) as model:
        pipeline = Pipeline(folder=tmp_path, broker=f"kafka://{own_kafka.bootstrap}", qdrant=qdrant, model=model)
        async with running(pipeline):
            for _ in range(3):
                pipeline.spawn(*STAGES)
            await pipeline.produce(*said_by("u1")[:4])
            await pipeline.settled()
            pipeline.cli(*TO, expect=2)
            pipeline.stop()
            await pipeline.produce(*said_by("u1")[4:])
            facts = pipeline.stored()
            for calls in (2, 4):
                killed_at(calls, model, pipeline)
                assert pipeline.stored() == facts
                pipeline.cli("worker", "all", expect=2)
            done: dict[str, Any] = json.loads(pipeline.cli(*TO))
            assert done["kept"] > 0
            assert done["written"] > 0
            assert done["kept"] + done["written"] == done["read"]
            for env in ({}, NEW):
                pipeline.cli("worker", "all", expect=2, **env)
            pipeline.cli("migrate-embedder", "--drop-old")
            for _ in range(3):
                pipeline.spawn(*STAGES, **NEW)
            await pipeline.settled()
            await check_all_remembered(pipeline, ["u1"])
            pipeline.stop()


def killed_at(calls: int, model: ModelServer, pipeline: Pipeline) -> None:
    """Run the command, and kill it when the embedder has the request of this number."""
    reached, seen = threading.Event(), []

    def counted(body: Any) -> None:
        seen.append(body)
        if len(seen) == calls:
            reached.set()

    model.embedding_script = counted
    process = subprocess.Popen([*COMMAND, *TO], cwd=pipeline.folder, env=pipeline.environment())
    try:
        assert reached.wait(60)
    finally:
        process.kill()
        process.wait(60)
        model.embedding_script = lambda _body: None
