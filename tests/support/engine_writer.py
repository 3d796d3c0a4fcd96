"""A process that writes to the embedded engine: `python -m tests.support.engine_writer FOLDER FIRST_VERSION`.

Eight lanes replace a point each, version after version, and insert another now and then; graphs are built beside them,
and the shard is flushed. It prints each write that was answered: `point version`.
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

import structlog
from qdrant_client import models

from memstream.adapters.vectors.embedded.edge import EdgeEngine
from memstream.adapters.vectors.embedded.edge_collection import call
from memstream.adapters.vectors.embedded.edge_index import GraphBuilder, GraphPolicy

LANES = 8
SIZE = 256
TEXT = 4_000
"""Characters of a payload at most: the engine's log gets a new file after some thousand writes."""
COLLECTION = "facts"
INSERTED = 1_000_000
"""Ids of the points that are inserted once begin here."""
ALWAYS = GraphPolicy(vectors=50, share=0.0, of_tenant=50, full_scan=10)


def point(id_: int, version: int) -> models.PointStruct:
    payload = {"tenant_id": "acme", "version": version, "text": "x" * random.randrange(TEXT)}
    vector = [float(version), *(random.random() for _ in range(SIZE - 1))]
    return models.PointStruct(id=id_, vector={"dense": vector}, payload=payload)


async def write(engine: EdgeEngine, lane: int, version: int) -> None:
    while True:
        version += 1
        await engine.upsert(COLLECTION, [point(lane, version)])
        print(lane, version, flush=True)
        if version % 5 == 0:
            once = INSERTED + LANES * version + lane
            await engine.upsert(COLLECTION, [point(once, 0)])
            print(once, 0, flush=True)
        if lane == 1 and random.random() < 0.01:
            for _, collection in engine.collections():
                call(collection.shard.flush)


async def main(folder: Path, first: int) -> None:
    engine = EdgeEngine(folder=folder)
    if not await engine.collection_exists(COLLECTION):
        dense = models.VectorParams(size=SIZE, distance=models.Distance.COSINE, on_disk=True)
        await engine.create_collection(COLLECTION, {"dense": dense})
        tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
        await engine.create_payload_index(COLLECTION, "tenant_id", tenant)
    print("ready", flush=True)
    graphs = GraphBuilder(engine=engine, policy=ALWAYS)

    async def build() -> None:
        while True:
            built = await graphs.look()
            if built:
                print("built", flush=True)
            await asyncio.sleep(0.1)

    await asyncio.gather(build(), *(write(engine, lane, first) for lane in range(1, LANES + 1)))


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
