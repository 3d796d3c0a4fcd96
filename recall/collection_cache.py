"""Which collections there are by now: a stage may make one while a reader runs, and none goes again."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from ..adapters.ports import VectorStore
from ..schemas.errors import Transient

LOOK_SECONDS = 1.0
"""For a look that nobody waits for longer."""


class CollectionCache:
    """Of one store. What was seen once is not asked for again."""

    def __init__(self, *, store: VectorStore) -> None:
        self._store = store
        self._seen: set[str] = set()

    async def has(self, collection: str) -> bool:
        """`Transient` when the store is away."""
        if collection not in self._seen and await self._store.exists(collection):
            self._seen.add(collection)
        return collection in self._seen

    async def of(self, collections: Collection[str]) -> frozenset[str]:
        """Those of these that there are, asked for at once. One that cannot be asked for is taken to be there: then the
        read itself says that it is missing."""
        asked = [each for each in collections if each not in self._seen]
        answers = await asyncio.gather(*(self._may_be(each) for each in asked))
        absent = {each for each, there in zip(asked, answers, strict=True) if not there}
        return frozenset(collections) - absent

    async def _may_be(self, collection: str) -> bool:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                return await self.has(collection)
        except (Transient, TimeoutError):
            return True
