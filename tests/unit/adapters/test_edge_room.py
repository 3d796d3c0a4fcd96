"""The room that a disk must have before the embedded engine writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from memstream.adapters.ports import EmbedderIdentity, Point
from memstream.adapters.vectors.embedded import edge_collection
from memstream.adapters.vectors.engine import OPEN_ROOM, WRITE_ROOM
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.store import QdrantStore
from memstream.schemas import ids
from memstream.schemas.errors import Transient

ROW = ids.fact_id("acme/user/u1", "o1")


async def opened(folder: Path) -> QdrantStore:
    identity = EmbedderIdentity(name="x", dimension=2)
    return await open_store(f"embedded://{folder}", embedder=identity, holds_folder=True)


def leave(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(edge_collection, "free_bytes", lambda folder: free)


def point(version: int) -> Point:
    payload = {"tenant_id": "acme", "version": version, "applied": [f"c{version}"]}
    return Point(id=ROW, payload=payload, dense=[1.0, 0.0], text="tea")  # type: ignore[arg-type]


async def test_every_write_is_refused_and_reads_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await opened(tmp_path)
    await store.ensure("facts")
    await store.insert("facts", [point(1)])
    leave(monkeypatch, WRITE_ROOM - 1)
    writes = (
        lambda: store.insert("facts", [point(1)]),
        lambda: store.put("facts", [point(2)]),
        lambda: store.compare_and_set("facts", point(2), expected_version=1, cause="c2"),
        lambda: store.set_payload("facts", tenant_id="acme", ids=[ROW], fields={"state": "active"}),
        lambda: store.delete("facts", tenant_id="acme", ids=[ROW]),
        lambda: store.ensure("episodes"),
    )
    for write in writes:
        with pytest.raises(Transient, match=f"{tmp_path}.*127 MiB left, a write needs 128 MiB") as short:
            await write()
        assert "Free some space" in short.value.remedy
    assert (await store.get("facts", tenant_id="acme", ids=[ROW]))[ROW].payload["version"] == 1
    leave(monkeypatch, WRITE_ROOM)
    assert await store.compare_and_set("facts", point(2), expected_version=1, cause="c2") == "applied"
    await store.close()


async def test_a_folder_that_takes_no_writes_can_be_opened_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(tmp_path)
    await store.ensure("facts")
    await store.insert("facts", [point(1)])
    await store.close()
    leave(monkeypatch, OPEN_ROOM - 1)
    with pytest.raises(Transient, match="31 MiB left"):
        await opened(tmp_path)
    leave(monkeypatch, OPEN_ROOM)
    store = await opened(tmp_path)
    assert ROW in await store.get("facts", tenant_id="acme", ids=[ROW])
    await store.close()
