"""Embedded engine: Qdrant's own engine (qdrant_edge) in this process, over a folder, with one shard for each
collection.

Methods are async because they have the client's interface, but a call of the engine blocks the event loop (0.02 to
1 ms). The bindings hold the GIL during a call, so a thread would not let other work run. For the same reason, a
separate process calls `optimize()` (edge_index.py): it blocked Python for 25 s at 40 000 points. A write is durable in
the engine's write-ahead log before the method returns (edge_sync.py). With `wait=False`, a write is durable when
`synced` returns. `flush` (10 to 100 ms) only shortens this log.

Only one process may use the folder (adapters/folder_lock.py); this class does not check that. The folder has
`aliases.json` (alias → collection) and one folder for each collection (edge_collection.py).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import qdrant_edge as edge
from qdrant_client import models

from ...durable_files import SYNCS_AT_ONCE, make_folder, sync_folder, write_atomically
from ..engine import OPEN_ROOM, WRITE_ROOM, EngineRefused, ReadConsistency
from . import edge_models as translate
from .edge_collection import DESCRIPTION, EdgeCollection, call, check_engine_room

ENGINE_VERSION = "1.20.0"
"""Server version with the same features as the pinned qdrant_edge (TextQuery needs 1.20)."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
_DONE = models.UpdateResult(operation_id=0, status=models.UpdateStatus.COMPLETED)
_CREATING, _DELETED = ".creating-", ".deleted-"


class EdgeEngine:
    """Embedded implementation of the `AsyncQdrantClient` methods that the store uses, with the client's models."""

    def __init__(self, *, folder: Path) -> None:
        """Open every collection in `folder` (0.2 s for 10 000 points). Raise `EngineRefused` when a collection cannot
        be opened, or when the disk does not have enough space."""
        self._folder = folder
        if not folder.exists():
            make_folder(folder)
        check_engine_room(folder, needed=OPEN_ROOM)
        self._threads = ThreadPoolExecutor(SYNCS_AT_ONCE, thread_name_prefix="qdrant-sync")
        self._closed = False
        self._filters = translate.LastFilters()
        self._aliases: dict[str, str] = self._read_aliases()
        self._collections: dict[str, EdgeCollection] = {}
        for entry in sorted(folder.iterdir()):
            if entry.name.startswith((_CREATING, _DELETED)):
                shutil.rmtree(entry)  # left by a crash during creation or deletion
            elif (entry / DESCRIPTION).exists():
                self._collections[entry.name] = EdgeCollection(folder=entry, threads=self._threads)
        # A crash between the two steps of a deletion leaves aliases of a deleted collection.
        existing = {alias: name for alias, name in self._aliases.items() if name in self._collections}
        if existing != self._aliases:
            self._write_aliases(existing)

    def collections(self) -> Iterator[tuple[str, EdgeCollection]]:
        """Iterate over the existing collections with their names."""
        return iter(tuple(self._collections.items()))

    # -------------------------------------------------------------------------------------------- collections
    async def info(self) -> models.VersionInfo:
        return models.VersionInfo(title="memstream embedded engine (qdrant_edge)", version=ENGINE_VERSION)

    async def get_collections(self) -> models.CollectionsResponse:
        return models.CollectionsResponse(
            collections=[models.CollectionDescription(name=name) for name in self._collections]
        )

    async def get_aliases(self) -> models.CollectionsAliasesResponse:
        return models.CollectionsAliasesResponse(
            aliases=[
                models.AliasDescription(alias_name=alias, collection_name=name) for alias, name in self._aliases.items()
            ]
        )

    async def update_collection_aliases(
        self, change_aliases_operations: Sequence[models.CreateAliasOperation | models.DeleteAliasOperation]
    ) -> bool:
        """Apply all changes or none, by replacing one file. Used to switch an alias to another collection."""
        aliases = dict(self._aliases)
        for operation in change_aliases_operations:
            if isinstance(operation, models.CreateAliasOperation):
                created = operation.create_alias
                if created.alias_name in self._collections:
                    raise EngineRefused(409, f"Collection `{created.alias_name}` already exists")
                self._find(created.collection_name)
                aliases[created.alias_name] = created.collection_name
            elif isinstance(operation, models.DeleteAliasOperation):
                aliases.pop(operation.delete_alias.alias_name, None)
            else:
                raise EngineRefused(400, f"the embedded engine does not offer {type(operation).__name__}")
        self._write_aliases(aliases)
        return True

    async def collection_exists(self, collection_name: str) -> bool:
        return self._aliases.get(collection_name, collection_name) in self._collections

    async def get_collection(self, collection_name: str) -> models.CollectionInfo:
        """Describe a collection. Points, indexes and metadata are real. The tuning values are only the server's
        defaults, because the client's model requires values."""
        collection = self._find(collection_name)
        described, shard = collection.described, call(collection.shard.info)
        return models.CollectionInfo(
            status=models.CollectionStatus.GREEN,
            optimizer_status=models.OptimizersStatusOneOf.OK,
            points_count=shard.points_count,
            indexed_vectors_count=shard.indexed_vectors_count,
            segments_count=shard.segments_count,
            config=models.CollectionConfig(
                params=models.CollectionParams(vectors=described.vectors, sparse_vectors=described.sparse_vectors),
                hnsw_config=models.HnswConfig(m=16, ef_construct=100, full_scan_threshold=10_000),
                optimizer_config=models.OptimizersConfig(default_segment_number=0, flush_interval_sec=5),
                metadata=described.metadata,
            ),
            payload_schema={
                field: models.PayloadIndexInfo(data_type=translate.index_type(each), points=each.points)
                for field, each in shard.payload_schema.items()
            },
        )

    async def create_collection(
        self,
        collection_name: str,
        vectors_config: Mapping[str, models.VectorParams],
        sparse_vectors_config: Mapping[str, models.SparseVectorParams] | None = None,
        *,
        hnsw_config: models.HnswConfigDiff | None = None,
        quantization_config: Any = None,
        optimizers_config: Any = None,
        sharding_method: models.ShardingMethod | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> bool:
        """Create a collection. Its folder has a temporary name until it is complete, so that a crash leaves a complete
        collection or none. The configuration of graphs, int8 and optimizers has no effect here: edge_index.py has the
        configuration for building graphs."""
        if not _NAME.fullmatch(collection_name):
            raise EngineRefused(400, f"{collection_name!r} cannot be a collection's name: letters, digits, - and _")
        if await self.collection_exists(collection_name):
            raise EngineRefused(409, f"Collection `{collection_name}` already exists")
        check_engine_room(self._folder, needed=WRITE_ROOM)
        described = models.CreateCollection(
            vectors=dict(vectors_config),
            sparse_vectors=dict(sparse_vectors_config or {}),
            hnsw_config=hnsw_config,
            quantization_config=quantization_config,
            metadata=metadata,
        )
        aside = self._folder / f"{_CREATING}{collection_name}"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        EdgeCollection.create(aside, described, translate.config(vectors_config, sparse_vectors_config or {}))
        final = self._folder / collection_name
        os.rename(aside, final)
        sync_folder(self._folder)
        self._collections[collection_name] = EdgeCollection(folder=final, threads=self._threads)
        return True

    async def delete_collection(self, collection_name: str) -> bool:
        """Delete a collection with its aliases, as the server does. Return False when it does not exist. A crash during
        the deletion leaves the complete collection, or a folder that the next start removes."""
        collection = self._collections.pop(collection_name, None)
        if collection is None:
            return False
        await collection.synced()
        collection.close()
        aside = self._folder / f"{_DELETED}{collection_name}"
        os.rename(self._folder / collection_name, aside)
        self._write_aliases({alias: name for alias, name in self._aliases.items() if name != collection_name})
        await asyncio.to_thread(shutil.rmtree, aside)
        return True

    async def create_vector_name(
        self, collection_name: str, vector_name: str, vector_name_config: models.DenseVectorNameConfig
    ) -> models.UpdateResult:
        """Add a vector to the engine, then to the description. The first step has no effect when the engine already has
        the vector, because a crash may have happened between the two steps."""
        collection, dense = self._find(collection_name), vector_name_config.dense
        await self._update(
            collection_name,
            call(
                edge.UpdateOperation.create_dense_vector, vector_name, dense.size, translate.DISTANCES[dense.distance]
            ),
        )
        existing = collection.described.vectors
        vectors = dict(existing) if isinstance(existing, Mapping) else {}
        vectors[vector_name] = models.VectorParams(size=dense.size, distance=dense.distance)
        collection.describe(collection.described.model_copy(update={"vectors": vectors}))
        return _DONE

    async def create_payload_index(
        self, collection_name: str, field_name: str, field_schema: Any = None, *, wait: bool = True
    ) -> models.UpdateResult:
        """Create a payload index. No effect when it exists. Do not wait for the sync: the next start creates a missing
        index."""
        operation = edge.UpdateOperation.create_field_index(field_name, translate.index(field_schema))
        await self._find(collection_name).update(operation, durably=False)
        return _DONE

    # -------------------------------------------------------------------------------------------- writes
    async def upsert(
        self,
        collection_name: str,
        points: list[models.PointStruct],
        *,
        wait: bool = True,
        ordering: models.WriteOrdering | None = None,
        shard_key_selector: models.ShardKeyWithFallback | None = None,
        update_filter: models.Filter | None = None,
        update_mode: models.UpdateMode | None = None,
    ) -> models.UpdateResult:
        mode = {
            models.UpdateMode.INSERT_ONLY: edge.UpdateMode.InsertOnly,
            models.UpdateMode.UPDATE_ONLY: edge.UpdateMode.UpdateOnly,
        }.get(update_mode or models.UpdateMode.UPSERT, edge.UpdateMode.Upsert)
        translated = call(lambda: [translate.point(each) for each in points])
        return await self._update(
            collection_name,
            call(
                lambda: edge.UpdateOperation.upsert_points(
                    translated, condition=translate.filter_(update_filter), update_mode=mode
                )
            ),
            wait=wait,
        )

    async def update_vectors(
        self,
        collection_name: str,
        points: Sequence[models.PointVectors],
        *,
        wait: bool = True,
        ordering: models.WriteOrdering | None = None,
        shard_key_selector: models.ShardKeyWithFallback | None = None,
        update_filter: models.Filter | None = None,
    ) -> models.UpdateResult:
        translated = call(lambda: [translate.point_vectors(each) for each in points])
        condition = call(translate.filter_, update_filter)
        return await self._update(
            collection_name, call(edge.UpdateOperation.update_vectors, translated, condition), wait=wait
        )

    async def set_payload(
        self,
        collection_name: str,
        payload: dict[str, Any],
        points: models.Filter,
        *,
        wait: bool = True,
        ordering: models.WriteOrdering | None = None,
        shard_key_selector: models.ShardKeyWithFallback | None = None,
    ) -> models.UpdateResult:
        condition = call(translate.filter_, points)
        return await self._update(
            collection_name, call(edge.UpdateOperation.set_payload_by_filter, condition, payload), wait=wait
        )

    async def delete(
        self,
        collection_name: str,
        points_selector: models.Filter,
        *,
        wait: bool = True,
        ordering: models.WriteOrdering | None = None,
        shard_key_selector: models.ShardKeyWithFallback | None = None,
    ) -> models.UpdateResult:
        condition = call(translate.filter_, points_selector)
        return await self._update(
            collection_name, call(edge.UpdateOperation.delete_points_by_filter, condition), wait=wait
        )

    async def synced(self, collection_name: str) -> None:
        """Return when every write of a collection is durable. No effect for a deleted collection."""
        collection = self._collections.get(self._aliases.get(collection_name, collection_name))
        if collection is not None:
            await collection.synced()

    # -------------------------------------------------------------------------------------------- reads
    async def scroll(
        self,
        collection_name: str,
        scroll_filter: models.Filter | None = None,
        limit: int = 10,
        order_by: models.OrderBy | str | None = None,
        offset: Any = None,
        with_payload: bool | list[str] = True,
        with_vectors: bool | list[str] = False,
        *,
        consistency: ReadConsistency | None = None,
        shard_key_selector: models.ShardKeyWithFallback | None = None,
    ) -> tuple[list[translate.EdgeRecord], Any]:
        request = edge.ScrollRequest(
            offset=None if offset is None else translate.point_id(offset),
            limit=limit,
            filter=call(self._filters.translated, scroll_filter),
            with_payload=with_payload,
            with_vector=with_vectors,
            order_by=None if order_by is None else translate.order_by(order_by),
        )
        page, following = call(self._find(collection_name).shard.scroll, request)
        return translate.records(page), None if following is None else translate.point_id(following)

    async def query_points(
        self,
        collection_name: str,
        query: Any = None,
        using: str | None = None,
        *,
        query_filter: models.Filter | None = None,
        search_params: models.SearchParams | None = None,
        limit: int = 10,
        with_payload: bool = True,
    ) -> translate.EdgeAnswer:
        request = edge.QueryRequest(
            limit=limit,
            query=translate.query(query, using),
            filter=call(self._filters.translated, query_filter),
            params=call(translate.search_params, search_params),
            with_payload=with_payload,
            with_vector=False,
        )
        return translate.to_answer(call(self._find(collection_name).shard.query, request))

    async def query_batch_points(
        self,
        collection_name: str,
        requests: Sequence[models.QueryRequest],
        *,
        consistency: ReadConsistency | None = None,
    ) -> list[translate.EdgeAnswer]:
        batch = call(lambda: translate.query_batch(requests, filters=self._filters))
        return [translate.to_answer(points) for points in call(self._find(collection_name).shard.query_batch, batch)]

    async def count(
        self,
        collection_name: str,
        count_filter: models.Filter | None = None,
        exact: bool = True,
        *,
        shard_key_selector: models.ShardKeyWithFallback | None = None,
    ) -> models.CountResult:
        request = edge.CountRequest(exact=exact, filter=call(self._filters.translated, count_filter))
        return models.CountResult(count=call(self._find(collection_name).shard.count, request))

    # -------------------------------------------------------------------------------------------- life
    async def close(self) -> None:
        """Flush and close every collection. No effect when called again."""
        if self._closed:
            return
        self._closed = True
        for collection in self._collections.values():
            collection.close()
        self._threads.shutdown()

    def _find(self, name: str) -> EdgeCollection:
        collection = self._collections.get(self._aliases.get(name, name))
        if collection is None:
            raise EngineRefused(404, f"Not found: Collection `{name}` doesn't exist!")
        return collection

    async def _update(self, name: str, operation: Any, *, wait: bool = True) -> models.UpdateResult:
        await self._find(name).update(operation, durably=wait)
        return _DONE

    def _read_aliases(self) -> dict[str, str]:
        path = self._folder / "aliases.json"
        if not path.exists():
            return {}
        aliases: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
        return aliases

    def _write_aliases(self, aliases: dict[str, str]) -> None:
        write_atomically(self._folder / "aliases.json", json.dumps(aliases, indent=1, sort_keys=True).encode())
        self._aliases = aliases
