"""Cache of the collections that exist. A stage may create one while a reader runs; no collection is ever deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from ..adapters.ports import VectorStore
from ..schemas.errors import Transient

LOOK_SECONDS = 1.0
"""Time limit of one question to the store."""


class CollectionCache:
    """The collections of one store. A collection that was seen once is not asked for again."""

    def __init__(self, *, store: VectorStore) -> None:
        self._store = store
        self._seen: set[str] = set()

    async def has(self, collection: str) -> bool:
        """Tell whether the collection exists. `Transient` when the store does not answer."""
        if collection not in self._seen and await self._store.exists(collection):
            self._seen.add(collection)
        return collection in self._seen

    async def of(self, collections: Collection[str]) -> frozenset[str]:
        """Return those of `collections` that exist, asked for in parallel. A collection whose question fails counts as
        existing: the read of it then reports what is missing."""
        unseen = [each for each in collections if each not in self._seen]
        answers = await asyncio.gather(*(self._may_be(each) for each in unseen))
        absent = {each for each, there in zip(unseen, answers, strict=True) if not there}
        return frozenset(collections) - absent

    async def _may_be(self, collection: str) -> bool:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                return await self.has(collection)
        except (Transient, TimeoutError):
            return True
