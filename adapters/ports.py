"""Ports: the Protocols through which stages use the outside world.

Each Protocol has one contract suite under tests/contract, which runs on every implementation, fakes included. Every
error leaves a port as `Transient`, `Poison` or `Fatal` (schemas/errors.py).
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
W = TypeVar("W")


# ------------------------------------------------------------------------------------------------ embedders
@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """The identity of an embedder. A collection records that of the embedder that filled it, and refuses another
    one."""

    name: str
    """As in MEMSTREAM_EMBEDDER; of a folder only the last part: `hashing`, `fastembed:all-minilm-l6-v2-int8`."""
    dimension: int
    version: str = "1"
    mostly_zeros: bool = field(default=False, compare=False)
    """Whether nearly all numbers of a vector are zero. A new collection then stores its vectors as sparse ones."""

    @property
    def slug(self) -> str:
        """The name for use in collection names: lower-case letters, digits and hyphens."""
        return "".join(c if c.isalnum() else "-" for c in self.name.lower()).strip("-")


class Embedder(Protocol):
    @property
    def identity(self) -> EmbedderIdentity: ...

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        """Return one vector for each text, in the same order. Each has `identity.dimension` floats and length 1.

        Raises `Transient` (time-out, 429, 5xx, 401, 403, 404, connection) or `Poison("refused_by_model")`.
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

    `parse` gets the decoded JSON value of the answer and returns the typed answer. It raises ValueError, with the
    reason, only when the outer shape is unusable. Single bad items it drops and counts itself.
    """

    task: str
    """Name of the JSON schema: observations, consolidation, …"""
    tenant_id: str
    messages: tuple[Message, ...]
    json_schema: Mapping[str, JsonValue]
    """The schema of the outer object, in strict mode: every property is required, and optional ones are nullable."""
    parse: Callable[[JsonValue], A]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counted them, over all calls for one answer (a repair is a second call)."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Completion(Generic[A]):
    value: A
    model: str
    usage: Usage = field(default_factory=Usage)


class UsageSink(Protocol):
    """Receiver of token usage, for each tenant and task."""

    def record(self, *, tenant_id: str, task: str, model: str, usage: Usage) -> None: ...


class Places(Protocol):
    """A limit of calls at once. The implementation says whose turn it is."""

    def place(self, tenant_id: str) -> AbstractAsyncContextManager[None]:
        """Hold a place during the block. Waits for one."""
        ...


class FairShares(Protocol[W]):
    """Waiting work of many tenants, and the places that each has in use. The implementation says whose turn it is
    (streams/engine/fair_queue.py)."""

    def push(self, tenant: str, work: W) -> None:
        """Let work wait for a place."""
        ...

    def pop(self) -> tuple[str, W] | None:
        """Give a place to the tenant whose turn it is. Return tenant and work, None when nothing waits."""
        ...

    def join(self, tenant: str, fits: Callable[[W], bool]) -> list[W]:
        """Take more work of a tenant into a place that it has."""
        ...

    def release(self, tenant: str) -> None:
        """Take back a place."""
        ...


class Completions(Protocol):
    @property
    def model(self) -> str:
        """The name that is recorded in `cause.model`."""
        ...

    @property
    def costs_money(self) -> bool: ...

    async def complete(self, request: CompletionRequest[A]) -> Completion[A]:
        """Return the parsed answer. Raises `Transient` (also for 401, 403, 404: `remedy` names the setting), or
        `Poison("refused_by_model")` when the answer is still unusable after one repair."""
        ...

    async def close(self) -> None: ...


# ------------------------------------------------------------------------------------------------ rerankers
@dataclass(frozen=True, slots=True)
class RerankCandidate:
    """What a reranker sees of a memory that a search found."""

    tier: Tier
    text: str
    subject: str | None = None
    """Whom the memory is about. None for a message."""
    by_speaker: bool = False
    """A message of the speaker whom the cue names."""


class Reranker(Protocol):
    """Reranker: it improves the order of candidates by reading each together with the cue. Without one, Reciprocal Rank
    Fusion alone orders them."""

    async def rerank(
        self, cue: str, candidates: Sequence[RerankCandidate], *, tenant_id: str, as_speaker: str | None = None
    ) -> list[int]:
        """Return places in `candidates`, best first, each at most once. They come in recall's own order, best first.
        Candidates that are not named fit worse than those that are. `as_speaker`: the cue as the speaker whom it names
        would put it ("Ann's plans": "my plans"), for comparison with messages. None: it names nobody who speaks.

        Raises `Transient`, or `Poison("refused_by_model")` when there is no usable answer.
        """
        ...

    async def close(self) -> None: ...


# ------------------------------------------------------------------------------------------------ vector store
@dataclass(frozen=True, slots=True)
class Point:
    """A record to store. Lexical search indexes `text` (the store encodes it). `dense` is the embedding of the record,
    and `window` that of the record with its neighbours, in collections that have it."""

    id: str
    payload: Payload
    dense: Sequence[float] | None = None
    text: str | None = None
    window: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class NewWindow:
    """New vectors of a stored record after a neighbour was added; see `Point`. None leaves a vector unchanged."""

    id: str
    text: str | None
    window: Sequence[float] | None


class StoredPoint(NamedTuple):
    """A stored record. `score` is the cosine similarity when a query asked for it. `dense` is set only when asked
    for. `collection`: of a collection that is kept by period, that of the period; set by `get` and `last`."""

    id: str
    payload: Payload
    score: float | None = None
    dense: Sequence[float] | None = None
    collection: str | None = None


class RankedPoint(Protocol):
    """A place in the answer to a ranking, in the form in which the store has it, because a read has hundreds. Scores
    compare within one answer only."""

    @property
    def id(self) -> str: ...

    @property
    def score(self) -> float: ...


VectorName = Literal["dense", "window"]


@dataclass(frozen=True, slots=True)
class DenseRanking:
    """Ranking by cosine similarity to a vector: of the records themselves, or of the records with their neighbours."""

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
    """Qdrant, remote or embedded. Collection names are those of schemas/collections.py (`facts`, `episodes` …).

    Every read needs a tenant: it is a filter inside the query, and the `tenant_id` of every payload that comes back is
    checked again (another one is `Fatal`). A write returns when it is durable (embedded: synced to the disk); a
    time-out is `Transient`. Payload values are JSON. Before they reach the engine, NaN and infinities are refused
    (`Fatal`), and so is a text with a lone surrogate (`Poison("invalid")`: bad input that the codec accepted).

    A collection that is kept by period (`CollectionSpec.by_period`) is read as one under its name, over all periods
    that stand. A write may name the collection of a period (`turns_2026q4`, schemas/periods.py). Without a period,
    points are inserted into the newest, and existing ones are changed wherever they lie.
    """

    async def ensure(self, *collections: str) -> None:
        """Create what is missing of these collections (by default of all): collection, alias, payload indexes. `Fatal`
        when a collection was filled by another embedder; the message names both and the remedy.

        A stage names only the collections that it writes, so that the stage whose `facts` are missing can still notice
        it.
        """
        ...

    async def exists(self, collection: str) -> bool: ...

    async def ping(self) -> None:
        """Return when the store answers; raise `Transient` when it does not."""
        ...

    async def get(
        self, collection: str, *, tenant_id: str, ids: Sequence[str], with_dense: bool = False
    ) -> dict[str, StoredPoint]:
        """Read records by id. Absent ids are left out of the result. More than 1 000 ids are read in pages."""
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
        """Return all records that match, in pages inside: ordered by an indexed field when given, otherwise by id, from
        `from_id` on. With `fields`, payloads contain these fields and `tenant_id` only, for large reads that need
        little."""
        ...

    async def nearest(
        self, collection: str, *, tenant_id: str, dense: Sequence[float], where: models.Filter | None = None, limit: int
    ) -> list[StoredPoint]:
        """Search by cosine similarity, best first."""
        ...

    async def lexical(
        self, collection: str, *, tenant_id: str, text: str, where: models.Filter | None = None, limit: int
    ) -> list[StoredPoint]:
        """Search by words (BM25), best first. Empty when `text` has no indexed word. Scores compare within one answer
        only."""
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
        """Run several rankings of the same records in one request, and return ids and scores of the best `limit` of
        each, as `nearest` and `lexical` find them. All of them answer, or none. `select` reads the records of those
        that are wanted: the lists of a search name more of them, and many twice."""
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
        left out. Concurrent calls share a request."""
        ...

    async def count(self, collection: str, *, tenant_id: str, where: models.Filter | None = None) -> int: ...

    def writes_together(self) -> AbstractAsyncContextManager[None]:
        """Let writes share what makes them durable: within the block a write may return before it is durable, and all
        are when the block ends without an error. After a crash any of them may be there, and any may not."""
        ...

    async def insert(self, collection: str, points: Sequence[Point]) -> None:
        """Insert points that are absent. Existing points stay unchanged."""
        ...

    async def put(self, collection: str, points: Sequence[Point]) -> None:
        """Insert or replace whole points. For projections."""
        ...

    async def set_payload(self, collection: str, *, tenant_id: str, ids: Sequence[str], fields: Payload) -> None:
        """Write single fields of existing points. Absent points stay absent. For fields that have one writer."""
        ...

    async def rewindow(self, collection: str, *, tenant_id: str, points: Sequence[NewWindow]) -> None:
        """Replace vectors of existing points without touching payload or `dense`. Absent points stay absent."""
        ...

    async def delete(self, collection: str, *, tenant_id: str, ids: Sequence[str]) -> None: ...

    async def compare_and_set(
        self, collection: str, point: Point, *, expected_version: int | None, cause: str
    ) -> CasResult:
        """Write `point` if the stored row has `expected_version` (None: is absent) and does not have this cause yet.
        The payload carries the new `version`, and `cause` in `applied`. The fields that another stage counts in
        (`CollectionSpec.counted`) stay as the stored row has them at that moment, whatever the payload says.

        `applied`: the row has the cause, from now or before. `conflict`: the row does not have it.
        """
        ...

    async def close(self) -> None: ...


class PeriodVectorStore(VectorStore, Protocol):
    """A vector store that opens and drops periods of a collection that is kept by period. For the collection's
    writer."""

    async def periods(self, collection: str, *, opened: bool = False) -> tuple[Period, ...]:
        """Return the periods that stand, oldest first, as the store has them now. `opened`: without the one that a
        collection from before there were periods was given to, as of a worker's clock."""
        ...

    async def open_period(self, collection: str, period: Period, *, newest: Period) -> str:
        """Return the name of the period's collection, and make it when there is none. Many processes may do this at
        once.

        A collection that an earlier version filled, before there were periods, becomes that of `newest` or of `period`,
        whichever is later.
        """
        ...

    async def drop_periods(self, collection: str, *, before: datetime) -> tuple[str, ...]:
        """Delete the collections of the periods that ended by then, and return the names of those that are gone now.
        Deleting them again changes nothing."""
        ...
