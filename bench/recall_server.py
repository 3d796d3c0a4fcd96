"""`memstream serve` over the filled store of `bench.recall`: `python -m bench.recall_server`.

It uses the parts and the server of `serve`, but the vectors of cues are known, so that no model's time is measured. It
prints its address, and ends when its standard input is closed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click
from prometheus_client import CollectorRegistry

from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.api.credentials import Credentials
from memstream.cli.process.garbage_collection import tune_garbage_collection
from memstream.cli.wiring.server import HttpServer, ServerParts, listening, url_of
from memstream.memory.policies import HygienePolicy, MemoryPolicy, RecallPolicy
from memstream.memory.tenant_policies import TenantPolicies
from memstream.streams.engine.metrics import Metrics
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.topic_admin import Deployment, create

from .qdrant_server import prefixed_engine
from .recall_corpus import IDENTITY, Embedded, Whose, cues


async def serve(qdrant: str, prefix: str, folder: Path, *, whose: Whose, count: int, publishing: bool) -> None:
    recall = RecallPolicy(patience=60.0)  # as in bench.recall: a read on a busy machine is measured, not cut off
    policy = MemoryPolicy(recall=recall, hygiene=HygienePolicy(enabled=publishing))
    log = EmbeddedLog(folder=folder)
    await log.start()
    await create(log, deployment=Deployment(partitions=1, replication=1))
    parts = ServerParts(
        log=log,
        store=PeriodStore(engine=prefixed_engine(qdrant, prefix), embedder=IDENTITY),
        embedder=Embedded(cues(count, owners=[whose])),
        reranker=None,
        metrics=Metrics(CollectorRegistry()),
        policies=TenantPolicies(policy),
    )
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), stopping.set)
    with listening("127.0.0.1", 0) as sockets:
        server = HttpServer(parts=parts, policy=policy, credentials=Credentials(None))
        tune_garbage_collection()
        print(url_of(sockets), flush=True)
        await server.run(sockets, stopping=stopping)
    await parts.store.close()
    await log.close()


@click.command()
@click.option("--qdrant", required=True, help="Address of the Qdrant server.")
@click.option("--prefix", required=True, help="Prefix of the collections.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder of the log.")
@click.option("--tenant", required=True)
@click.option("--user", required=True)
@click.option("--cues", "count", type=int, required=True, help="Number of cues whose vectors are known.")
@click.option("--publishing/--silent", required=True, help="Whether memory.recalled gets what is read.")
def main(qdrant: str, prefix: str, folder: Path, tenant: str, user: str, count: int, publishing: bool) -> None:
    """Serve reads until standard input ends."""
    asyncio.run(serve(qdrant, prefix, folder, whose=Whose(tenant, user), count=count, publishing=publishing))


if __name__ == "__main__":
    main()
