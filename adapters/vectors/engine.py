"""Port to a Qdrant engine: the subset of `AsyncQdrantClient` that the store uses.

It has two implementations: the client itself (for a remote server, and for the loopback server of an embedded folder),
and `EdgeEngine` (the server's own engine in this process). Both use qdrant-client's models, so one store works with
both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from qdrant_client import models

from ...schemas.collections import Consistency

DENSE = "dense"
WINDOW = "window"
SPARSE = "bm25"
ORDERING = models.WriteOrdering.STRONG
"""Ordering of writes: each write goes through the leader of its shard, so that all replicas see the same order. A write
is acknowledged when every readable replica has it."""
ReadConsistency = int | models.ReadConsistencyType
READ_CONSISTENCY: Final[Mapping[Consistency, ReadConsistency]] = {
    "one": 1,
    "quorum": models.ReadConsistencyType.QUORUM,
    "majority": models.ReadConsistencyType.MAJORITY,
}
SEARCH = models.SearchParams(hnsw_ef=512, quantization=models.QuantizationSearchParams(rescore=True))
"""Parameters of graph searches. Among random vectors, the server's defaults find half of the hundred best vectors.
These parameters find 90 % of the hundred best, and 98 % of the ten best. The final order uses floats, because int8
alone loses 5 % of the ten best. Without a graph, the parameters have no effect, because all vectors are compared."""


NO_ROOM: Final = 507
"""HTTP status of a write that was not started, because the disk has too little space."""
WRITE_ROOM: Final = 128 << 20
"""Minimum free disk space (bytes) for a write of the embedded engine. The engine writes through memory mappings of
sparse files. If the disk has no space for a page, the kernel ends the process (SIGBUS) without a message. The largest
upsert (8 MiB) takes about 30 MiB."""
OPEN_ROOM: Final = 32 << 20
"""Minimum free disk space (bytes) to open a folder. The engine needs this space to apply its log to mapped files. The
value is less than `WRITE_ROOM`, so that a folder without space for writes can still be read after a restart."""


class EngineRefused(Exception):
    """The embedded engine refuses a request. `status` is the HTTP status that a server would send (400, 404, 409, 500),
    or `NO_ROOM`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class EngineRow(Protocol):
    """Fields of a `Record` that the store uses. The embedded engine has its own class: a read has hundreds of records,
    and building qdrant-client's models took longer than finding the records."""

    @property
    def id(self) -> Any: ...

    @property
    def payload(self) -> dict[str, Any] | None: ...

    @property
    def vector(self) -> Any: ...

    @property
    def order_value(self) -> Any: ...


class EngineHit(EngineRow, Protocol):
    """Fields of a `ScoredPoint` that the store uses."""

    @property
    def score(self) -> float: ...


class QueryAnswer(Protocol):
    """Fields of a `QueryResponse` that the store uses."""

    @property
    def points(self) -> Sequence[EngineHit]: ...


class QdrantEngine(Protocol):
    """Subset of `AsyncQdrantClient`, with the same names, arguments and results. `errors.py` translates the errors. The
    embedded engine has no shards, so `shard_key_selector` and `sharding_method` have no effect there."""

    async def info(self) -> models.VersionInfo: ...

    async def get_collections(self) -> models.CollectionsResponse: ...

    async def get_aliases(self) -> models.CollectionsAliasesResponse: ...

    async def update_collection_aliases(
        self, change_aliases_operations: Sequence[models.CreateAliasOperation | models.DeleteAliasOperation]
    ) -> bool: ...

    async def collection_exists(self, collection_name: str) -> bool: ...

    async def get_collection(self, collection_name: str) -> models.CollectionInfo: ...

    async def create_collection(
        self,
        collection_name: str,
        vectors_config: Mapping[str, models.VectorParams],
        sparse_vectors_config: Mapping[str, models.SparseVectorParams] | None = None,
        *,
        hnsw_config: models.HnswConfigDiff | None = None,
        quantization_config: models.ScalarQuantization | None = None,
        optimizers_config: models.OptimizersConfigDiff | None = None,
        sharding_method: models.ShardingMethod | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> bool: ...

    async def create_vector_name(
        self, collection_name: str, vector_name: str, vector_name_config: models.DenseVectorNameConfig
    ) -> models.UpdateResult: ...

    async def delete_collection(self, collection_name: str) -> bool: ...

    async def create_payload_index(
        self,
        collection_name: str,
        field_name: str,
        field_schema: Any = None,
        *,
        wait: bool = True,
    ) -> models.UpdateResult: ...

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
    ) -> models.UpdateResult: ...

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
        """Replace vectors. Raise an error (404) when a point is absent."""
        ...

    async def set_payload(
        self,
        collection_name: str,
        payload: dict[str, Any],
        points: models.Filter,
        *,
        wait: bool = True,
        ordering: models.WriteOrdering | None = None,
        shard_key_selector: models.ShardKeyWithFallback | None = None,
    ) -> models.UpdateResult: ...

    async def delete(
        self,
        collection_name: str,
        points_selector: models.Filter,
        *,
        wait: bool = True,
        ordering: models.WriteOrdering | None = None,
        shard_key_selector: models.ShardKeyWithFallback | None = None,
    ) -> models.UpdateResult: ...

    async def scroll(
        self,
        collection_name: str,
        scroll_filter: models.Filter | None = None,
        limit: int = 10,
        order_by: models.OrderBy | None = None,
        offset: Any = None,
        with_payload: bool | list[str] = True,
        with_vectors: Any = False,
        *,
        consistency: ReadConsistency | None = None,
        shard_key_selector: models.ShardKeyWithFallback | None = None,
    ) -> tuple[Sequence[EngineRow], Any]: ...

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
    ) -> QueryAnswer: ...

    async def query_batch_points(
        self,
        collection_name: str,
        requests: Sequence[models.QueryRequest],
        *,
        consistency: ReadConsistency | None = None,
    ) -> Sequence[QueryAnswer]: ...

    async def count(
        self,
        collection_name: str,
        count_filter: models.Filter | None = None,
        exact: bool = True,
        *,
        shard_key_selector: models.ShardKeyWithFallback | None = None,
    ) -> models.CountResult: ...

    async def close(self) -> None: ...
