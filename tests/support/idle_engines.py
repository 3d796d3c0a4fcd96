"""Embedded engines that one stage test gives to the next: it takes 0.3 s to create the collections of a folder.

A store's `close` drops every collection that has points or belongs to a period, so the next test finds an empty engine.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from memstream.adapters.vectors.embedded.edge import EdgeEngine
from memstream.schemas.collections import COLLECTIONS

ROOT = "PYTEST_DEBUG_TEMPROOT"
WHOLE = {spec.name for spec in COLLECTIONS}
_folders: list[Path] = []
_idle: list[EdgeEngine] = []


class ReusedEngine(EdgeEngine):
    """An engine whose `close` empties it and keeps it for the next test."""

    async def close(self) -> None:
        for name in vars(self).keys() & vars(EdgeEngine).keys():
            delattr(self, name)  # a method that the test replaced
        used = {name for name, each in self.collections() if each.shard.info().points_count}
        used.update(each.collection_name for each in (await self.get_aliases()).aliases if each.alias_name not in WHOLE)
        for name in used:
            await self.delete_collection(name)
        _idle.append(self)


def idle_engine() -> EdgeEngine:
    """Return an empty engine, in a folder that the end of the run deletes."""
    if _idle:
        return _idle.pop()
    _folders.append(Path(tempfile.mkdtemp(prefix="engine-", dir=os.environ.get(ROOT))))
    return ReusedEngine(folder=_folders[-1])


def pytest_sessionfinish() -> None:
    for folder in _folders:
        shutil.rmtree(folder, ignore_errors=True)
