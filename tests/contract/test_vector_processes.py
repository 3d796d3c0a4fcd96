"""The embedded engine and several processes: kills, sharing, announcement, attaching, and the unchanged client."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from memstream.adapters.folder_lock import FolderLock
from memstream.adapters.vectors import factory
from memstream.adapters.vectors.embedded.edge import EdgeEngine
from memstream.adapters.vectors.embedded.loopback import HELD_EXIT, LoopbackServer, read_endpoint
from memstream.adapters.vectors.factory import embedded_store_folder, open_store
from memstream.schemas.errors import Fatal, Transient
from tests.support.qdrant import LoopbackQdrant, QdrantServer, loopback_qdrant
from tests.support.vector_backends import EMBEDDER, make_id, make_point, make_row

pytestmark = pytest.mark.slow

WRITER = """
import asyncio, sys
from memstream.adapters.ports import EmbedderIdentity, Point
from memstream.adapters.vectors.factory import open_store

async def main(folder):
    store = await open_store(f"embedded://{folder}", embedder=EmbedderIdentity("hashing", 4), holds_folder=True)
    await store.ensure("facts")
    for number in range(100_000):
        id_ = f"00000000-0000-0000-0000-{number:012}"
        await store.put("facts", [Point(id=id_, payload={"tenant_id": "acme", "n": number}, dense=[1, 0, 0, 0])])
        print(number, flush=True)

asyncio.run(main(sys.argv[1]))
"""

APPLIER = """
import asyncio, os, sys
from memstream.adapters.ports import EmbedderIdentity, Point
from memstream.adapters.vectors.factory import open_store
ID = "00000000-0000-0000-0000-000000000001"

async def main(url, causes):
    store = await open_store(url, embedder=EmbedderIdentity("hashing", 4), api_key=os.environ["QDRANT_API_KEY"])
    for cause in causes:
        result = "conflict"
        while result == "conflict":
            row = (await store.get("facts", tenant_id="acme", ids=[ID])).get(ID)
            version = row.payload["version"] if row else 0
            applied = [*(row.payload["applied"] if row else []), cause]
            point = Point(ID, {"tenant_id": "acme", "version": version + 1, "applied": applied})
            result = await store.compare_and_set("facts", point, expected_version=version or None, cause=cause)
    await store.close()

asyncio.run(main(sys.argv[1], sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def running() -> Iterator[LoopbackQdrant]:
    """One server for all tests that do not end it."""
    with loopback_qdrant() as server:
        yield server


def test_kill_9_in_the_middle_of_writing_loses_no_write_that_was_confirmed(tmp_path: Path) -> None:
    for _ in range(2):  # the second time over what the first left
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert process.stdout is not None
        confirmed = [int(process.stdout.readline()) for _ in range(500)][-1]
        process.send_signal(signal.SIGKILL)
        confirmed = max([confirmed, *(int(line) for line in process.stdout.read().split()[:-1])])
        process.wait()
        process.stdout.close()

    async def stored() -> set[object]:
        store = await open_store(f"embedded://{tmp_path}", embedder=EMBEDDER, holds_folder=True)
        await store.ensure()
        rows = await store.select("facts", tenant_id="acme")
        await store.close()
        return {row.payload["n"] for row in rows}

    assert set(range(confirmed + 1)) <= asyncio.run(stored())


@pytest.mark.long
async def test_a_killed_server_comes_back_with_everything(qdrant: QdrantServer) -> None:
    store = await open_store(qdrant.url, embedder=EMBEDDER, api_key=qdrant.token)
    await store.ensure()
    await store.put("facts", [make_point(i, text=f"number {i}") for i in range(300)])
    await asyncio.to_thread(qdrant.kill)
    with pytest.raises(Transient) as away:
        await store.count("facts", tenant_id="acme")
    assert away.value.component == "store"
    assert "MEMSTREAM_QDRANT" in away.value.remedy

    await asyncio.to_thread(qdrant.start)
    assert await store.count("facts", tenant_id="acme") == 300
    await store.ensure()
    await asyncio.to_thread(qdrant.stop)
    await asyncio.to_thread(qdrant.start)
    assert len(await store.select("facts", tenant_id="acme")) == 300
    await store.close()


@pytest.mark.long
async def test_processes_compare_and_set_through_one_server(running: LoopbackQdrant) -> None:
    """Three processes share the causes, each cause given to two of them: every cause is applied once."""
    store = await open_store(running.url, embedder=EMBEDDER, api_key=running.token)
    await store.ensure("facts")
    causes = [f"c{number}" for number in range(30)]
    shares = (causes[:20], causes[10:], causes[20:] + causes[:10])
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", APPLIER, running.url, *share], env={**os.environ, "QDRANT_API_KEY": running.token}
        )
        for share in shares
    ]
    try:
        codes = await asyncio.gather(*(asyncio.to_thread(process.wait, 60) for process in processes))
    finally:
        for process in processes:
            process.kill()
    assert codes == [0, 0, 0]
    [row] = await store.select("facts", tenant_id="acme")
    applied = row.payload["applied"]
    assert isinstance(applied, list)
    assert row.payload["version"] == len(applied) == 30
    assert set(applied) == set(causes)
    await store.close()


async def test_a_wrong_key_is_told_as_such(running: LoopbackQdrant) -> None:
    for key in ("wrong", None):
        store = await open_store(running.url, embedder=EMBEDDER, api_key=key)
        with pytest.raises(Transient) as refused:
            await store.ping()
        assert "QDRANT_API_KEY" in refused.value.remedy
        await store.close()


async def test_the_stock_client_works_against_the_loopback_server(running: LoopbackQdrant) -> None:
    """The client runs with its defaults and its version check. Its only warning is about plain HTTP."""
    with pytest.warns(UserWarning, match="insecure") as warned:
        client = AsyncQdrantClient(url=running.url, api_key=running.token)
    assert len(warned) == 1
    await client.create_collection(
        "mine",
        vectors_config={"dense": models.VectorParams(size=2, distance=models.Distance.DOT)},
        sparse_vectors_config={"words": models.SparseVectorParams(modifier=models.Modifier.IDF)},
        metadata={"a": [1]},
    )
    await client.create_payload_index("mine", "n", models.PayloadSchemaType.INTEGER)
    vector = {"dense": [1.0, 2.0], "words": models.SparseVector(indices=[7], values=[1.0])}
    points = [models.PointStruct(id=i, vector=vector, payload={"n": i, "x": None}) for i in (1, 2, 3)]
    await client.upsert("mine", points)
    await client.set_payload("mine", {"m": 1}, points=[1, 99])
    await client.delete("mine", points_selector=[3])
    info = await client.get_collection("mine")
    assert (info.points_count, info.config.metadata, list(info.payload_schema)) == (2, {"a": [1]}, ["n"])
    [one] = await client.retrieve("mine", [1, 3], with_vectors=True)
    assert one.payload == {"n": 1, "x": None, "m": 1}
    assert one.vector == vector
    found = await client.query_points("mine", query=[1.0, 1.0], using="dense", limit=1)
    assert found.points[0].score == pytest.approx(3.0)
    words = models.SparseVector(indices=[7], values=[1.0])
    assert len((await client.query_points("mine", query=words, using="words")).points) == 2
    await client.update_collection_aliases(
        [models.CreateAliasOperation(create_alias=models.CreateAlias(collection_name="mine", alias_name="ours"))]
    )
    assert (await client.count("ours")).count == 2
    assert await client.delete_collection("mine")
    assert not await client.collection_exists("ours")
    assert "ours" not in {each.alias_name for each in (await client.get_aliases()).aliases}
    with pytest.raises(UnexpectedResponse, match="400"):
        await client.create_collection("a/../b", vectors_config={})
    await client.close()


async def test_what_the_loopback_server_does_not_offer_is_refused_never_ignored(running: LoopbackQdrant) -> None:
    headers = {"api-key": running.token}
    text = {"must": [{"key": "content", "match": {"text": "stripe"}}]}
    async with httpx.AsyncClient(base_url=running.url, headers=headers) as client:
        await client.put("/collections/c", json={"vectors": {}})
        for path, body in (
            ("points/count", {"filter": text}),
            ("points/count", {"filter": {"must": [{"key": "n", "values_count": {"gt": 1}}]}}),
            ("points/query", {"query": {"fusion": "rrf"}, "prefetch": [{"query": [1.0]}]}),
            ("points/query", {"query": [1.0], "score_threshold": 0.5}),
            ("points/scroll", {"with_payload": {"exclude": ["n"]}}),
            ("points/count", "no object"),
        ):
            answer = await client.post(f"/collections/c/{path}", json=body)
            assert (answer.status_code, answer.json()["status"]["error"] != "") == (400, True), (path, body)
        assert (await client.post("/collections/c/points/search", json={})).status_code == 404
        assert (await client.post("/collections/absent/points/count", json={})).status_code == 404
        assert (await client.put("/collections/c", json={"vectors": {}})).status_code == 409
        assert (await client.post("/collections/c/points/count", json={})).json()["result"] == {"count": 0}


# ------------------------------------------------------------------------------------------------ one folder
async def test_the_holder_announces_itself_to_its_owner_alone(tmp_path: Path) -> None:
    store = await open_store(f"embedded://{tmp_path}", embedder=EMBEDDER, holds_folder=True, serve_loopback=True)
    endpoint = read_endpoint(tmp_path)
    assert endpoint is not None
    assert endpoint.pid == os.getpid()
    assert endpoint.url.startswith("http://127.0.0.1:")
    assert stat.S_IMODE((tmp_path / "qdrant.endpoint").stat().st_mode) == 0o600
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"{endpoint.url}/collections")).status_code == 401
        assert (await client.get(f"{endpoint.url}/collections", headers={"api-key": "guess"})).status_code == 401
        unreadable = {"api-key": b"\xff\xfe"}
        assert (await client.get(f"{endpoint.url}/collections", headers=unreadable)).status_code == 401
    await store.close()
    assert read_endpoint(tmp_path) is None


async def test_a_command_waits_for_the_holder_to_announce_itself(tmp_path: Path) -> None:
    stale = {"url": "http://127.0.0.1:9", "token": "of a killed process", "pid": 1}
    (tmp_path / "qdrant.endpoint").write_text(json.dumps(stale))
    attaching = asyncio.create_task(open_store(f"embedded://{tmp_path}", embedder=EMBEDDER))
    await asyncio.sleep(0)
    holder = await open_store(f"embedded://{tmp_path}", embedder=EMBEDDER, holds_folder=True, serve_loopback=True)
    await holder.ensure()
    command = await attaching
    await holder.put("facts", [make_row("f", 1, "c")])
    assert list(await command.get("facts", tenant_id="acme", ids=[make_id("f")])) == [make_id("f")]
    await command.close()
    await holder.close()


async def test_a_command_follows_a_holder_that_was_started_again(tmp_path: Path) -> None:
    """The restarted holder has another port and another token. Points and collections are both found."""
    address = f"embedded://{tmp_path}"
    holder = await open_store(address, embedder=EMBEDDER, holds_folder=True, serve_loopback=True)
    await holder.ensure("facts")
    await holder.put("facts", [make_point("f")])
    reading, pinging = [await open_store(address, embedder=EMBEDDER) for _ in range(2)]
    assert await reading.count("facts", tenant_id="acme") == 1
    first = read_endpoint(tmp_path)
    await holder.close()
    with pytest.raises(Transient):
        await reading.count("facts", tenant_id="acme")

    again = await open_store(address, embedder=EMBEDDER, holds_folder=True, serve_loopback=True)
    second = read_endpoint(tmp_path)
    assert first is not None
    assert second is not None
    assert first.url != second.url
    for ask in (lambda: reading.count("facts", tenant_id="acme"), lambda: pinging.ping()):
        with pytest.raises(Transient):  # the client notices it by this failure
            await ask()
        await ask()
    assert await reading.count("facts", tenant_id="acme") == 1
    for store in (reading, pinging, again):
        await store.close()


async def test_a_stranger_on_the_old_port_is_not_taken_for_the_holder(tmp_path: Path) -> None:
    address = f"embedded://{tmp_path / 'ours'}"
    (tmp_path / "theirs").mkdir()
    holder = await open_store(address, embedder=EMBEDDER, holds_folder=True, serve_loopback=True)
    await holder.ensure("facts")
    command = await open_store(address, embedder=EMBEDDER)
    announced = read_endpoint(tmp_path / "ours")
    assert announced is not None
    await holder.close()

    engine = EdgeEngine(folder=tmp_path / "theirs" / "qdrant")
    stranger = LoopbackServer(engine=engine, folder=tmp_path / "theirs", port=int(announced.url.rpartition(":")[2]))
    await stranger.start()
    again = await open_store(address, embedder=EMBEDDER, holds_folder=True, serve_loopback=True)
    with pytest.raises(Transient, match="refuses the key"):
        await command.count("facts", tenant_id="acme")
    assert await command.count("facts", tenant_id="acme") == 0
    await stranger.stop()
    await engine.close()
    for store in (command, again):
        await store.close()


async def test_a_holder_that_serves_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "ATTACH_SECONDS", 0.2)
    with FolderLock(folder=tmp_path, purpose="worker all") as lock:
        assert lock.try_acquire()
        with pytest.raises(Transient, match=rf"held by pid {os.getpid()} \(worker all\)") as away:
            await open_store(f"embedded://{tmp_path}", embedder=EMBEDDER)
    assert away.value.remedy


def test_a_second_server_on_a_folder_names_the_first_and_ends(running: LoopbackQdrant) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "memstream.adapters.vectors.embedded.loopback", "--folder", str(running.folder)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert second.returncode == HELD_EXIT
    assert f"held by pid {running.pid}" in second.stderr


async def test_a_crash_while_creating_or_deleting_a_collection_leaves_nothing_half_made(tmp_path: Path) -> None:
    (tmp_path / "qdrant" / ".creating-facts__hashing_v1" / "shard").mkdir(parents=True)
    (tmp_path / "qdrant" / ".deleted-old").mkdir()
    (tmp_path / "qdrant" / "aliases.json").write_text('{"facts": "facts__gone_v1"}')
    store = await open_store(f"embedded://{tmp_path}", embedder=EMBEDDER, holds_folder=True)
    assert not await store.exists("facts")
    await store.ensure("facts")
    await store.put("facts", [make_point("f")])
    assert await store.count("facts", tenant_id="acme") == 1
    assert [each.name for each in (tmp_path / "qdrant").iterdir() if each.name.startswith(".")] == []
    await store.close()


@pytest.mark.parametrize("damaged", ["aliases.json", "facts__hashing_v1/collection.json", "facts__hashing_v1/shard"])
async def test_a_damaged_folder_is_told_not_guessed_at(tmp_path: Path, damaged: str) -> None:
    store = await open_store(f"embedded://{tmp_path}", embedder=EMBEDDER, holds_folder=True)
    await store.ensure("facts")
    await store.close()
    path = tmp_path / "qdrant" / damaged
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.write_text('{"cut o')
    with pytest.raises(Fatal, match="cannot be opened"):
        await open_store(f"embedded://{tmp_path}", embedder=EMBEDDER, holds_folder=True)


def test_addresses(tmp_path: Path) -> None:
    assert embedded_store_folder("embedded:///var/lib/memstream") == Path("/var/lib/memstream")
    assert embedded_store_folder("embedded:///with%20space") == Path("/with space")
    assert embedded_store_folder("embedded://.memstream") == Path(".memstream")
    assert embedded_store_folder("http://localhost:6333") is None
    with pytest.raises(Fatal, match="names no folder"):
        embedded_store_folder("embedded://")


async def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(Fatal, match="MEMSTREAM_QDRANT"):
        await open_store("localhost:6333", embedder=EMBEDDER)
