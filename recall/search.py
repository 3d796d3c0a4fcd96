"""The searches of one read: of each tier its rankings, then the rows of what is a candidate; all tiers at once.

A cue is embedded once; a tier's rankings (by meaning, by meaning with neighbours, by words) go out together, so they
answer together or not at all. They name ids alone: three lists of a hundred have half as many candidates, and of these
only the fields are read that a read needs (rows.py). Each part has the read's deadline and fails alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from qdrant_client import models

from ..adapters.ports import DenseRanking, Embedder, LexicalRanking, Payload, Ranking, StoredPoint, VectorStore
from ..memory.policies import FusionPolicy, RecallPolicy
from ..memory.recall.fusion import ListName, RankedList, fuse
from ..memory.recall.links import Links
from ..memory.recall.speakers import Speaker, find_speaker, possible_names, same_name
from ..schemas.collections import EPISODES, FACTS, LINKS, TURNS, WORKING
from ..schemas.ids import links_id
from ..schemas.links import StoredLinks
from ..schemas.recall import TIERS, Tier
from ..schemas.working_set import ENTRIES_MAX
from .deadline import LINKS as PART
from .deadline import DeadlineReads
from .filters import said_by, these, where
from .payloads import FIELDS
from .request import RecallRequest

COLLECTION_OF: dict[Tier, str] = {"semantic": FACTS, "working": WORKING, "episodic": EPISODES, "turns": TURNS}
ORDERS: dict[Tier, tuple[str, ...]] = {
    "semantic": ("reinforcement_count", "recorded_at"),
    "episodic": ("importance", "occurred_at"),
}
"""Without a cue: what counts most, and what is newest, of each the pool. Both are needed: in a young memory nothing is
reinforced yet, and in an old one the best are not among the newest."""
NOBODY = ""
"""No name: whoever speaks has one."""
SPEAKER_SHARE = 0.25
EMBEDDER_SHARE = 0.5
"""Of the patience. The searches wait for both, and words are found without either."""

Vector = Sequence[float]


@dataclass(slots=True)
class Pool:
    """The candidates of a tier: each record once."""

    payloads: dict[str, Payload] = field(default_factory=dict)
    fused: Mapping[str, float] | None = None
    """What ranked lists named, best first, each with its match; None where no list was asked for. One may have no
    payload: it went meanwhile."""
    lists: Sequence[RankedList] = ()
    preferred: frozenset[str] = frozenset()
    """What was said by the speaker whom the cue names."""

    def take(self, found: Sequence[StoredPoint]) -> None:
        for each in found:
            self.payloads.setdefault(each.id, each.payload)


class MemorySearch:
    """One read's searches. Made for one read, used once."""

    def __init__(
        self,
        *,
        store: VectorStore,
        embedder: Embedder,
        collections: Collection[str],
        policy: RecallPolicy,
        request: RecallRequest,
        now: datetime,
        parts: DeadlineReads,
    ) -> None:
        """`collections` are those that exist and are wanted; a tier without one holds nothing. `parts` learns what does
        not answer."""
        self._store = store
        self._embedder = embedder
        self._policy = policy
        self._request = request
        self._parts = parts
        wheres = {tier: where(tier, request, now=now) for tier in TIERS if COLLECTION_OF[tier] in collections}
        self._where = {tier: condition for tier, condition in wheres.items() if condition is not None}
        self._pools: dict[Tier, Pool] = {tier: Pool() for tier in self._where}
        self._linked = LINKS in collections
        self.links: Sequence[Links] = ()
        """Once `run` is done: what those whose memory is read recalled together, where it is wanted."""

    async def run(self) -> dict[Tier, Pool]:
        """What was found, by tier. `Fatal` when an invariant is broken."""
        try:
            async with asyncio.TaskGroup() as group:
                if self._linked:
                    group.create_task(self._links())
                if "working" in self._where:
                    group.create_task(self._all_working())
                if (cue := self._request.asked) is not None:
                    group.create_task(self._for_cue(cue))
                else:
                    for tier in self._where:
                        for order in ORDERS.get(tier, ()):
                            group.create_task(self._ordered(tier, order))
        except ExceptionGroup as failed:  # a broken invariant, seen by one search or by several
            raise _first(failed) from failed
        return self._pools

    async def _links(self) -> None:
        self.links = await linked(store=self._store, request=self._request, parts=self._parts)

    # -------------------------------------------------------------------------------------------- without a cue
    async def _all_working(self) -> None:
        collection, condition = self._place("working")
        found = await self._parts.ask(
            "working.all",
            lambda: self._store.select(
                collection,
                tenant_id=self._request.tenant_id,
                where=condition,
                limit=ENTRIES_MAX,
                fields=FIELDS["working"],
            ),
        )
        self._pools["working"].take(found or ())

    async def _ordered(self, tier: Tier, order: str) -> None:
        collection, condition = self._place(tier)
        found = await self._parts.ask(
            f"{tier}.{order}",
            lambda: self._store.select(
                collection,
                tenant_id=self._request.tenant_id,
                where=condition,
                order_by=order,
                direction="desc",
                limit=self._policy.pool,
                fields=FIELDS[tier],
            ),
        )
        self._pools[tier].take(found or ())

    # -------------------------------------------------------------------------------------------- for a cue
    async def _for_cue(self, cue: str) -> None:
        """Whom does it name? → what does it mean? → the searches, of each tier its own."""
        tiers = [tier for tier in self._where if tier != "working"]
        if not tiers:
            return
        asked = dict.fromkeys(tiers, _Asked(cue, cue))
        if "turns" in tiers and (named := await self._speaker(cue)) is not None:
            asked["turns"] = _Asked(named.first_person, named.without_name, named.names)
        vectors = await self._embedded(list(dict.fromkeys(each.meaning for each in asked.values())))
        async with asyncio.TaskGroup() as group:
            for tier, each in asked.items():
                group.create_task(self._search(tier, each, vectors.get(each.meaning)))

    async def _speaker(self, cue: str) -> Speaker | None:
        """Whom the cue names of those who speak in these turns, if it is one. Nothing is asked when no word of it can
        be a name."""
        possible = possible_names(cue) if self._policy.fused.speaker > 0 else ()
        known = await self._one_of(possible)
        if not known:
            return None
        others = tuple(name for name in possible if not same_name(name, known))
        if await self._one_of(others) != NOBODY:
            return None
        return find_speaker(cue, [name for name in possible if same_name(name, known)])

    async def _one_of(self, names: Sequence[str]) -> str | None:
        """One of these under which a message stands, or nobody; None when that was not answered."""
        if not names:
            return NOBODY
        collection, condition = self._place("turns")
        found = await self._parts.ask(
            "turns.speaker",
            lambda: self._store.select(
                collection,
                tenant_id=self._request.tenant_id,
                where=said_by(names, condition),
                limit=1,
                fields=("name",),
            ),
            share=SPEAKER_SHARE,
        )
        if found is None:
            return None
        return str(found[0].payload["name"]) if found else NOBODY

    async def _embedded(self, texts: Sequence[str]) -> dict[str, Vector]:
        """By text; of none when the embedder does not answer."""
        if self._policy.fused.dense == self._policy.fused.windowed == 0:
            return {}
        vectors = await self._parts.ask(
            "embedder",
            lambda: self._embedder.embed(texts, tenant_id=self._request.tenant_id),
            share=EMBEDDER_SHARE,
        )
        return dict(zip(texts, vectors, strict=True)) if vectors is not None else {}

    async def _search(self, tier: Tier, asked: _Asked, vector: Vector | None) -> None:
        rankings = _rankings(tier, asked, vector, self._policy.fused)
        if not rankings:
            return
        first, *others = rankings
        found = await self._parts.ask(
            f"{tier}.{first}",
            lambda: self._candidates(tier, rankings, asked.names),
            also=[f"{tier}.{each}" for each in others],
        )
        if found is not None:
            self._pools[tier] = found

    async def _candidates(self, tier: Tier, rankings: Mapping[ListName, Ranking], names: Collection[str]) -> Pool:
        collection, condition = self._place(tier)
        answers = await self._store.search(
            collection,
            tenant_id=self._request.tenant_id,
            rankings=list(rankings.values()),
            where=condition,
            limit=self._policy.pool,
        )
        lists = [RankedList(name, [each.id for each in found]) for name, found in zip(rankings, answers, strict=True)]
        preferred = await self._said_by(names, lists) if names else frozenset[str]()
        fused = fuse(lists, policy=self._policy.fused, pool=self._policy.pool, preferred=preferred)
        rows = await self._rows(tier, list(fused), condition, FIELDS[tier])
        return Pool({each.id: each.payload for each in rows}, fused, lists, preferred)

    async def _said_by(self, names: Collection[str], lists: Sequence[RankedList]) -> frozenset[str]:
        """Of the messages in these lists those of the speaker whom the cue names."""
        identities = list(dict.fromkeys(each for named in lists for each in named.ids))
        found = await self._rows("turns", identities, said_by(sorted(names), self._where["turns"]), ())
        return frozenset(each.id for each in found)

    async def _rows(
        self, tier: Tier, identities: Sequence[str], condition: models.Filter, fields: Sequence[str]
    ) -> Sequence[StoredPoint]:
        """Asked by the condition once more: a record may have changed since it was found."""
        if not identities:
            return ()
        return await self._store.select(
            COLLECTION_OF[tier],
            tenant_id=self._request.tenant_id,
            where=these(identities, condition),
            limit=len(identities),
            fields=fields,
        )

    def _place(self, tier: Tier) -> tuple[str, models.Filter]:
        return COLLECTION_OF[tier], self._where[tier]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A cue as it is put to a tier."""

    meaning: str
    """What is embedded."""
    words: str
    names: frozenset[str] = frozenset()
    """Of the speaker whose messages are preferred."""


def _rankings(tier: Tier, asked: _Asked, vector: Vector | None, policy: FusionPolicy) -> dict[ListName, Ranking]:
    """What a tier is asked by: what it has, and what counts."""
    rankings: dict[ListName, Ranking] = {}
    if vector is not None and policy.dense > 0:
        rankings["dense"] = DenseRanking(vector)
    if vector is not None and policy.windowed > 0 and tier == "turns":
        rankings["windowed"] = DenseRanking(vector, "window")
    if policy.lexical > 0:
        rankings["lexical"] = LexicalRanking(asked.words)
    return rankings


def _first(failed: BaseExceptionGroup) -> BaseException:
    """Of a group, and of groups in it."""
    first = failed.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def lifts(request: RecallRequest, policy: RecallPolicy) -> bool:
    """Whether links can lift anything. Without a cue nothing is called up. And they have no past: what was recalled
    since was not known then."""
    return policy.links > 0 and request.asked is not None and request.known_at is None


async def linked(*, store: VectorStore, request: RecallRequest, parts: DeadlineReads) -> tuple[Links, ...]:
    """None, and `links` among the missing parts, when the store does not answer."""
    named = [links_id(owner_key) for owner_key in request.owner_keys]
    found = await parts.ask(PART, lambda: store.get(LINKS, tenant_id=request.tenant_id, ids=named))
    return tuple(Links(packed=StoredLinks.from_payload(each.payload).packed) for each in (found or {}).values())
