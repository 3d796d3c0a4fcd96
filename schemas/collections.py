"""The Qdrant collections as data: their names, vectors and indexed payload fields (docs/reference/collections.md).

A field that is used in a filter or an order needs a line here. Without an index, the embedded engine scans everything
(29 ms instead of 0.3 at 10 000 points), and the server refuses to order by the field. `QdrantStore.ensure` also creates
a new line's index in an existing collection. Each index costs the embedded engine about 20 ms when a folder is first
used, so there are none in reserve.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from .periods import parse_period

FieldKind = Literal["keyword", "integer", "float", "datetime", "bool"]
"""`datetime` is an RFC 3339 string in the payload; `keyword` also indexes each element of a list."""

Consistency = Literal["one", "quorum", "majority"]
"""How many replicas of a server a read asks; see MEMSTREAM_QDRANT_CONSISTENCY. The embedded engine has one copy."""

Sharding = Literal["auto", "tenant"]
"""How a server divides a collection into shards; see MEMSTREAM_QDRANT_SHARDING. The embedded engine does not."""

TURNS = "turns"
WORKING = "working"
EPISODES = "episodes"
FACTS = "facts"
DIGESTS = "digests"
PROCEDURES = "procedures"
ARCHIVE = "archive"
BUDGETS = "budgets"
LINKS = "links"
LABELS = "labels"
BLOCKS = "blocks"
HOLDINGS = "holdings"
TASKS = "tasks"
GROUPS = "groups"
TENANT_FIELD = "tenant_id"


@dataclass(frozen=True, slots=True)
class IndexedField:
    """One payload index. `path` is Qdrant's JSON path: `evidence[].observation_id` addresses each element."""

    path: str
    kind: FieldKind = "keyword"
    is_tenant: bool = False


@dataclass(frozen=True, slots=True)
class CollectionSpec:
    """One collection. `version` rises when its stored form changes so much that it must be filled again."""

    name: str
    """The name that readers use: an alias in Qdrant."""
    has_vectors: bool
    """Whether records have an embedding (cosine; adapters/vectors/sparse_form.py says in which form), and a sparse
    vector of words (BM25, IDF)."""
    fields: tuple[IndexedField, ...]
    has_windows: bool = False
    """Whether records have a second embedding, of the record with its neighbours. An older collection gets this
    vector, empty, when it is ensured; its records are found by their other vectors."""
    counted: tuple[str, ...] = ()
    """Fields that another stage than the record's writer counts in, with set_payload. A compare and set leaves them as
    they are at the moment of the write."""
    by_period: bool = False
    """Whether records lie in a collection for each period (periods.py), and go with it."""
    version: int = 1

    def physical_name(self, embedder_slug: str) -> str:
        """Return the name of the collection behind the alias: `facts__hashing_v1`, or `working_v1` without an
        embedder."""
        if not self.has_vectors:
            return f"{self.name}_v{self.version}"
        return f"{self.name}__{embedder_slug}_v{self.version}"


def _fields(
    *, keyword: str = "", integer: str = "", number: str = "", datetime: str = "", flag: str = ""
) -> tuple[IndexedField, ...]:
    tenant = IndexedField(TENANT_FIELD, "keyword", is_tenant=True)
    kinds: tuple[tuple[FieldKind, str], ...] = (
        ("keyword", keyword),
        ("integer", integer),
        ("float", number),
        ("datetime", datetime),
        ("bool", flag),
    )
    return (tenant, *(IndexedField(path, kind) for kind, paths in kinds for path in paths.split()))


COLLECTIONS: tuple[CollectionSpec, ...] = (
    CollectionSpec(
        TURNS,
        has_vectors=True,
        has_windows=True,
        by_period=True,
        fields=_fields(
            keyword="owner_key user_id session_id turn_id agent_id sensitivity name",
            integer="message_index session_place",
            datetime="occurred_at",
        ),
    ),
    CollectionSpec(
        WORKING,
        has_vectors=False,
        fields=_fields(keyword="owner_key user_id session_id subject category sensitivity", number="salience"),
    ),
    CollectionSpec(
        EPISODES,
        has_vectors=True,
        fields=_fields(
            keyword="owner_key user_id session_id turn_id observation_id subject category sensitivity tags",
            number="importance",
            datetime="occurred_at valid_from valid_to recorded_at consolidated_at archived_at deleted_at",
        ),
    ),
    CollectionSpec(
        FACTS,
        has_vectors=True,
        fields=_fields(
            keyword=(
                "owner_key subject predicate category state sensitivity content_hash tags "
                "evidence[].observation_id evidence[].session_id evidence[].turn_id"
            ),
            integer="version reinforcement_count",
            number="confidence",
            datetime="valid_from valid_to recorded_at expired_at closed_at",
        ),
        counted=("strength", "retrieval_count", "last_accessed_at"),
    ),
    CollectionSpec(BUDGETS, has_vectors=False, fields=_fields(keyword="day")),
    CollectionSpec(DIGESTS, has_vectors=False, fields=_fields(keyword="owner_key sensitivity")),
    CollectionSpec(
        PROCEDURES, has_vectors=False, fields=_fields(keyword="owner_key sensitivity", datetime="removed_at")
    ),
    CollectionSpec(ARCHIVE, has_vectors=False, fields=_fields(keyword="owner_key", datetime="accessed_at")),
    CollectionSpec(LINKS, has_vectors=False, fields=_fields()),
    CollectionSpec(LABELS, has_vectors=False, fields=_fields()),
    CollectionSpec(BLOCKS, has_vectors=False, fields=_fields(keyword="owner_key sensitivity")),
    CollectionSpec(HOLDINGS, has_vectors=False, fields=_fields()),
    CollectionSpec(
        TASKS,
        has_vectors=False,
        fields=_fields(keyword="owner_key state sensitivity content_hash condition", datetime="due_at"),
    ),
    CollectionSpec(GROUPS, has_vectors=False, fields=_fields(keyword="owner_key member_keys")),
)


def spec_of(name: str) -> CollectionSpec | None:
    """Return the spec of a collection or of a period's (`turns_2026q4`). None: there is none of this name."""
    found = next((spec for spec in COLLECTIONS if spec.name == name), None)
    if found is not None or (named := parse_period(name)) is None:
        return found
    whole = spec_of(named[0])
    return replace(whole, name=name, by_period=False) if whole is not None and whole.by_period else None
