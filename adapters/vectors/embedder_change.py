"""Change of the embedder: a copy of each collection with vectors, and one switch of all aliases (docs/adr/0093).

The aliases are the only record of the change. They exist in a server and in a folder, and one request changes them all
or none:

- `locked`: `facts` points to the collection in use, and there is no other alias for `facts`.
- `filling`: `next_facts` points to the copy. Readers do not use it.
- `switched`: `facts` points to the copy, and `previous_facts` to the collection from before.

No stage runs in the phases `filling` and `switched`: workers refuse to start, so a record has one writer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from qdrant_client import models

from ...schemas.collections import TENANT_FIELD, CollectionSpec, spec_of
from ..ports import EmbedderIdentity, Payload
from . import point_validation
from .batch_requests import EncodedPoint, PointIds, RequestBatcher
from .collections import create_beside, recorded_embedder
from .embedded.edge import EdgeEngine
from .engine import DENSE, SPARSE, WINDOW, QdrantEngine, ReadConsistency
from .errors import translate_errors
from .shards import Shards
from .sparse_form import to_sparse

ChangePhase = Literal["locked", "filling", "switched"]
NEXT: Final = "next_"
PREVIOUS: Final = "previous_"


class ChangeRefused(Exception):
    """The step does not fit the phase or the stored embedder. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class CollectionPair:
    """One collection that readers use, and the other one of the change."""

    aliases: tuple[str, ...]
    """Names that readers use. Only a collection from before periods existed has several."""
    used: str
    """The own name of the collection that readers use."""
    other: str | None
    """The own name of the collection behind `next_…` or `previous_…`. None: it has no such alias."""

    @property
    def spec(self) -> CollectionSpec:
        found = spec_of(self.aliases[0])
        assert found is not None  # `ChangeState.of` takes only such aliases
        return found


@dataclass(frozen=True, slots=True)
class ChangeState:
    phase: ChangePhase
    pairs: tuple[CollectionPair, ...]
    """All collections with vectors, by name."""

    @classmethod
    def of(cls, aliases: Mapping[str, str]) -> ChangeState:
        """Return the state that the aliases (alias → collection) record."""
        others: dict[str, str] = {}
        phase: ChangePhase = "locked"
        marks: tuple[tuple[str, ChangePhase], ...] = ((NEXT, "filling"), (PREVIOUS, "switched"))
        for prefix, named in marks:
            for alias, name in aliases.items():
                if alias.startswith(prefix) and _has_vectors(alias.removeprefix(prefix)):
                    others[alias.removeprefix(prefix)] = name
                    phase = named
        behind: defaultdict[str, list[str]] = defaultdict(list)
        for alias in sorted(filter(_has_vectors, aliases)):
            behind[aliases[alias]].append(alias)
        return cls(
            phase,
            tuple(
                CollectionPair(tuple(named), used, next((others[each] for each in named if each in others), None))
                for used, named in behind.items()
            ),
        )


@dataclass(frozen=True, slots=True)
class CopiedPoint:
    """A point of the collection in use, to be embedded again."""

    id: str
    tenant_id: str
    payload: Payload
    searchable: bool
    """True when the point has a vector. A message without text has none."""
    words: models.SparseVector | None
    """The vector of words. It does not depend on the embedder, and is copied."""


@dataclass(frozen=True, slots=True)
class EmbeddedPoint:
    """A point with its new vectors. None: the embedder refused the text, or there is none."""

    copied: CopiedPoint
    dense: Sequence[float] | None
    window: Sequence[float] | None = None


class EmbedderChange:
    """The steps of a change. Each step may be repeated after a crash. All methods raise `Transient` and `Fatal`."""

    def __init__(
        self, *, engine: QdrantEngine, records: RequestBatcher, shards: Shards, consistency: ReadConsistency
    ) -> None:
        self._engine = engine
        self._records = records
        self._shards = shards
        self._consistency = consistency

    async def state(self) -> ChangeState:
        with translate_errors("looking for a change of the embedder"):
            aliases = (await self._engine.get_aliases()).aliases
        return ChangeState.of({each.alias_name: each.collection_name for each in aliases})

    async def embedders(self) -> tuple[EmbedderIdentity | None, EmbedderIdentity | None]:
        """Return the embedder of the collections in use, and the other one of the change."""
        pairs = (await self.state()).pairs
        with translate_errors("looking for the embedders"):
            others = [pair.other for pair in pairs if pair.other is not None]
            used = await recorded_embedder(self._engine, pairs[0].used) if pairs else None
            return used, await recorded_embedder(self._engine, others[0]) if others else None

    async def begin(self, new: EmbedderIdentity) -> ChangeState:
        """Create the missing copies, then their aliases in one step. Raise `ChangeRefused` for the embedder in use,
        while a change to another embedder is under way, and after the switch."""
        state = await self.state()
        used, other = await self.embedders()
        if state.phase == "switched":
            raise ChangeRefused(f"reads have switched to {_name(used)} already: --drop-old ends that change first")
        if other is not None and other != new:
            raise ChangeRefused(f"a change to {other.name} is under way: continue it, or end it with --back")
        if used is None:
            raise ChangeRefused("there is no memory with vectors yet: set MEMSTREAM_EMBEDDER, and start")
        if used == new:
            raise ChangeRefused(f"the stored memory has the embedder {new.name} already")
        created: list[models.CreateAliasOperation] = []
        with translate_errors("creating the copies"):
            for pair in state.pairs:
                if pair.other is not None:
                    continue
                name = f"{pair.used.partition('__')[0]}__{new.slug}_v{pair.spec.version}"
                if name == pair.used:
                    raise ChangeRefused(f"{new.name} and {used.name} give collections the same name, {name}")
                await create_beside(
                    self._engine,
                    spec=pair.spec,
                    name=name,
                    embedder=new,
                    like=pair.used,
                    by_tenant=self._shards.by_tenant,
                )
                created += [_alias(NEXT + alias, name) for alias in pair.aliases]
            if created:
                await self._engine.update_collection_aliases(created)
        return await self.state()

    async def pages(self, pair: CollectionPair, *, size: int) -> AsyncIterator[tuple[int, list[CopiedPoint]]]:
        """Read the collection in use by id, `size` points at a time. Yield the number of points of the page, and those
        points that the copy lacks or has with another payload."""
        offset: Any = None
        while True:
            with translate_errors(f"reading {pair.used}"):
                rows, offset = await self._engine.scroll(
                    pair.used, limit=size, offset=offset, with_vectors=True, consistency=self._consistency
                )
                copies = {} if pair.other is None else await self._payloads(pair.other, [row.id for row in rows])
            points = [_copied(row.id, row.payload or {}, row.vector) for row in rows]
            yield len(points), [each for each in points if copies.get(each.id) != each.payload]
            if offset is None:
                return

    async def write(self, pair: CollectionPair, points: Sequence[EmbeddedPoint], *, embedder: EmbedderIdentity) -> None:
        """Write points to the copy. They are durable on return."""
        assert pair.other is not None
        encode = to_sparse if embedder.mostly_zeros else list
        encoded = []
        for each in points:
            vectors: dict[str, Any] = {}
            if each.copied.words is not None:
                vectors[SPARSE] = each.copied.words
            if each.dense is not None:
                vectors[DENSE] = encode(each.dense)
            if each.window is not None:
                vectors[WINDOW] = encode(each.window)
            size = point_validation.payload_size(each.copied.payload, f"{pair.other}: point {each.copied.id}")
            point = models.PointStruct.model_construct(id=each.copied.id, vector=vectors, payload=each.copied.payload)
            encoded.append(EncodedPoint(each.copied.tenant_id, size, point))
        await self._records.put(pair.other, encoded)
        await self._synced(pair.other)

    async def remove_surplus(self, pair: CollectionPair, *, size: int) -> int:
        """Delete the points of the copy that the collection in use no longer has, and return their number. There are
        some only if a worker ran between two runs of the command."""
        assert pair.other is not None
        removed, offset = 0, None
        with translate_errors(f"comparing {pair.other}"):
            if await self.count(pair.other) <= await self.count(pair.used):
                return 0
            while True:
                rows, offset = await self._engine.scroll(
                    pair.other, limit=size, offset=offset, with_payload=[TENANT_FIELD], consistency=self._consistency
                )
                known = await self._payloads(pair.used, [row.id for row in rows])
                surplus: defaultdict[str, list[str]] = defaultdict(list)
                for row in rows:
                    if str(row.id) not in known:
                        surplus[str((row.payload or {})[TENANT_FIELD])].append(str(row.id))
                if surplus:
                    named = [PointIds(tenant_id, tuple(ids)) for tenant_id, ids in surplus.items()]
                    await self._records.delete(pair.other, named)
                    await self._synced(pair.other)
                    removed += sum(map(len, surplus.values()))
                if offset is None:
                    return removed

    async def count(self, name: str) -> int:
        """Return the number of points of a collection, of all tenants."""
        with translate_errors(f"counting {name}"):
            return (await self._engine.count(name, exact=True)).count

    async def switch(self) -> None:
        """Point every alias to its copy, in one step. Raise `ChangeRefused` unless every collection has a copy."""
        state = await self.state()
        if state.phase != "filling" or any(pair.other is None for pair in state.pairs):
            raise ChangeRefused("not every collection has a copy: run the command again")
        await self._exchange(state.pairs, before=NEXT, after=PREVIOUS)

    async def back(self) -> None:
        """Return to the collections from before the change, and delete the copies."""
        state = await self.state()
        if state.phase == "switched":
            await self._exchange(state.pairs, before=PREVIOUS, after=NEXT)
            state = await self.state()
        await self._delete(pair.other for pair in state.pairs)

    async def drop_old(self) -> None:
        """Delete the collections from before the switch. Raise `ChangeRefused` before the switch."""
        state = await self.state()
        if state.phase == "filling":
            raise ChangeRefused("reads have not switched yet: run the command again, or end the change with --back")
        await self._delete(pair.other for pair in state.pairs)

    # -------------------------------------------------------------------------------------------- internals
    async def _exchange(self, pairs: Iterable[CollectionPair], *, before: str, after: str) -> None:
        changes: list[models.CreateAliasOperation | models.DeleteAliasOperation] = []
        for pair in pairs:
            for alias in pair.aliases if pair.other is not None else ():
                changes += [_no_alias(alias), _no_alias(before + alias)]
                changes += [_alias(alias, pair.other or ""), _alias(after + alias, pair.used)]
        with translate_errors("switching the aliases"):
            await self._engine.update_collection_aliases(changes)

    async def _delete(self, names: Iterable[str | None]) -> None:
        with translate_errors("deleting collections"):
            for name in names:
                if name is not None:
                    await self._engine.delete_collection(name)  # with its aliases

    async def _payloads(self, name: str, ids: Sequence[Any]) -> dict[str, Payload]:
        if not ids:
            return {}
        named = models.Filter(must=[models.HasIdCondition(has_id=list(ids))])
        rows, _ = await self._engine.scroll(name, named, limit=len(ids), consistency=self._consistency)
        return {str(row.id): row.payload or {} for row in rows}

    async def _synced(self, name: str) -> None:
        if isinstance(self._engine, EdgeEngine):
            await self._engine.synced(name)


def _has_vectors(alias: str) -> bool:
    spec = spec_of(alias)
    return spec is not None and spec.has_vectors


def _copied(point_id: Any, payload: Payload, vectors: Any) -> CopiedPoint:
    named = vectors if isinstance(vectors, dict) else {}
    return CopiedPoint(
        id=str(point_id),
        tenant_id=str(payload[TENANT_FIELD]),
        payload=payload,
        searchable=bool(named),
        words=named.get(SPARSE),
    )


def _name(embedder: EmbedderIdentity | None) -> str:
    return "another embedder" if embedder is None else embedder.name


def _alias(alias: str, name: str) -> models.CreateAliasOperation:
    return models.CreateAliasOperation(create_alias=models.CreateAlias(collection_name=name, alias_name=alias))


def _no_alias(alias: str) -> models.DeleteAliasOperation:
    return models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
