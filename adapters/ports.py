"""Ports: the Protocols through which stages use external systems.

Each Protocol has one contract suite under tests/contract, which runs on every implementation, fakes included. A port
raises only `Transient`, `Poison` or `Fatal` (schemas/errors.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from pydantic import JsonValue
from qdrant_client import models

from ..schemas.periods import Period
from ..schemas.recall import Tier

Payload = dict[str, JsonValue]
A = TypeVar("A")


# ------------------------------------------------------------------------------------------------ embedders
@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """Identity of an embedder. A collection records the identity of the embedder that filled it, and rejects any other
    embedder."""

    name: str
    """Name as in MEMSTREAM_EMBEDDER: `hashing`, `fastembed:all-minilm-l6-v2-int8`. For a model in a folder, the name
    has only the last part of the path."""
    dimension: int
    version: str = "1"
    mostly_zeros: bool = field(default=False, compare=False)
    """True when nearly all numbers of a vector are zero. A new collection then stores its vectors in sparse form."""

    @property
    def slug(self) -> str:
        """The name for use in collection names: lower-case letters, digits and hyphens."""
        return "".join(c if c.isalnum() else "-" for c in self.name.lower()).strip("-")


class Embedder(Protocol):
    @property
    def identity(self) -> EmbedderIdentity: ...

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        """Return one vector for each text, in the same order. Each vector has `identity.dimension` floats and length 1.

        Raise `Transient` (time-out, 429, 5xx, 401, 403, 404, connection) or `Poison("refused_by_model")`.
        """
        ...

    async def close(self) -> None: ...


# ------------------------------------------------------------------------------------------------ completions
@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class CompletionRequest(Generic[A]):
    """One task for a model.

    `parse` converts the decoded JSON value of the answer to the typed answer. It raises ValueError with the reason only
    when the outer shape is unusable. It drops and counts single bad items.
    """

    task: str
    """Name of the JSON schema: observations, consolidation, …"""
    tenant_id: str
    messages: tuple[Message, ...]
    json_schema: Mapping[str, JsonValue]
    """Schema of the outer object, in strict mode: every property is required, and optional properties are nullable."""
    parse: Callable[[JsonValue], A]
    max_output_tokens: int | None = None
    """Limit of the answer's length below the limit of every request. None: that limit applies."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that the server counted, summed over all calls for one answer (a repair is a second call)."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Completion(Generic[A]):
    value: A
    model: str
    usage: Usage = field(default_factory=Usage)
    by_rules: bool = False
    """True when rules gave the answer, and no language model."""


class UsageSink(Protocol):
    """Receiver of token usage, by tenant and task."""

    def record(self, *, tenant_id: str, task: str, model: str, usage: Usage) -> None: ...


class Places(Protocol):
    """Limit of concurrent calls. The implementation decides which tenant gets the next free place."""

    def place(self, tenant_id: str) -> AbstractAsyncContextManager[None]:
        """Wait for a place, and hold it during the block."""
        ...


class Completions(Protocol):
    @property
    def model(self) -> str:
        """The name of the model. Stored rows record it in `cause.model`."""
        ...

    @property
    def costs_money(self) -> bool: ...

    @property
    def by_rules(self) -> bool:
        """True when rules answer, and no language model."""
        ...

    async def complete(self, request: CompletionRequest[A]) -> Completion[A]:
        """Return the parsed answer. Raise `Transient` (also for 401, 403, 404: `remedy` names the setting), or
        `Poison("refused_by_model")` when the answer is still unusable after one repair."""
        ...

    async def close(self) -> None: ...


# ------------------------------------------------------------------------------------------------ rerankers
@dataclass(frozen=True, slots=True)
class RerankCandidate:
    """A memory from a search, with the fields that a reranker uses."""

    tier: Tier
    text: str
    subject: str | None = None
    """The subject of the memory. None for a message."""
    by_speaker: bool = False
    """True for a message of the speaker whom the cue names."""


class Reranker(Protocol):
    """Reranker of search results: it compares each candidate with the cue. Without a reranker, the candidates keep the
    order of recall (Reciprocal Rank Fusion)."""

    async def rerank(
        self, cue: str, candidates: Sequence[RerankCandidate], *, tenant_id: str, as_speaker: str | None = None
    ) -> list[int]:
        """Return indexes of `candidates`, best first, each at most once. The candidates are in recall's own order, best
        first. A missing index means a worse fit than all returned indexes. `as_speaker` is the cue in the first person
        of the speaker whom the cue names ("Ann's plans" becomes "my plans"), for comparison with messages. None: the
        cue names no speaker.

        Raise `Transient`, or `Poison("refused_by_model")` when there is no usable answer.
        """
        ...

    async def close(self) -> None: ...


# ------------------------------------------------------------------------------------------------ vector store
@dataclass(frozen=True, slots=True)
class Point:
    """A record to store. The store encodes `text` for lexical search, and its neighbours' texts (`nearby`) with less
    weight. `dense` is the embedding of the record. `window` is the embedding of the record with its neighbours, for
    collections that store it."""

    id: str
    payload: Payload
    dense: Sequence[float] | None = None
    text: str | None = None
    nearby: str = ""
    window: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class NewWindow:
    """New vectors of a stored record after a neighbour was added; see `Point`. None leaves a vector unchanged."""

    id: str
    text: str | None
    window: Sequence[float] | None
    nearby: str = ""


class StoredPoint(NamedTuple):
    """A stored record. `score` is the cosine similarity to the vector of a search. `dense` is set only when requested.
    `collection` is set by `get` and `last` for a collection that is partitioned by period. It is the name of the
    period's collection that has the record."""

    id: str
    payload: Payload
    score: float | None = None
    dense: Sequence[float] | None = None
    collection: str | None = None


class RankedPoint(Protocol):
    """One entry of a ranking. It is the engine's own object: a read has hundreds of entries, and converting them takes
    time. Scores are comparable within one answer only."""

    @property
    def id(self) -> str: ...

    @property
    def score(self) -> float: ...


VectorName = Literal["dense", "window"]


@dataclass(frozen=True, slots=True)
class DenseRanking:
    """Ranking by cosine similarity to the vectors of the records, or of the records with their neighbours."""

    dense: Sequence[float]
    among: VectorName = "dense"


@dataclass(frozen=True, slots=True)
class LexicalRanking:
    """Ranking by words (BM25)."""

    text: str


Ranking = DenseRanking | LexicalRanking
CasResult = Literal["applied", "conflict"]
OrderDirection = Literal["asc", "desc"]


class VectorStore(Protocol):
    """Vector store: Qdrant, as a server or embedded. schemas/collections.py has the collection names (`facts`,
    `episodes` …).

    Every read needs a tenant. The tenant is a filter in the query, and the `tenant_id` of every returned payload is
    checked again (a mismatch is `Fatal`). A write returns when it is durable (embedded: synced to disk); a time-out is
    `Transient`. Payload values are JSON. The store rejects invalid payloads before they reach the engine: NaN and
    infinities as `Fatal`, a text with a lone surrogate as `Poison("invalid")`, because such a text is bad input from
    outside.

    A collection that is partitioned by period (`CollectionSpec.by_period`) is read under its name, over all existing
    periods. A write may name the collection of a period (`turns_2026q4`, schemas/periods.py). Otherwise, points are
    inserted into the newest period, and existing points are changed in any period.
    """

    async def ensure(self, *collections: str) -> None:
        """Create the missing parts of these collections (default: all collections): collection, alias, payload indexes.
        Raise `Fatal` when another embedder filled a collection; the message names both embedders and the remedy.

        A stage names only the collections that it writes. Thus another stage still notices that its own collection is
        missing.
        """
        ...

    async def exists(self, collection: str) -> bool: ...

    async def ping(self) -> None:
        """Return when the store answers. Raise `Transient` when it does not."""
        ...

    async def get(
        self, collection: str, *, tenant_id: str, ids: Sequence[str], with_dense: bool = False
    ) -> dict[str, StoredPoint]:
        """Read records by id. Absent ids are not in the result. More than 1 000 ids are read in pages."""
        ...

    async def select(
        self,
        collection: str,
        *,
        tenant_id: str,
        where: models.Filter | None = None,
        order_by: str | None = None,
        direction: OrderDirection = "asc",
        limit: int | None = None,
        from_id: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> list[StoredPoint]:
        """Return all matching records, read in pages. With `order_by`, they are in the order of this indexed field.
        Otherwise they are in the order of their ids, beginning with `from_id`. With `fields`, payloads contain only
        these fields and `tenant_id`, for large reads that need little data."""
        ...

    async def nearest(
        self, collection: str, *, tenant_id: str, dense: Sequence[float], where: models.Filter | None = None, limit: int
    ) -> list[StoredPoint]:
        """Search by cosine similarity, best first."""
        ...

    async def lexical(
        self, collection: str, *, tenant_id: str, text: str, where: models.Filter | None = None, limit: int
    ) -> list[StoredPoint]:
        """Search by words (BM25), best first. Return an empty list when `text` has no indexed word. Scores are
        comparable within one answer only."""
        ...

    async def search(
        self,
        collection: str,
        *,
        tenant_id: str,
        rankings: Sequence[Ranking],
        where: models.Filter | None = None,
        limit: int,
    ) -> list[Sequence[RankedPoint]]:
        """Run several rankings of the same records in one request. Return ids and scores of the best `limit` records of
        each ranking. The scores are the same as in `nearest` and `lexical`. If one ranking fails, the call fails.

        The result has no payloads, because the lists contain more records than a caller needs, and many records twice.
        Load the needed records with `select`.
        """
        ...

    async def last(
        self,
        collection: str,
        *,
        tenant_id: str,
        where: models.Filter | None = None,
        order_by: str,
        limit: int,
    ) -> list[StoredPoint]:
        """Return the records with the greatest values in an indexed field, greatest first. Records without a value are
        not returned. Concurrent calls share a request."""
        ...

    async def count(self, collection: str, *, tenant_id: str, where: models.Filter | None = None) -> int: ...

    def writes_together(self) -> AbstractAsyncContextManager[None]:
        """Let writes in the block share one sync. A write may return before it is durable; all writes are durable when
        the block ends without an error. After a crash, any of the writes may be missing."""
        ...

    async def insert(self, collection: str, points: Sequence[Point]) -> None:
        """Insert points that are absent. Existing points stay unchanged."""
        ...

    async def put(self, collection: str, points: Sequence[Point]) -> None:
        """Insert or replace whole points, without a version check."""
        ...

    async def set_payload(self, collection: str, *, tenant_id: str, ids: Sequence[str], fields: Payload) -> None:
        """Write single fields of existing points. Absent points stay absent. Used for fields with one writer."""
        ...

    async def rewindow(self, collection: str, *, tenant_id: str, points: Sequence[NewWindow]) -> None:
        """Replace vectors of existing points. The payload and `dense` stay unchanged. Absent points stay absent."""
        ...

    async def delete(self, collection: str, *, tenant_id: str, ids: Sequence[str]) -> None: ...

    async def compare_and_set(
        self, collection: str, point: Point, *, expected_version: int | None, cause: str
    ) -> CasResult:
        """Write `point` if the stored row has `expected_version` (None: no row exists) and was not yet changed by
        `cause`. The payload has the new `version`, and `cause` in `applied`. Counter fields of another stage
        (`CollectionSpec.counted`) keep their stored values; their values in the payload are ignored.

        Return `applied` when the row has the cause, from this call or an earlier call. Otherwise return `conflict`.
        """
        ...

    async def close(self) -> None: ...


class PeriodVectorStore(VectorStore, Protocol):
    """Vector store that opens and drops periods of a collection that is partitioned by period. For the collection's
    writer."""

    async def periods(self, collection: str, *, opened: bool = False) -> tuple[Period, ...]:
        """Return the existing periods from the store, oldest first. `opened`: leave out the period assigned to a
        collection created before periods existed, because that period comes from a worker's clock."""
        ...

    async def open_period(self, collection: str, period: Period, *, newest: Period) -> str:
        """Create the period's collection if it is missing, and return its name. Concurrent calls of several processes
        are safe.

        A collection that was filled before periods existed gets the period `newest` or `period`, whichever is later.
        """
        ...

    async def drop_periods(self, collection: str, *, before: datetime) -> tuple[str, ...]:
        """Delete the collections of periods that ended by `before`, and return the names of the deleted collections.
        The call is idempotent."""
        ...
