"""What a server is told when a collection is made."""

from __future__ import annotations

from typing import Any, cast

import pytest

from memstream.adapters.ports import EmbedderIdentity
from memstream.adapters.vectors import collections
from memstream.adapters.vectors.engine import QdrantEngine
from memstream.schemas.collections import BUDGETS, FACTS, spec_of


class Recording:
    """An engine without collections, which notes how one is made."""

    def __init__(self) -> None:
        self.made: dict[str, Any] = {}

    async def collection_exists(self, name: str) -> bool:
        return False

    async def create_collection(self, name: str, *vectors: Any, **settings: Any) -> bool:
        self.made = settings
        return True


@pytest.mark.parametrize(("dimension", "indexed", "scanned"), [(2_048, 80_000, 400_000), (384, 15_000, 75_000)])
async def test_limits_are_numbers_of_vectors_whatever_their_size(dimension: int, indexed: int, scanned: int) -> None:
    engine = Recording()
    embedder = EmbedderIdentity(name="any", dimension=dimension, version="1")
    await collections._create(cast(QdrantEngine, engine), spec_of(FACTS), "facts", embedder, by_tenant=False)
    assert engine.made["optimizers_config"].indexing_threshold == indexed
    assert engine.made["hnsw_config"].full_scan_threshold == scanned
    assert engine.made["optimizers_config"].max_segment_size == scanned


async def test_sparse_embeddings_have_no_graph_and_limits_of_their_own() -> None:
    engine = Recording()
    embedder = EmbedderIdentity(name="any", dimension=2_048, mostly_zeros=True)
    await collections._create(cast(QdrantEngine, engine), spec_of(FACTS), "facts", embedder, by_tenant=False)
    assert engine.made["optimizers_config"].indexing_threshold == 2_500
    assert engine.made["optimizers_config"].max_segment_size == 12_500
    assert engine.made["hnsw_config"] is engine.made["quantization_config"] is None


async def test_a_collection_without_vectors_has_qdrants_own_settings() -> None:
    engine = Recording()
    embedder = EmbedderIdentity(name="any", dimension=8, version="1")
    await collections._create(cast(QdrantEngine, engine), spec_of(BUDGETS), "budgets", embedder, by_tenant=False)
    assert engine.made["optimizers_config"] is engine.made["hnsw_config"] is None
