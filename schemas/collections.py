"""Qdrant collections as data: their names, vectors and indexed payload fields (docs/reference/collections.md).

A field that is used in a filter or an order needs an index here. Without an index, the embedded engine scans all
records (29 ms instead of 0.3 ms at 10 000 points), and the server refuses to order by the field. `QdrantStore.ensure`
also adds a new index to an existing collection. Do not add an index without a use: each index costs the embedded engine
about 20 ms when a folder is first used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from .periods import parse_period

FieldKind = Literal["keyword", "integer", "float", "datetime", "bool"]
"""`datetime` is an RFC 3339 string in the payload; `keyword` also indexes each element of a list."""

Consistency = Literal["one", "quorum", "majority"]
"""Number of replicas that a read of a server asks; see MEMSTREAM_QDRANT_CONSISTENCY. The embedded engine has one
copy."""

Sharding = Literal["auto", "tenant"]
"""Sharding method of a server's collections; see MEMSTREAM_QDRANT_SHARDING. The embedded engine has no shards."""

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
    """One collection. Increase `version` when its stored form changes and the collection must be filled again."""

    name: str
    """The name that readers use: an alias in Qdrant."""
    has_vectors: bool
    """True when records have an embedding (cosine; adapters/vectors/sparse_form.py has its storage form) and a sparse
    vector of words (BM25, IDF)."""
    fields: tuple[IndexedField, ...]
    has_windows: bool = False
    """True when records have a second embedding, of the record with its neighbours. `QdrantStore.ensure` adds this
    vector to a collection of an earlier version. The records of the earlier version stay without this vector; searches
    find them by the other vectors."""
    counted: tuple[str, ...] = ()
    """Counter fields that another stage than the record's writer changes, with set_payload. A compare and set keeps
    their current values."""
    by_period: bool = False
    """True when each period has its own collection (periods.py). The collection of an old period is dropped as a
    whole."""
    version: int = 1

    def physical_name(self, embedder_slug: str) -> str:
        """Return the collection's own name, to which the alias points: `facts__hashing_v1`, or `working_v1` without an
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
            keyword="owner_key user_id session_id turn_id agent_id sensitivity name role tags",
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
            keyword=(
                "owner_key user_id session_id turn_id observation_id subject category sensitivity tags agent_id trust"
            ),
            number="importance",
            datetime="occurred_at valid_from valid_to recorded_at consolidated_at archived_at deleted_at",
        ),
    ),
    CollectionSpec(
        FACTS,
        has_vectors=True,
        fields=_fields(
            keyword=(
                "owner_key subject predicate category slot state sensitivity content_hash tags trust superseded_by "
                "evidence[].observation_id evidence[].session_id evidence[].turn_id evidence[].user_id "
                "evidence[].agent_id"
            ),
            integer="version reinforcement_count",
            number="confidence",
            datetime="valid_from valid_to recorded_at expired_at closed_at pinned_at evidence[].occurred_at",
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
    """Return the spec of a collection or of a period's collection (`turns_2026q4`). Return None for an unknown name."""
    found = next((spec for spec in COLLECTIONS if spec.name == name), None)
    if found is not None or (named := parse_period(name)) is None:
        return found
    whole = spec_of(named[0])
    return replace(whole, name=name, by_period=False) if whole is not None and whole.by_period else None
