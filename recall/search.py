"""Searches of one recall: the rankings of each tier, then the records of the candidates. All tiers run concurrently.

All texts are embedded in one request. The rankings of a tier (by meaning, by meaning with neighbouring messages, by
words) are sent in one request, so they succeed or fail together. Each ranking is a list of ids. After fusion, the
fields in payloads.py are read for the best candidates: thirty messages, or a hundred records of another tier
(docs/adr/0056). Each part can fail separately.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from qdrant_client import models

from ..adapters.ports import DenseRanking, Embedder, LexicalRanking, Payload, Ranking, StoredPoint, VectorStore
from ..memory.policies import FusionPolicy, RecallPolicy
from ..memory.recall.cue_times import CueTime
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
from .filters import in_time, said_by, these, where
from .forgotten_messages import FIELDS as FORGOTTEN_FIELDS
from .forgotten_messages import Quotes, forgotten_of, quotes_in, turn_of
from .payloads import COMPOSITE_FIELDS, FIELDS
from .request import RecallRequest
from .subject_names import other_names

COLLECTION_OF: dict[Tier, str] = {"semantic": FACTS, "working": WORKING, "episodic": EPISODES, "turns": TURNS}
ORDERS: dict[Tier, tuple[str, ...]] = {
    "semantic": ("reinforcement_count", "recorded_at"),
    "episodic": ("importance", "occurred_at"),
}
"""Orders of a read without a cue: the most important records and the newest records, up to the pool size for each. Both
are needed: in a new memory no record is reinforced yet, and in an old memory the best records are not among the
newest."""
NOBODY = ""
"""Result of `_one_of` when no message has one of the names. The name of a speaker is never empty."""
LEXICAL_EMBEDDER = "hashing"
"""The embedder whose cosine similarities compare words, not meanings."""
SPEAKER_SHARE = 0.25
EMBEDDER_SHARE = 0.5
"""The embedder's share of the patience. All searches wait for its answer; searches by words work without it."""

SEARCH_SHARE = 0.75
"""The searches' share of the patience. A silent search leaves time for later steps: the reranker, and the check of
believed episodes."""
FORGOTTEN_SHARE = 0.8
"""The share until which the forgotten facts of the found messages are read, after the search."""

Vector = Sequence[float]


@dataclass(slots=True)
class Pool:
    """The candidates of a tier, without duplicates."""

    payloads: dict[str, Payload] = field(default_factory=dict)
    fused: Mapping[str, float] | None = None
    """The ids of the candidates in the ranked lists, each with its match, best first. None when no ranked list was
    requested. A candidate that was deleted after the search has no entry in `payloads`."""
    lists: Sequence[RankedList] = ()
    preferred: frozenset[str] = frozenset()
    """Messages of the speaker named in the cue."""
    similarity: Mapping[str, float] = field(default_factory=dict)
    """The cosine similarity of candidates with the cue, for candidates found by meaning."""

    def take(self, found: Sequence[StoredPoint]) -> None:
        for each in found:
            self.payloads.setdefault(each.id, each.payload)


class MemorySearch:
    """The searches of one read. Create a new instance per read."""

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
        messages: int,
        named: CueTime | None = None,
    ) -> None:
        """`collections`: the existing collections to read; a tier without its collection is empty. `parts` records
        unanswered parts. `messages`: number of the best messages to read. `named`: the time that the cue names."""
        self._store = store
        self._embedder = embedder
        self._policy = policy
        self._request = request
        self._parts = parts
        self._messages = messages
        self.named = named
        wheres = {tier: where(tier, request, now=now) for tier in TIERS if COLLECTION_OF[tier] in collections}
        self._where = {tier: condition for tier, condition in wheres.items() if condition is not None}
        self._pools: dict[Tier, Pool] = {tier: Pool() for tier in self._where}
        self._fields = COMPOSITE_FIELDS if policy.profile == "composite" else FIELDS
        self._linked = LINKS in collections
        self._compares_words = False
        """True when the cue was embedded by an embedder that compares words."""
        self.links: Sequence[Links] = ()
        """The co-recall links of all owners whose memory is read, if links are used. Set by `run`."""
        self._has_facts = FACTS in collections
        self.forgotten: Quotes = {}
        """The quotes of forgotten facts in the turns of the found messages. Set by `run` when messages are searched."""
        self.other_names = ""
        """The other names of the subjects that the cue names, which are searched and compared, too. Set by `run`."""
        self.as_speaker: str | None = None
        """The cue as the speaker named in it would write it: "my" instead of "Ann's". None when the cue names no known
        speaker. Set by `run`."""

    async def run(self) -> dict[Tier, Pool]:
        """Run all searches and return the candidates by tier. Raises Fatal when an invariant is broken."""
        try:
            async with asyncio.TaskGroup() as group:
                if self._linked:
                    group.create_task(self._links())
                if "working" in self._where:
                    group.create_task(self._all_working())
                if (cue := self._request.search_text) is not None:
                    group.create_task(self._for_cue(cue))
                else:
                    for tier in self._where:
                        for order in ORDERS.get(tier, ()):
                            group.create_task(self._ordered(tier, order))
        except ExceptionGroup as failed:  # one or more searches found a broken invariant
            raise _first(failed) from failed
        return self._pools

    async def _links(self) -> None:
        self.links = await load_links(store=self._store, request=self._request, parts=self._parts)

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
                fields=self._fields["working"],
            ),
            share=SEARCH_SHARE,
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
                fields=self._fields[tier],
            ),
            share=SEARCH_SHARE,
        )
        self._pools[tier].take(found or ())

    # -------------------------------------------------------------------------------------------- for a cue
    async def _for_cue(self, cue: str) -> None:
        """Search by the cue: find the speaker that the cue names, embed the cue, then search every tier."""
        tiers = [tier for tier in self._where if tier != "working"]
        if not tiers:
            return
        cues = dict.fromkeys(tiers, _TierCue(cue, cue))
        if "turns" in tiers and (named := await self._speaker(cue)) is not None:
            self.as_speaker = named.first_person
            cues["turns"] = _TierCue(named.first_person, named.without_name, named.names)
        vectors, self.other_names = await asyncio.gather(
            self._embedded(list(dict.fromkeys(each.meaning for each in cues.values()))), self._other_names(cue)
        )
        cues = {tier: each.with_words(self.other_names) for tier, each in cues.items()}
        self._compares_words = bool(vectors) and not compares_meanings(self._embedder)
        async with asyncio.TaskGroup() as group:
            for tier, each in cues.items():
                group.create_task(self._search(tier, each, vectors.get(each.meaning)))

    async def _other_names(self, cue: str) -> str:
        if not self._has_facts:
            return ""
        return await other_names(cue, self._request, store=self._store, parts=self._parts)

    async def _speaker(self, cue: str) -> Speaker | None:
        """Return the speaker named in the cue, or None unless exactly one speaker of the owner's messages matches. When
        the cue contains no possible name, the store is not asked."""
        possible = possible_names(cue) if self._policy.fused.speaker > 0 else ()
        known = await self._one_of(possible)
        if not known:
            return None
        others = tuple(name for name in possible if not same_name(name, known))
        if await self._one_of(others) != NOBODY:
            return None
        return find_speaker(cue, [name for name in possible if same_name(name, known)])

    async def _one_of(self, names: Sequence[str]) -> str | None:
        """Return one of these names that is the speaker of a message, or `NOBODY` if no name is a speaker's.

        Return None when the store did not answer.
        """
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
        """Embed the texts. Return an empty dict when the embedder does not answer."""
        if self._policy.fused.dense == self._policy.fused.windowed == 0:
            return {}
        vectors = await self._parts.ask(
            "embedder",
            lambda: self._embedder.embed(texts, tenant_id=self._request.tenant_id),
            share=EMBEDDER_SHARE,
        )
        return dict(zip(texts, vectors, strict=True)) if vectors is not None else {}

    async def _search(self, tier: Tier, cue: _TierCue, vector: Vector | None) -> None:
        rankings = _rankings(tier, cue, vector, self._fusion_of(tier))
        if not rankings:
            return
        first, *others = rankings
        found = await self._parts.ask(
            f"{tier}.{first}",
            lambda: self._candidates(tier, rankings, cue.names),
            also=[f"{tier}.{each}" for each in others],
            share=SEARCH_SHARE,
        )
        if found is not None:
            self._pools[tier] = found
            if tier == "turns":
                await self._forgotten()

    async def _forgotten(self) -> None:
        turns = {turn_of(each) for each in self._pools["turns"].payloads.values()}
        if not turns or not self._has_facts:
            return
        found = await self._parts.ask(
            "turns.forgotten",
            lambda: self._store.select(
                FACTS,
                tenant_id=self._request.tenant_id,
                where=forgotten_of(self._request.owner_keys, turns),
                fields=FORGOTTEN_FIELDS,
            ),
            share=FORGOTTEN_SHARE,
        )
        self.forgotten = quotes_in(found or (), self._request.message_user)

    async def _candidates(self, tier: Tier, rankings: Mapping[ListName, Ranking], names: Collection[str]) -> Pool:
        """Search the tier. When the cue names a time, the records of that time are searched once more on their own, so
        that they are found, and match better. A time without records changes no match."""
        collection, condition = self._place(tier)
        fields, most = self._fields[tier], self._messages if tier == "turns" else self._policy.pool
        wheres = [condition] if self.named is None else [condition, in_time(tier, condition, self.named)]
        searches = await asyncio.gather(
            *(
                self._store.search(
                    collection,
                    tenant_id=self._request.tenant_id,
                    rankings=list(rankings.values()),
                    where=each,
                    limit=self._policy.pool,
                )
                for each in wheres
            )
        )
        filled = [search for search in searches if search is searches[0] or any(search)]
        answers = [(name, found) for search in filled for name, found in zip(rankings, search, strict=True)]
        lists = [RankedList(name, [each.id for each in found]) for name, found in answers]
        preferred = await self._said_by(names, lists) if names else frozenset[str]()
        fused = fuse(lists, policy=self._fusion_of(tier), pool=most, preferred=preferred)
        rows = await self._rows(tier, list(fused), condition, fields)
        near = [each for name, found in answers if name == "dense" for each in found]
        return Pool(
            {each.id: each.payload for each in rows},
            fused,
            lists,
            preferred,
            {each.id: each.score for each in near},
        )

    def _fusion_of(self, tier: Tier) -> FusionPolicy:
        """Return the weights for a tier. Where the embedder compares words, the search by words has the neighbours'
        words already. So messages are not searched by their windows, and that weight goes to the search by words."""
        fusion = self._policy.fused
        if tier != "turns" or not self._compares_words:
            return fusion
        return replace(fusion, windowed=0.0, lexical=fusion.lexical + fusion.windowed)

    async def _said_by(self, names: Collection[str], lists: Sequence[RankedList]) -> frozenset[str]:
        """Return the ids of the found messages whose speaker has one of these names."""
        found = list(dict.fromkeys(identity for each in lists for identity in each.ids))
        rows = await self._rows("turns", found, said_by(sorted(names), self._where["turns"]), ())
        return frozenset(each.id for each in rows)

    async def _rows(
        self, tier: Tier, identities: Sequence[str], condition: models.Filter, fields: Sequence[str]
    ) -> Sequence[StoredPoint]:
        """Read records by id. The condition is applied again, because a record may have changed since the search."""
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
class _TierCue:
    """A cue in the form used for one tier."""

    meaning: str
    """The text to embed."""
    words: str
    names: frozenset[str] = frozenset()
    """Names of the speaker whose messages are preferred."""

    def with_words(self, more: str) -> _TierCue:
        """Return the cue with more words to search."""
        return replace(self, words=f"{self.words} {more}") if more else self


def compares_meanings(embedder: Embedder) -> bool:
    """Return False for the embedder whose vectors compare words."""
    return embedder.identity.name.partition(":")[0] != LEXICAL_EMBEDDER


def _rankings(tier: Tier, cue: _TierCue, vector: Vector | None, policy: FusionPolicy) -> dict[ListName, Ranking]:
    """Return the rankings that the collection of a tier supports and whose weight in the policy is above 0."""
    rankings: dict[ListName, Ranking] = {}
    if vector is not None and policy.dense > 0:
        rankings["dense"] = DenseRanking(vector)
    if vector is not None and policy.windowed > 0 and tier == "turns":
        rankings["windowed"] = DenseRanking(vector, "window")
    if policy.lexical > 0:
        rankings["lexical"] = LexicalRanking(cue.words)
    return rankings


def _first(failed: BaseExceptionGroup) -> BaseException:
    """Return the first exception of a group, which may contain nested groups."""
    first = failed.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def uses_links(request: RecallRequest, policy: RecallPolicy) -> bool:
    """Return whether links can raise a score. Without a cue, no record activates another record. Links have no history,
    so a read with `known_at` ignores them."""
    return policy.links > 0 and request.search_text is not None and request.known_at is None


async def load_links(*, store: VectorStore, request: RecallRequest, parts: DeadlineReads) -> tuple[Links, ...]:
    """Load the co-recall links of every requested owner. Each owner has one stored point with all links. When the store
    does not answer, `links` is a missing part."""
    named = [links_id(owner_key) for owner_key in request.owner_keys]
    found = await parts.ask(PART, lambda: store.get(LINKS, tenant_id=request.tenant_id, ids=named), share=SEARCH_SHARE)
    return tuple(Links(packed=StoredLinks.from_payload(each.payload).packed) for each in (found or {}).values())
