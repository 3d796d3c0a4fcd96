"""The ports: what the stages may ask of the outside world.

Each Protocol has one contract suite under tests/contract that runs on every implementation, fakes included.
Everything that can go wrong leaves as `Transient`, `Poison` or `Fatal` (schemas/errors.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from pydantic import JsonValue
from qdrant_client import models

from ..schemas.recall import Tier

Payload = dict[str, JsonValue]
A = TypeVar("A")


# ------------------------------------------------------------------------------------------------ embedders
@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """What a collection remembers of the embedder that filled it. Another identity is refused."""

    name: str
    """As in MEMSTREAM_EMBEDDER, a folder by its last part: `hashing`, `fastembed:all-minilm-l6-v2-int8`."""
    dimension: int
    version: str = "1"

    @property
    def slug(self) -> str:
        """For collection names: lower-case letters, digits and hyphens."""
        return "".join(c if c.isalnum() else "-" for c in self.name.lower()).strip("-")


class Embedder(Protocol):
    @property
    def identity(self) -> EmbedderIdentity: ...

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        """One vector per text, in their order, each of `identity.dimension` floats and of length 1.

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
    """One task for a model. `parse` gets the decoded JSON value of the answer and returns the typed answer;
    it raises ValueError, saying what is wrong, only when the outer shape is unusable (single bad items are its
    own business: dropped and counted)."""

    task: str
    """Name of the JSON schema: observations, consolidation, …"""
    tenant_id: str
    messages: tuple[Message, ...]
    json_schema: Mapping[str, JsonValue]
    """Strict-mode schema of the outer object: every property required, optional ones nullable."""
    parse: Callable[[JsonValue], A]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counted them, over all calls that one answer took (a repair is a second call)."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Completion(Generic[A]):
    value: A
    model: str
    usage: Usage = field(default_factory=Usage)


class UsageSink(Protocol):
    """Where usage is counted, per tenant and task (the metrics of the worker; budgets later)."""

    def record(self, *, tenant_id: str, task: str, model: str, usage: Usage) -> None: ...


class Completions(Protocol):
    @property
    def model(self) -> str:
        """The name that goes into `cause.model`."""
        ...

    @property
    def costs_money(self) -> bool: ...

    async def complete(self, request: CompletionRequest[A]) -> Completion[A]:
        """Raises `Transient` (also 401, 403, 404: `remedy` names the setting), or `Poison("refused_by_model")`
        when the answer is unusable after one repair."""
        ...

    async def close(self) -> None: ...


# ------------------------------------------------------------------------------------------------ rerankers
@dataclass(frozen=True, slots=True)
class RerankCandidate:
    """What a reranker sees of a memory that a search found."""

    tier: Tier
    text: str
    subject: str | None = None
    """Of whom it tells; None for a message."""


class Reranker(Protocol):
    """Puts what was found into a better order by reading it beside the cue. Who has none orders by Reciprocal Rank
    Fusion alone."""

    async def rerank(self, cue: str, candidates: Sequence[RerankCandidate], *, tenant_id: str) -> list[int]:
        """Places in `candidates`, best first, each at most once; what it does not name fits worse than what it names.

        Raises `Transient`, or `Poison("refused_by_model")` when there is no usable answer.
        """
        ...

    async def close(self) -> None: ...


# ------------------------------------------------------------------------------------------------ vector store
@dataclass(frozen=True, slots=True)
class Point:
    """A record to store. `text` is what lexical search indexes (the store encodes it), `dense` the embedding, `window`
    that of the record with its neighbours, where the collection has such."""

    id: str
    payload: Payload
    dense: Sequence[float] | None = None
    text: str | None = None
    window: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class NewWindow:
    """What a record that stands is found by from now on, since a neighbour came: see `Point`. None stays as it is."""

    id: str
    text: str | None
    window: Sequence[float] | None


class StoredPoint(NamedTuple):
    """A stored record. `score` is the cosine similarity where a query asked for one; `dense` only when asked."""

    id: str
    payload: Payload
    score: float | None = None
    dense: Sequence[float] | None = None


class RankedPoint(Protocol):
    """A record in the answer to a ranking, as the store has it: a read has hundreds. Scores compare within one answer
    only."""

    @property
    def id(self) -> str: ...

    @property
    def score(self) -> float: ...


VectorName = Literal["dense", "window"]


@dataclass(frozen=True, slots=True)
class DenseRanking:
    """A ranking by cosine similarity to a vector: of the records themselves, or of them with their neighbours."""

    dense: Sequence[float]
    among: VectorName = "dense"


@dataclass(frozen=True, slots=True)
class LexicalRanking:
    """A ranking by words (BM25)."""

    text: str


Ranking = DenseRanking | LexicalRanking
CasResult = Literal["applied", "conflict"]
OrderDirection = Literal["asc", "desc"]


class VectorStore(Protocol):
    """Qdrant, remote or embedded. Collection names are those of schemas/collections.py (`facts`, `episodes` …).

    No read works without a tenant: it is a filter inside every query, and the `tenant_id` of every payload that
    comes back is checked again (another one is `Fatal`). Writes wait until they are durable; a time-out is
    `Transient`. Payload values are JSON; NaN and infinities are refused before they reach the engine (`Fatal`), so is
    a text with a lone surrogate (`Poison("invalid")`: bad input that the codec let through).
    """

    async def ensure(self, *collections: str) -> None:
        """Create what is missing of these (by default of all): collections, aliases, payload indexes. `Fatal` when a
        collection was filled by another embedder; the message names both and what to do.

        A stage names the collections that it writes, so that the one whose `facts` are gone can still see it."""
        ...

    async def exists(self, collection: str) -> bool: ...

    async def ping(self) -> None:
        """Answer, or raise `Transient`."""
        ...

    async def get(
        self, collection: str, *, tenant_id: str, ids: Sequence[str], with_dense: bool = False
    ) -> dict[str, StoredPoint]:
        """By id; what is absent is absent. Beyond 1 000 ids it asks in pages."""
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
        """All that match (paged inside), ordered by an indexed field when asked, else by id, from `from_id` on.
        `fields`: of the payload these alone and `tenant_id`, for reads of many of which little is needed."""
        ...

    async def nearest(
        self, collection: str, *, tenant_id: str, dense: Sequence[float], where: models.Filter | None = None, limit: int
    ) -> list[StoredPoint]:
        """By cosine similarity, best first."""
        ...

    async def lexical(
        self, collection: str, *, tenant_id: str, text: str, where: models.Filter | None = None, limit: int
    ) -> list[StoredPoint]:
        """By words (BM25), best first; nothing when `text` has no word that is indexed. Scores compare within one
        answer only."""
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
        """Several rankings of the same records in one request: of each the best `limit`, as `nearest` and
        `lexical` would give them. All answer, or none. Payloads are read of those that are wanted then (`select`):
        lists overlap, and reading a payload costs more than finding it."""
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
        """The records with the greatest values in an indexed field, greatest first; those without one are left out.
        What is asked at once goes out together."""
        ...

    async def count(self, collection: str, *, tenant_id: str, where: models.Filter | None = None) -> int: ...

    async def insert(self, collection: str, points: Sequence[Point]) -> None:
        """Only where absent; what stands is left as it is."""
        ...

    async def put(self, collection: str, points: Sequence[Point]) -> None:
        """Insert or replace whole (projections)."""
        ...

    async def set_payload(self, collection: str, *, tenant_id: str, ids: Sequence[str], fields: Payload) -> None:
        """Write single fields of existing points (their owner's way); an absent point stays absent."""
        ...

    async def rewindow(self, collection: str, *, tenant_id: str, points: Sequence[NewWindow]) -> None:
        """Index existing points anew, without touching payload or `dense`; an absent point stays absent."""
        ...

    async def delete(self, collection: str, *, tenant_id: str, ids: Sequence[str]) -> None: ...

    async def compare_and_set(
        self, collection: str, point: Point, *, expected_version: int | None, cause: str
    ) -> CasResult:
        """Write `point` (its payload carries the new `version`, and `cause` among `applied`) if the stored row has
        `expected_version` (None: is absent) and not yet this cause. `applied`: the row has the cause, now or before.
        `conflict`: it has neither."""
        ...

    async def close(self) -> None: ...
