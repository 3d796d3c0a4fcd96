"""Creation and checks of collections. A collection that another embedder filled is rejected.

A collection records its embedder in its metadata (Qdrant ≥ 1.16; the embedded engine stores it next to the shard):
`{"memstream": {"embedder": {"name", "dimension", "version"}, "schema": 1}}`. The version ends with `SPARSE_MARK` when
the embeddings are stored as sparse vectors. Readers use the alias. The collection's own name contains the embedder and
the version, so that a new collection can be filled in parallel before the alias is switched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qdrant_client import models
from qdrant_client.http.exceptions import UnexpectedResponse

from ...schemas.collections import CollectionSpec, IndexedField
from ...schemas.errors import Fatal
from ..ports import EmbedderIdentity
from .engine import DENSE, SPARSE, WINDOW, EngineRefused, QdrantEngine
from .shards import check_cluster, check_method, copy_shards, create_fallback

NAMESPACE = "memstream"
INT8 = models.ScalarQuantization(
    scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
)
"""Quantization that takes a quarter of the memory of floats. The graphs of the embedded engine use the same
quantization (edge_index.py)."""
FLOAT_BYTES = 4
SPARSE_BYTES = 8 * 32
"""Size of a sparse vector as Qdrant counts it: eight bytes per number. A message with its neighbours has about 30
words."""
INDEXED_FROM = 10_000
"""Minimum number of vectors of a segment before a server indexes them. Qdrant's default is 10 MB, which is 1 250
vectors of the hashing embedder. With this default, indexing took as many resources as all stages together. Without an
index, a search compares ten thousand vectors in a few milliseconds."""
SCANNED_UP_TO = 50_000
"""Maximum number of filtered vectors that a server compares one by one (as int8) instead of searching a graph. Up to
this number, a full comparison takes no longer than a search with `engine.SEARCH`, and it always finds the ten best
vectors. Qdrant's default is 10 MB.

This is also the maximum size of merged segments. By default, a server merges all segments into two, up to 256 MB per
thread. Thus it rewrites all earlier vectors for every ten thousand new vectors."""
SPARSE_MARK = "-sparse"
"""Suffix of the embedder's version in a collection with sparse embeddings. A worker of memstream 0.3 or earlier writes
dense embeddings. The suffix makes that worker reject the collection at start-up."""
LEAST_VERSION = (1, 18)
"""Oldest supported Qdrant version: update_filter needs 1.16, update_mode needs 1.17, and adding a named vector to an
existing collection needs 1.18."""


async def ensure_collections(
    engine: QdrantEngine,
    *,
    specs: Sequence[CollectionSpec],
    embedder: EmbedderIdentity,
    by_tenant: bool,
    shards_of: str | None = None,
) -> None:
    """Create and check the collections; see `QdrantStore.ensure`. A new collection gets the same tenant shards as the
    collection `shards_of`. Raise `Fatal`, and the engine's errors."""
    await check_server_version(engine)
    if by_tenant:
        await check_cluster(engine)
    for spec in specs:
        name = await _behind_alias(engine, spec.name)
        if name is not None:
            await _complete(engine, spec, name, embedder, by_tenant)
            continue
        name = spec.physical_name(embedder.slug)
        await _create(engine, spec, name, embedder, by_tenant)
        # Create the alias last: readers then find a collection with all indexes, also after a crash of this process.
        await _complete(engine, spec, name, embedder, by_tenant)
        if by_tenant and shards_of is not None and await _behind_alias(engine, spec.name) is None:
            await copy_shards(engine, name, model=shards_of)
        created = models.CreateAlias(collection_name=name, alias_name=spec.name)
        await engine.update_collection_aliases([models.CreateAliasOperation(create_alias=created)])
        # Read the alias again, because another process may have switched it at the same time.
        existing = await _behind_alias(engine, spec.name) or name
        if existing != name:
            await _complete(engine, spec, existing, embedder, by_tenant)


async def _complete(
    engine: QdrantEngine, spec: CollectionSpec, name: str, embedder: EmbedderIdentity, by_tenant: bool
) -> None:
    """Check the sharding method and the embedder of the collection, and add missing shards, vectors and indexes."""
    await check_method(engine, name, by_tenant=by_tenant)
    if by_tenant:
        await create_fallback(engine, name)
    await _check_embedder(engine, spec, name, embedder)
    await _create_windows(engine, spec, name, embedder)
    await _create_indexes(engine, spec, name)


async def create_beside(
    engine: QdrantEngine, *, spec: CollectionSpec, name: str, embedder: EmbedderIdentity, like: str, by_tenant: bool
) -> None:
    """Create the collection `name` without an alias, for another embedder than the collection `like` has. It gets the
    same indexes and tenant shards. No effect on an existing collection that has them all."""
    await _create(engine, spec, name, embedder, by_tenant)
    await _complete(engine, spec, name, embedder, by_tenant)
    if by_tenant:
        await copy_shards(engine, name, model=like)


async def check_server_version(engine: QdrantEngine) -> str:
    """Return the engine's version. Raise `Fatal` when it is below `LEAST_VERSION`."""
    version = (await engine.info()).version
    parts = version.split("-")[0].split(".")
    if all(part.isdigit() for part in parts[:2]) and tuple(int(part) for part in parts[:2]) < LEAST_VERSION:
        least = ".".join(str(part) for part in LEAST_VERSION)
        raise Fatal(f"Qdrant {version} is too old: memstream needs {least} or later (conditional writes). Upgrade it.")
    return version


async def _behind_alias(engine: QdrantEngine, alias: str) -> str | None:
    for each in (await engine.get_aliases()).aliases:
        if each.alias_name == alias and await engine.collection_exists(each.collection_name):
            return each.collection_name
    return None


async def _create(
    engine: QdrantEngine, spec: CollectionSpec, name: str, embedder: EmbedderIdentity, by_tenant: bool
) -> None:
    if await engine.collection_exists(name):
        return
    remembered: dict[str, Any] = {"schema": spec.version}
    dense: dict[str, models.VectorParams] = {}
    sparse: dict[str, models.SparseVectorParams] = {}
    if spec.has_vectors:
        remembered["embedder"] = {
            "name": embedder.name,
            "dimension": embedder.dimension,
            "version": embedder.version + (SPARSE_MARK if embedder.mostly_zeros else ""),
        }
        for vector in (DENSE, WINDOW) if spec.has_windows else (DENSE,):
            if embedder.mostly_zeros:
                sparse[vector] = models.SparseVectorParams()
                continue
            # Searches use the int8 vectors below, which stay in memory. The floats on disk are read only for the final
            # order of a few hundred candidates.
            dense[vector] = models.VectorParams(size=embedder.dimension, distance=models.Distance.COSINE, on_disk=True)
        sparse[SPARSE] = models.SparseVectorParams(modifier=models.Modifier.IDF)
    try:
        await engine.create_collection(
            name,
            dense,
            sparse,
            # Build one graph for each large tenant instead of one for all, because every query filters by tenant.
            hnsw_config=_graphs(embedder) if dense else None,
            quantization_config=INT8 if dense else None,
            optimizers_config=_optimizers(embedder) if spec.has_vectors else None,
            sharding_method=models.ShardingMethod.CUSTOM if by_tenant else None,
            metadata={NAMESPACE: remembered},
        )
    except (UnexpectedResponse, EngineRefused):
        if not await engine.collection_exists(name):  # otherwise another process created it first
            raise


def _optimizers(embedder: EmbedderIdentity) -> models.OptimizersConfigDiff:
    """Return the minimum size (in KiB) of a segment for int8 vectors, and the maximum size of merged segments."""
    return models.OptimizersConfigDiff(
        indexing_threshold=_kib(INDEXED_FROM, embedder), max_segment_size=_kib(SCANNED_UP_TO, embedder)
    )


def _graphs(embedder: EmbedderIdentity) -> models.HnswConfigDiff:
    """Return the settings of graphs, and the maximum size (in KiB) of a full comparison."""
    return models.HnswConfigDiff(m=0, payload_m=16, full_scan_threshold=_kib(SCANNED_UP_TO, embedder))


def _kib(vectors: int, embedder: EmbedderIdentity) -> int:
    return vectors * (SPARSE_BYTES if embedder.mostly_zeros else embedder.dimension * FLOAT_BYTES) // 1024


async def _check_embedder(engine: QdrantEngine, spec: CollectionSpec, name: str, ours: EmbedderIdentity) -> None:
    if not spec.has_vectors:
        return
    theirs = await recorded_embedder(engine, name)
    if theirs is None:
        raise Fatal(
            f"The collection {name} behind `{spec.name}` does not say which embedder filled it: memstream did not "
            "create it. Point MEMSTREAM_QDRANT at a Qdrant (or folder) where these names are free: "
            f"{spec.name}, {name}."
        )
    if theirs != ours:
        raise Fatal(
            f"The collection `{spec.name}` ({name}) was filled by the embedder {_described(theirs)}, this process is "
            f"set to {_described(ours)}: their vectors cannot be compared. Set MEMSTREAM_EMBEDDER={theirs.name} to "
            f"keep the stored vectors, or run `memstream migrate-embedder --to {ours.name}` to embed the stored "
            "memory again."
        )


async def recorded_embedder(engine: QdrantEngine, name: str) -> EmbedderIdentity | None:
    """Return the embedder that filled a collection with vectors. None: the collection does not record it."""
    return embedder_of(await engine.get_collection(name))


def embedder_of(described: models.CollectionInfo) -> EmbedderIdentity | None:
    """Return the embedder that a collection's description records."""
    embedder = (described.config.metadata or {}).get(NAMESPACE, {}).get("embedder")
    if not isinstance(embedder, dict):
        return None
    return EmbedderIdentity(
        name=str(embedder.get("name")),
        dimension=int(embedder.get("dimension", 0)),
        version=str(embedder.get("version")).removesuffix(SPARSE_MARK),
    )


def _described(embedder: EmbedderIdentity) -> str:
    return f"{embedder.name} ({embedder.dimension} dimensions, version {embedder.version})"


async def _create_windows(engine: QdrantEngine, spec: CollectionSpec, name: str, embedder: EmbedderIdentity) -> None:
    """Add the vector `window` to a collection of an earlier version (0.1 had none)."""
    params = (await engine.get_collection(name)).config.params
    existing = {*(params.vectors if isinstance(params.vectors, dict) else {}), *(params.sparse_vectors or {})}
    if spec.has_windows and WINDOW not in existing:
        dense = models.DenseVectorConfig(size=embedder.dimension, distance=models.Distance.COSINE)
        await engine.create_vector_name(name, WINDOW, models.DenseVectorNameConfig(dense=dense))


async def _create_indexes(engine: QdrantEngine, spec: CollectionSpec, name: str) -> None:
    existing = (await engine.get_collection(name)).payload_schema
    for field in spec.fields:
        if field.path not in existing:
            await engine.create_payload_index(name, field.path, _index(field), wait=True)


def _index(field: IndexedField) -> Any:
    """Return the index of a field. With `enable_hnsw=False`, no graph is built for each value of a field that is only
    used in filters (3 s instead of 24 s for 20 000 points)."""
    if field.kind == "keyword":
        if field.is_tenant:
            return models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
        return models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, enable_hnsw=False)
    if field.kind == "integer":
        return models.IntegerIndexParams(
            type=models.IntegerIndexType.INTEGER, lookup=True, range=True, enable_hnsw=False
        )
    if field.kind == "float":
        return models.FloatIndexParams(type=models.FloatIndexType.FLOAT, enable_hnsw=False)
    if field.kind == "datetime":
        return models.DatetimeIndexParams(type=models.DatetimeIndexType.DATETIME, enable_hnsw=False)
    return models.BoolIndexParams(type=models.BoolIndexType.BOOL, enable_hnsw=False)
