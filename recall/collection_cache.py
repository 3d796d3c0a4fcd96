"""Cache of existing collections.

A stage may create a collection while a reader runs, so the store is asked again about a missing collection. No
collection is ever deleted, so an existing collection stays in the cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from ..adapters.ports import VectorStore
from ..schemas.errors import Transient

LOOK_SECONDS = 1.0
"""Time limit in seconds of one request to the store."""


class CollectionCache:
    """The existing collections of one store."""

    def __init__(self, *, store: VectorStore) -> None:
        self._store = store
        self._seen: set[str] = set()

    async def has(self, collection: str) -> bool:
        """Return whether the collection exists. Raises Transient when the store does not answer."""
        if collection not in self._seen and await self._store.exists(collection):
            self._seen.add(collection)
        return collection in self._seen

    async def of(self, collections: Collection[str]) -> frozenset[str]:
        """Return the collections that exist. The store is asked about all unknown collections in parallel.

        When the store does not answer, the collection counts as existing. The later read of the collection then fails
        and reports the missing part.
        """
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
