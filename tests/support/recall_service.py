"""A recall service over a real engine, with its own memory for each test, and stand-ins that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import pytest

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.ports import Embedder, EmbedderIdentity, Reranker, StoredPoint, VectorStore
from memstream.adapters.vectors.factory import open_store
from memstream.memory.policies import RecallPolicy
from memstream.recall.request import ReadSession, RecallRequest
from memstream.recall.service import RecallResult, RecallService
from memstream.schemas.collections import COLLECTIONS
from memstream.schemas.recall import Tier
from memstream.schemas.turns import Owner
from tests.support.stored_memory import NOW, StoredMemory
from tests.support.vector_backends import store_url

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, Any]], Any]
EVERY = tuple(spec.name for spec in COLLECTIONS)
U1 = Owner(scope="user", id="u1")
TEAM = Owner(scope="group", id="team")
PLAIN = RecallRequest(tenant_id="acme", owner=U1, session=ReadSession("u1", "s1"))
POLICY = RecallPolicy()
SHORT = RecallPolicy(patience=0.2)


@pytest.fixture(scope="module")
def recall_loop() -> Iterator[Run]:
    """One event loop for the module, since the store lives as long."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(scope="module")
def recall_store(recall_loop: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VectorStore]:
    with store_url(tmp_path_factory.mktemp("recall")) as url:
        opened = recall_loop(open_store(url, embedder=HashingEmbedder().identity, holds_folder=True))
        recall_loop(opened.ensure())
        yield opened
        recall_loop(opened.close())


class World:
    """A memory of its own for each test: the tenants are emptied before."""

    def __init__(self, store: VectorStore, run: Run) -> None:
        self.store = store
        self.memory = StoredMemory(store)
        self._run = run

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return cast(T, self._run(work))

    def recall(
        self,
        request: RecallRequest = PLAIN,
        *,
        store: VectorStore | None = None,
        embedder: Embedder | None = None,
        policy: RecallPolicy = POLICY,
        reranker: Reranker | None = None,
        **asked: Any,
    ) -> RecallResult:
        service = RecallService(
            store=store or self.store,
            embedder=embedder or self.memory.embedder,
            policy=policy,
            reranker=reranker,
        )
        return self.do(service.recall(replace(request, **asked), now=NOW))

    def told(self, request: RecallRequest = PLAIN, **asked: Any) -> list[tuple[Tier, str]]:
        return [(each.item.tier, each.item.content) for each in self.recall(request, **asked).items]


@pytest.fixture
def remembering(recall_store: VectorStore, recall_loop: Run) -> World:
    async def emptied() -> None:
        for collection in EVERY:
            for tenant in ("acme", "rival"):
                gone = [each.id for each in await recall_store.select(collection, tenant_id=tenant)]
                await recall_store.delete(collection, tenant_id=tenant, ids=gone)

    recall_loop(emptied())
    return World(recall_store, recall_loop)


class Faulty:
    """A store in which some reads fail or never return; the rest goes to the real store."""

    def __init__(
        self, store: VectorStore, *, of: Sequence[str], fault: Exception | None, times: int | None = None
    ) -> None:
        """`times`: how many of these reads fail, from the first; None means all."""
        self._store = store
        self._left = times
        self._of = frozenset(of)
        self._fault = fault
        """None means that the read never returns."""

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)

        async def asked(collection: str, **arguments: Any) -> list[StoredPoint]:
            if (f"{collection}.{name}" in self._of or name in self._of) and self._left != 0:
                self._left = None if self._left is None else self._left - 1
                if self._fault is not None:
                    raise self._fault
                await asyncio.Event().wait()
            return cast(list[StoredPoint], await real(collection, **arguments))

        return asked


class AwayEmbedder:
    identity = EmbedderIdentity("fastembed:some-model", 384)

    def __init__(self, fault: Exception | None) -> None:
        self._fault = fault

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        if self._fault is None:
            await asyncio.Event().wait()
        raise self._fault or AssertionError


@pytest.fixture
def stripe(remembering: World) -> World:
    """A memory with one record about Stripe in each tier."""

    async def remembered() -> None:
        await remembering.memory.fact("Works at Stripe")
        await remembering.memory.episode("Signed the contract with Stripe in May")
        await remembering.memory.message("My new badge says Stripe, and the coffee is good")
        await remembering.memory.entry("Prepares a talk on Stripe webhooks")

    remembering.do(remembered())
    return remembering
