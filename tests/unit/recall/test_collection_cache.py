"""The cache of collections: an existing collection is asked for once, and a slow store is waited for once."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import cast

import pytest

import memstream.recall.collection_cache
from memstream.adapters.ports import VectorStore
from memstream.recall.collection_cache import CollectionCache
from memstream.schemas.errors import Transient

NAMES = ("facts", "working", "episodes", "turns")


class Store:
    """A store with some collections. Questions about others fail or never end."""

    def __init__(
        self, *, there: Collection[str] = (), away: Collection[str] = (), silent: Collection[str] = ()
    ) -> None:
        self.there, self._away, self._silent = set(there), away, silent
        self.asked: list[str] = []

    async def exists(self, collection: str) -> bool:
        self.asked.append(collection)
        if collection in self._away:
            raise Transient("store", "Qdrant does not answer")
        if collection in self._silent:
            await asyncio.Event().wait()
        return collection in self.there


def over(store: Store) -> CollectionCache:
    return CollectionCache(store=cast(VectorStore, store))


async def test_what_was_seen_is_not_asked_for_again_and_what_was_not_is() -> None:
    store = Store(there=("facts",))
    existing = over(store)
    assert await existing.of(NAMES) == {"facts"}
    store.there.add("turns")
    assert await existing.of(NAMES) == {"facts", "turns"}
    assert await existing.of(("facts", "turns")) == {"facts", "turns"}
    assert store.asked == [*NAMES, "working", "episodes", "turns"]


async def test_one_that_cannot_be_asked_for_is_taken_to_be_there() -> None:
    store = Store(there=("facts",), away=("turns",))
    assert await over(store).of(NAMES) == {"facts", "turns"}


async def test_a_store_that_says_nothing_is_asked_for_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a read would wait for each collection in turn, longer than for all of memory."""
    monkeypatch.setattr(memstream.recall.collection_cache, "LOOK_SECONDS", 0.01)
    store = Store(silent=NAMES)
    looking = asyncio.create_task(over(store).of(NAMES))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert store.asked == [*NAMES]
    assert await looking == set(NAMES)
