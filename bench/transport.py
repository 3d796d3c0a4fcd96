"""Cost of a search on a Qdrant server over HTTP, TLS and gRPC: `python -m bench.transport`.

MEMSTREAM_TEST_QDRANT names the server; gRPC is on the next port. `--tls https://host:port --ca FILE` names a second
server, which has TLS, and the certificate of its authority. Each transport sends the same query with a bare client and
decodes the response into dicts: aiohttp with and without compression, and the stubs of qdrant-client. The transports
alternate in one run; the minimum of several rounds counts, because the machine is shared.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import statistics
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import click
import grpc
import numpy as np
from pydantic_core import from_json, to_json
from qdrant_client import grpc as stubs
from qdrant_client import models
from rich.console import Console
from rich.table import Table

from .qdrant_server import given_server, prefixed_engine

POINTS: Final = 10
"""Number of points in one response."""
STORED: Final = 200
Way = Callable[[], Awaitable[Any]]


def _payload(size: int, chance: random.Random) -> dict[str, Any]:
    """Build a payload of about `size` bytes: natural text, which compresses to about a half."""
    words = [f"w{chance.randrange(20_000)}" for _ in range(max(1, (size - 200) // 7))]
    return {
        "tenant_id": "acme",
        "content": " ".join(words),
        "confidence": chance.random(),
        "recorded_at": "2026-11-20T10:00:00Z",
        "evidence": [{"turn_id": "t1", "session_id": "s1", "quote": words[0]}],
    }


def _value(value: Any) -> Any:
    match kind := value.WhichOneof("kind"):
        case "struct_value":
            return {name: _value(each) for name, each in value.struct_value.fields.items()}
        case "list_value":
            return [_value(each) for each in value.list_value.values]
        case "null_value" | None:
            return None
        case _:
            return getattr(value, kind)


async def measured(way: Way, *, calls: int, in_flight: int) -> tuple[float, float]:
    """Return the median latency and this process's CPU time of one call, in milliseconds."""
    took: list[float] = []

    async def reader() -> None:
        for _ in range(max(1, calls // in_flight)):
            began = time.perf_counter()
            await way()
            took.append(time.perf_counter() - began)

    cpu = time.process_time()
    await asyncio.gather(*(reader() for _ in range(in_flight)))
    return 1_000 * statistics.median(took), 1_000 * (time.process_time() - cpu) / len(took)


async def measure(
    server: str, *, tls: str | None, ca: Path | None, calls: int, rounds: int, wanted: Sequence[str]
) -> Table:
    table = Table("dimensions", "answer", "in flight", "way", "p50 ms", "CPU ms", box=None)
    parts = urlsplit(server)
    trusted = True if ca is None else ssl.create_default_context(cafile=ca)
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusted)) as session,
        grpc.aio.insecure_channel(
            f"{parts.hostname}:{(parts.port or 6333) + 1}", options=[("grpc.max_receive_message_length", -1)]
        ) as channel,
    ):
        for dimension in (384, 1_536):
            vector = _vectors(1, dimension)[0]
            for kilobytes in (1, 10, 100):
                size = 1_024 * kilobytes // POINTS
                async with AsyncExitStack() as stack:
                    name = await stack.enter_async_context(_filled(server, dimension, size))
                    ways = _ways(session, stubs.PointsStub(channel), server, name, vector)
                    if tls is not None:
                        name = await stack.enter_async_context(_filled(tls, dimension, size, ca=ca))
                        ways["HTTPS"] = partial(_over_http, session, tls, name, vector)
                    ways = {way: call for way, call in ways.items() if way in (wanted or ways)}
                    for in_flight in (1, 32):
                        best = await _alternated(ways, calls=calls, in_flight=in_flight, rounds=rounds)
                        for way, (latency, cpu) in best.items():
                            row = (f"{dimension}", f"{kilobytes} KB", f"{in_flight}", way)
                            table.add_row(*row, f"{latency:.2f}", f"{cpu:.2f}")
    return table


async def _alternated(
    ways: Mapping[str, Way], *, calls: int, in_flight: int, rounds: int
) -> dict[str, tuple[float, float]]:
    best: dict[str, tuple[float, float]] = {}
    for _ in range(rounds):
        for name, way in ways.items():
            await way()
            latency, cpu = await measured(way, calls=calls, in_flight=in_flight)
            before = best.get(name, (latency, cpu))
            best[name] = (min(latency, before[0]), min(cpu, before[1]))
    return best


@asynccontextmanager
async def _filled(server: str, dimension: int, size: int, *, ca: Path | None = None) -> AsyncIterator[str]:
    """Yield the name of a collection with payloads of this size. Delete it afterwards."""
    engine = prefixed_engine(server, f"memstream-bench-{uuid.uuid4().hex[:8]}-", ca=ca)
    chance = random.Random(7)
    try:
        await engine.create_collection(
            "c", vectors_config={"dense": models.VectorParams(size=dimension, distance=models.Distance.COSINE)}
        )
        points = [
            models.PointStruct(id=number, vector={"dense": vector}, payload=_payload(size, chance))
            for number, vector in enumerate(_vectors(STORED, dimension))
        ]
        await engine.upsert("c", points, wait=True)
        yield f"{engine.prefix}c"
    finally:
        await engine.drop()
        await engine.close()


def _vectors(count: int, dimension: int) -> list[list[float]]:
    found: list[list[float]] = np.random.default_rng(7).standard_normal((count, dimension)).tolist()
    return found


async def _over_http(
    session: aiohttp.ClientSession, server: str, name: str, vector: Sequence[float], encoding: str = "identity"
) -> Any:
    query = {"query": vector, "using": "dense", "limit": POINTS, "with_payload": True}
    async with session.post(
        f"{server}/collections/{name}/points/query/batch",
        data=to_json({"searches": [query]}),
        headers={"Content-Type": "application/json", "Accept-Encoding": encoding},
    ) as response:
        return from_json(await response.read())["result"]


def _ways(
    session: aiohttp.ClientSession, points: Any, server: str, name: str, vector: Sequence[float]
) -> dict[str, Way]:
    async def over_grpc() -> Any:
        query = stubs.QueryPoints(
            collection_name=name,
            query=stubs.Query(nearest=stubs.VectorInput(dense=stubs.DenseVector(data=vector))),
            using="dense",
            limit=POINTS,
            with_payload=stubs.WithPayloadSelector(enable=True),
        )
        answer = await points.QueryBatch(stubs.QueryBatchPoints(collection_name=name, query_points=[query]))
        return [
            [
                (each.id.num, each.score, {key: _value(value) for key, value in each.payload.items()})
                for each in one.result
            ]
            for one in answer.result
        ]

    return {
        "HTTP": partial(_over_http, session, server, name, vector),
        "HTTP, gzip": partial(_over_http, session, server, name, vector, "gzip, deflate"),
        "gRPC, bare stubs": over_grpc,
    }


@click.command()
@click.option("--calls", default=64, help="Calls of each way in a round.")
@click.option("--rounds", default=3, help="Rounds, of which the least counts.")
@click.option("--way", "wanted", multiple=True, help="A way to measure. [default: all]")
@click.option("--tls", help="Address of a server with TLS.")
@click.option("--ca", type=click.Path(path_type=Path), help="Certificate of its authority.")
def main(calls: int, rounds: int, wanted: tuple[str, ...], tls: str | None, ca: Path | None) -> None:
    """Compare the transports to a Qdrant server."""
    server = given_server()
    if server is None:
        raise click.ClickException("MEMSTREAM_TEST_QDRANT names no server")
    Console(width=120).print(asyncio.run(measure(server, tls=tls, ca=ca, calls=calls, rounds=rounds, wanted=wanted)))


if __name__ == "__main__":
    main()
