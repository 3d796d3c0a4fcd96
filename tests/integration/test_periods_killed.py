"""A process that is killed (SIGKILL) in the middle of dropping a period from a folder: the next start completes it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memstream.adapters.ports import EmbedderIdentity, Point
from memstream.adapters.vectors.embedded import edge
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.schemas.periods import Period
from tests.support.vector_backends import make_id

EMBEDDER = EmbedderIdentity(name="hashing", dimension=4)
OLD, NEW = Period(2025, 3), Period(2026, 4)
STEPS = ("rename", "aliases", "files")


async def _opened(folder: Path) -> PeriodStore:
    return await open_store(f"embedded://{folder}", embedder=EMBEDDER, holds_folder=True)


async def _fill_and_drop(folder: Path, step: str) -> None:
    """Drop a period and die just before `step`: the folder's rename, the change of names, the removal of its files."""
    store = await _opened(folder)
    await store.ensure("turns")
    for period in (NEW, OLD):
        name = await store.open_period("turns", period, newest=NEW)
        await store.insert(name, [Point(make_id(str(period)), {"tenant_id": "acme"}, dense=[1.0, 0, 0, 0])])

    def die(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if step == "rename":
        edge.os.rename = die  # type: ignore[attr-defined]
    elif step == "aliases":
        edge.write_atomically = die  # type: ignore[attr-defined]
    else:
        shutil.rmtree = die  # type: ignore[assignment]
    await store.drop_periods("turns", before=NEW.begins)


@pytest.mark.parametrize("step", STEPS)
async def test_a_drop_that_was_killed_is_completed(tmp_path: Path, step: str) -> None:
    child = subprocess.run(
        [sys.executable, "-m", "tests.integration.test_periods_killed", str(tmp_path), step], capture_output=True
    )
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()

    store = await _opened(tmp_path)
    try:
        assert await store.periods("turns") == ((OLD, NEW) if step == "rename" else (NEW,))  # no name leads nowhere
        await store.ensure("turns")
        await store.drop_periods("turns", before=NEW.begins)
        assert await store.periods("turns") == (NEW,)
        assert [each.id for each in await store.select("turns", tenant_id="acme")] == [make_id(str(NEW))]
        assert sorted(path.name for path in (tmp_path / "qdrant").iterdir()) == ["aliases.json", "turns__hashing_v1"]
        await store.open_period("turns", OLD, newest=NEW)  # its name is free again
        assert await store.count("turns", tenant_id="acme") == 1
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(_fill_and_drop(Path(sys.argv[1]), sys.argv[2]))
