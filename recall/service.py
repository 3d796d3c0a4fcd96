"""Recall: ranked items from all tiers, with an explanation of each score and the parts that did not answer.

filter   the visible records                                filters.py
search   all tiers concurrently, each with a deadline       search.py
fuse     the ranked lists of a tier into one match          memory/recall/fusion.py
link     activation between candidates (only `composite`)   memory/recall/links.py
fit      how well candidates of all tiers fit the cue       memory/recall/cue_fit.py
rank     a score from match, fit and the stored values      memory/recall/ranking.py
rerank   the best candidates by a reranker, if configured   adapters/rerankers/, llm_reranker.py
select   the best of all tiers, without duplicates          memory/recall/selection.py
check    remove episodes whose fact is not believed         belief_filter.py
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import NamedTuple, Protocol, TypeVar

import structlog

from ..adapters.ports import Embedder, Payload, RerankCandidate, Reranker, VectorStore
from ..memory.facts.similarity import overlap, words
from ..memory.language.identification import pack_of
from ..memory.language.locales import locales
from ..memory.language.questions import only_asks
from ..memory.policies import RecallPolicy, TiersPolicy
from ..memory.policies.recall import RankingProfile
from ..memory.recall.cue_fit import fits
from ..memory.recall.cue_times import CueTime, find_cue_time
from ..memory.recall.event_times import read_event_clause
from ..memory.recall.fusion import Rank, RankedList, ranks_in
from ..memory.recall.links import activation
from ..memory.recall.ranking import (
    Score,
    greatest_score,
    score_composite,
    score_trace,
    weigh_fit,
    weigh_question,
    weigh_reply,
    weigh_time,
)
from ..memory.recall.selection import OmissionReason, ScoredMemory, choose, sort_by_score, why_left_out
from ..schemas.collections import FACTS, LINKS
from ..schemas.facts import Trust
from ..schemas.recall import RecalledItem, Tier
from ..schemas.turns import Sensitivity
from .belief_filter import find_disbelieved
from .collection_cache import CollectionCache
from .deadline import DeadlineReads, UnansweredPart
from .event_search import find_event_time
from .forgotten_messages import FIELDS as QUOTES
from .forgotten_messages import Quotes, is_quoted, only_asks_to_forget, others_of, quotes_in, turn_of
from .payloads import MemorySource, content_of, fit_text_of, impression_of, subject_of, times_of, told_of, trace_of
from .request import RecallRequest
from .search import COLLECTION_OF, MemorySearch, Pool, compares_meanings, uses_links
from .subject_names import with_all_names

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    """One item with its explanation. The parts of the score are in `item`."""

    item: RecalledItem
    match: float
    """How well the item fits the cue, 0 to 1."""
    ranks: tuple[Rank, ...]
    """The item's rank in each search, counted from 0."""
    reranked: int | None
    """The item's rank in the order of the reranker, counted from 0, or None when no reranker ran."""
    sources: tuple[MemorySource, ...]
    """Provenance: the source turns of the memory."""
    sensitivity: Sensitivity
    role: str | None
    """Speaker role of a message."""
    archived_at: datetime | None = None
    """For an episode with a gist: the time at which its original text was archived."""
    since: datetime | None = None
    """For a fact: its start time, if the speaker stated it."""
    confirmed: datetime | None = None
    """For a fact: the time at which it was last said or confirmed."""
    at: datetime | None = None
    """For a fact: the time at which it was recorded. For an episode or a message: the time at which it happened or was
    said."""
    approved: bool = False
    """True for a fact that is an instruction approved by a person."""
    needs_own_word: bool = False
    """True for an episode in which a tool, not the person, states the person's preference or attribute. The
    episode is left out of every context."""
    trust: Trust = "user"
    """Origin of a fact, an episode or a working entry."""
    name: str | None = None
    """Speaker name of a message."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A candidate that is not in the answer."""

    memory: RecalledMemory
    reason: OmissionReason
    other_id: str | None = None
    """For a duplicate: the item of the answer that says the same."""


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The answer, best items first. When `missing` is not empty, the answer may be incomplete."""

    items: tuple[RecalledMemory, ...]
    missing: tuple[UnansweredPart, ...]
    silent: bool = False
    """True when every part of memory that was read failed."""
    left_out: tuple[LeftOut, ...] = ()
    """For a request with `explain`: the best candidates that are not in the answer, best first."""
    further: int = 0
    """For a request with `explain`: the number of candidates that are neither in `items` nor in `left_out`."""


class RecallPort(Protocol):
    """The port that callers use. `RecallService` implements it; wrappers add tenant policies, groups or events."""

    async def recall(self, request: RecallRequest, *, now: datetime) -> RecallResult: ...


Key = tuple[Tier, str]
Pick = Callable[[Sequence[ScoredMemory]], tuple[ScoredMemory, ...]]
"""Function that selects from candidates in the order of `sort_by_score`. It keeps this order."""
RERANKER_SHARE = 0.9
"""Share of the patience after which the reranker is abandoned, to leave time for the check of believed episodes."""
MESSAGES_MIN = 30
MESSAGES_A_PLACE = 3
"""Number of the best messages to read: at least `MESSAGES_MIN`, and `MESSAGES_A_PLACE` per item of the answer. Some
messages are dropped, because they only ask a question, are old, or repeat a fact of the answer. Further messages
replace them."""
LEFT_OUT_MAX = 50
"""Maximum number of candidates that an explained answer lists besides its items."""
BEHIND = 32
"""Number of further episodes to check in one request after an episode of the answer was removed."""


class _Found(NamedTuple):
    """A candidate during ranking."""

    payload: Payload
    content: str
    """The result of `content_of` for the payload, computed once for all steps."""
    match: float
    lists: Sequence[RankedList]
    """The ranked lists of the candidate's tier."""
    similarity: float | None = None
    """The cosine similarity with the cue, if the search by meaning found the candidate."""
    by_speaker: bool = False
    """True for a message of the speaker named in the cue."""
    reranked: int | None = None


class RecallService:
    """The recall service. One instance serves concurrent reads."""

    def __init__(
        self,
        *,
        store: VectorStore,
        embedder: Embedder,
        policy: RecallPolicy,
        reranker: Reranker | None = None,
        locale: str = "en",
    ) -> None:
        """A missing collection counts as empty. Without a reranker, Reciprocal Rank Fusion alone orders the candidates
        of a tier. `locale` selects the language packs for cues and messages, like the setting `memory.conflict.locale`.
        """
        self._store = store
        self._embedder = embedder
        self._existing = CollectionCache(store=store)
        self._policy = policy
        self._reranker = reranker
        self._locale = locale
        self._packs = locales(locale)

    async def recall(self, request: RecallRequest, *, now: datetime) -> RecallResult:
        """Answer a recall. Slow and failed parts are listed in the answer. Raises Fatal for a broken invariant."""

        def best(ordered: Sequence[ScoredMemory]) -> tuple[ScoredMemory, ...]:
            return choose(ordered, limit=request.limit, tiers=len(request.tiers), policy=self._policy)

        if (ranked := self._ranked_by(request.profile)) is not self:
            return await ranked.recall(request, now=now)
        shown = 1 if self._reranker is None else self._policy.rerank_pool
        messages = max(MESSAGES_MIN, MESSAGES_A_PLACE * request.limit, shown)
        return await self._read(request, best, self._reranker, now, messages=messages)

    async def shortlist(self, request: RecallRequest, pick: Pick, *, now: datetime) -> RecallResult:
        """Return the candidates that `pick` selects, independent of the request's limit. The steps are the same as in
        `recall`, without the reranker."""
        ranked = self._ranked_by(request.profile)
        return await ranked._read(request, pick, None, now, messages=self._policy.pool)

    def _ranked_by(self, profile: RankingProfile | None) -> RecallService:
        """Return this service, or one with the same policy except its profile."""
        if profile in (None, self._policy.profile):
            return self
        return RecallService(
            store=self._store,
            embedder=self._embedder,
            policy=replace(self._policy, profile=profile),
            reranker=self._reranker,
            locale=self._locale,
        )

    # -------------------------------------------------------------------------------------------- steps
    async def _read(
        self, request: RecallRequest, pick: Pick, reranker: Reranker | None, now: datetime, *, messages: int
    ) -> RecallResult:
        parts = DeadlineReads(patience=self._policy.patience)
        helping = (LINKS,) if uses_links(request, self._policy) else ()
        collections = await self._existing.of((*COLLECTION_OF.values(), *helping))
        time = await self._event_time(request, now, parts, collections) or self._named_time(request, now)
        if FACTS in collections:
            request = await with_all_names(request, store=self._store, parts=parts)
        searching = MemorySearch(
            store=self._store,
            embedder=self._embedder,
            collections=collections,
            policy=self._policy,
            request=request,
            now=now,
            parts=parts,
            messages=min(messages, self._policy.pool),
            named=time,
        )
        found = dict(self._found(await searching.run(), request))
        found = await self._remembered(found, searching.forgotten, parts, request)
        if request.search_text is not None and reranker is not None and found:
            found = await self._reranked(found, searching, request.search_text, reranker, parts, request, now)
        scored = self._scored(found, searching, request, now)
        greatest = greatest_score(request.tiers, self._policy, cue=request.search_text is not None)
        all_scored = scored
        if request.min_score > 0:
            least = request.min_score * greatest
            scored = [each for each in scored if each.score.total >= least and self._meets_cue(each, found)]
        chosen, gone = await self._believed(scored, found, parts, request, now, pick, facts=FACTS in collections)
        if parts.missing:
            log.warning("recall_incomplete", missing=[each.part for each in parts.missing])
        items = tuple(_recollection(each, found[each.tier, each.id], greatest) for each in chosen)
        if not request.explain:
            return RecallResult(items, parts.missing, parts.silent)
        omitted = self._omitted(all_scored, scored, chosen, gone, request, least=request.min_score * greatest)
        left_out = tuple(
            LeftOut(_recollection(each, found[each.tier, each.id], greatest), reason, other)
            for each, reason, other in omitted[:LEFT_OUT_MAX]
        )
        return RecallResult(items, parts.missing, parts.silent, left_out, max(0, len(omitted) - LEFT_OUT_MAX))

    async def _remembered(
        self, found: dict[Key, _Found], forgotten: Quotes, parts: DeadlineReads, request: RecallRequest
    ) -> dict[Key, _Found]:
        """Return the candidates without messages that only say what was forgotten, and without requests to forget.

        A message that another fact was learnt from stays.
        """
        messages = {key: each for key, each in found.items() if key[0] == "turns"}
        gone = {key for key, each in messages.items() if only_asks_to_forget(each.payload, each.content)}
        said = {key for key, each in messages.items() if is_quoted(each.payload, each.content, forgotten)} - gone
        if said:
            turns = [turn_of(found[key].payload) for key in said]
            others = await parts.ask(
                "turns.others",
                lambda: self._store.select(
                    FACTS, tenant_id=request.tenant_id, where=others_of(request.owner_keys, turns), fields=QUOTES
                ),
            )
            quotes = quotes_in(others or (), request.message_user)
            gone |= {key for key in said if not is_quoted(found[key].payload, found[key].content, quotes)}
        return {key: each for key, each in found.items() if key not in gone} if gone else found

    async def _reranked(
        self,
        found: Mapping[Key, _Found],
        searched: MemorySearch,
        cue: str,
        reranker: Reranker,
        parts: DeadlineReads,
        request: RecallRequest,
        now: datetime,
    ) -> dict[Key, _Found]:
        """Return the candidates with the reranker's order, or unchanged when the reranker does not answer in time."""
        ordered = [(each.tier, each.id) for each in sort_by_score(self._scored(found, searched, request, now))]
        best = [(tier, found[tier, identity]) for tier, identity in ordered[: self._policy.rerank_pool]]
        shown = [RerankCandidate(tier, each.content, subject_of(each.payload), each.by_speaker) for tier, each in best]
        order = await parts.ask(
            "reranker",
            lambda: reranker.rerank(cue, shown, tenant_id=request.tenant_id, as_speaker=searched.as_speaker),
            share=RERANKER_SHARE,
        )
        if order is None:
            return dict(found)
        k = self._policy.fused.k
        return {
            key: found[key]._replace(match=match_at(rank, k=k), reranked=rank)
            for rank, key in enumerate(reordered(ordered, order))
        }

    async def _believed(
        self,
        scored: Sequence[ScoredMemory],
        found: Mapping[Key, _Found],
        parts: DeadlineReads,
        request: RecallRequest,
        now: datetime,
        pick: Pick,
        *,
        facts: bool,
    ) -> tuple[tuple[ScoredMemory, ...], frozenset[Key]]:
        """Select the answer and remove episodes that are not believed. Return both. `facts` is False when there is no
        collection of facts; then nothing is checked.

        With `request.settled`, working entries are checked, too. Each round checks the unchecked records of the answer.
        After a removal, a round also checks `BEHIND` further candidates, so that a memory with many removed episodes
        needs few rounds.
        """
        checked: tuple[Tier, ...] = ("episodic", "working") if request.settled else ("episodic",)
        left, seen, behind, removed = sort_by_score(scored), frozenset[Key](), 0, frozenset[Key]()
        while True:
            chosen = pick(left)
            asked = [key for each in chosen if _is_open(key := (each.tier, each.id), checked, seen)]
            if not facts or not asked:
                return chosen, removed
            others = (key for each in left if _is_open(key := (each.tier, each.id), checked, seen) and key not in asked)
            keys = [*asked, *islice(others, behind)]
            gone = await parts.ask(
                "episodic.standing",
                lambda these=keys: find_disbelieved(  # type: ignore[misc]
                    {key: found[key].payload for key in these},
                    store=self._store,
                    request=request,
                    now=now,
                    policy=self._policy,
                ),
            )
            if not gone:
                return chosen, removed
            seen, behind, removed = seen | frozenset(keys), BEHIND, removed | gone
            left = [each for each in left if (each.tier, each.id) not in gone]

    def _scored(
        self, found: Mapping[Key, _Found], searched: MemorySearch, request: RecallRequest, now: datetime
    ) -> list[ScoredMemory]:
        links, named = searched.links, searched.named
        lifted = activation(links, {identity: each.match for (_, identity), each in found.items()}) if links else {}
        fit = self._fits(found, request, searched.other_names)
        scored = []
        for key, each in found.items():  # hot loop: hundreds of candidates
            tier, identity = key
            score = self._score(tier, each, lifted.get(identity, 0.0), fit.get(key), request, now)
            if named is not None and (times := times_of(tier, each.payload)):
                score = weigh_time(score, max(map(named.closeness, times)))
            scored.append(ScoredMemory(tier, identity, each.content, score, subject_of(each.payload)))
        return scored

    def _omitted(
        self,
        every: Sequence[ScoredMemory],
        eligible: Sequence[ScoredMemory],
        chosen: Sequence[ScoredMemory],
        gone: Collection[Key],
        request: RecallRequest,
        *,
        least: float,
    ) -> list[tuple[ScoredMemory, OmissionReason, str | None]]:
        """Return the candidates that are not in the answer, best first, with the reasons. `eligible` are the candidates
        that passed the minimum score."""
        passed = {(each.tier, each.id) for each in eligible}
        reasons: dict[Key, tuple[OmissionReason, str | None]] = {
            (each.tier, each.id): ("min_score" if each.score.total < least else "no_word", None)
            for each in every
            if (each.tier, each.id) not in passed
        }
        reasons |= dict.fromkeys(gone, ("not_believed", None))
        left = [each for each in eligible if (each.tier, each.id) not in gone]
        tiers = len(request.tiers)
        for each, reason, same in why_left_out(left, chosen, limit=request.limit, tiers=tiers, policy=self._policy):
            reasons[each.tier, each.id] = (reason, None if same is None else same.id)
        ordered = sort_by_score(each for each in every if (each.tier, each.id) in reasons)
        return [(each, *reasons[each.tier, each.id]) for each in ordered]

    async def _event_time(
        self, request: RecallRequest, now: datetime, parts: DeadlineReads, collections: Collection[str]
    ) -> CueTime | None:
        """Return the time that the cue names by an event of the user's life."""
        cue = request.search_text
        clause = None if cue is None or FACTS not in collections else read_event_clause(cue, self._packs)
        if clause is None:
            return None
        return await find_event_time(clause, store=self._store, request=request, now=now, parts=parts)

    def _named_time(self, request: RecallRequest, now: datetime) -> CueTime | None:
        """Return the time that the cue names, seen from the time of the read."""
        cue = request.search_text
        return None if cue is None else find_cue_time(cue, self._packs, now=request.past or now, zone=request.zone)

    def _meets_cue(self, scored: ScoredMemory, found: Mapping[Key, _Found]) -> bool:
        """Return False for a message without a word of the cue when the embedder compares words. Its search by vectors
        also lists messages that share nothing with the cue."""
        lists = [each for each in found[scored.tier, scored.id].lists if each.name == "lexical"]
        if scored.tier != "turns" or compares_meanings(self._embedder) or not lists:
            return True
        return any(scored.id in each.ids for each in lists)

    def _fits(self, found: Mapping[Key, _Found], request: RecallRequest, other_names: str) -> dict[Key, float]:
        """Return how well each statement fits the cue and the other names of its subjects.

        The result is empty without a cue, for messages alone, and for the profile `composite`. After a reranker, its
        order defines the fit.
        """
        cue = request.search_text
        if cue is None or request.tiers == ("turns",) or self._policy.profile == "composite":
            return {}
        if any(each.reranked is not None for each in found.values()):
            return {key: each.match for key, each in found.items()}
        texts = [fit_text_of(tier, each.payload, each.content, each.similarity) for (tier, _), each in found.items()]
        searched = any(each.similarity is not None for each in found.values())
        meanings = searched and compares_meanings(self._embedder)
        pack = pack_of(cue, self._locale)
        wider = f"{cue} {other_names}" if other_names else cue
        return dict(zip(found, fits(wider, texts, pack, meanings=meanings), strict=True))

    def _found(self, pools: Mapping[Tier, Pool], request: RecallRequest) -> Iterator[tuple[Key, _Found]]:
        for tier, pool in pools.items():
            if pool.fused is None:
                yield from _without_index(tier, pool, request.search_text)
                continue
            for identity, match in pool.fused.items():
                if (payload := pool.payloads.get(identity)) is not None:
                    similarity = pool.similarity.get(identity)
                    by_speaker = identity in pool.preferred
                    found = _Found(payload, content_of(payload), match, pool.lists, similarity, by_speaker)
                    yield (tier, identity), found

    def _score(
        self, tier: Tier, found: _Found, links: float, fit: float | None, request: RecallRequest, now: datetime
    ) -> Score:
        score = self._own_score(tier, found, links, request, now)
        if tier == "turns":
            if found.payload.get("role") != "user":
                score = weigh_reply(score, self._policy)
            only_asking = only_asks(found.content, self._packs)
            return weigh_question(score, self._policy) if only_asking else score
        weight = self._policy.fact_fit if tier == "semantic" else self._policy.fit
        return score if fit is None else weigh_fit(score, fit, weight=weight)

    def _own_score(self, tier: Tier, found: _Found, links: float, request: RecallRequest, now: datetime) -> Score:
        """Return the score by the profile's formula, before the weights for fit and for questions."""
        if self._policy.profile == "composite":
            return score_composite(
                impression_of(tier, found.payload, now=now, policy=self._policy),
                match=found.match,
                links=links,
                mood=request.mood,
                now=now,
                policy=self._policy.composite,
            )
        return score_trace(trace_of(tier, found.payload), match=found.match, now=now, policy=self._policy)


def _is_open(key: Key, checked: Collection[Tier], seen: Collection[Key]) -> bool:
    """Return whether a record needs a check: its tier is checked, and it was not checked before."""
    return key[0] in checked and key not in seen


def _without_index(tier: Tier, pool: Pool, cue: str | None) -> Iterator[tuple[Key, _Found]]:
    """Yield candidates without a ranked list. The match is the share of the cue's words in the text, or 0."""
    asked = words(cue) if cue else frozenset[str]()
    for identity, payload in pool.payloads.items():
        content = content_of(payload)
        match = overlap(asked, words(content)) if asked else 0.0
        yield (tier, identity), _Found(payload, content, match, ())


def _recollection(chosen: ScoredMemory, found: _Found, greatest: float) -> RecalledMemory:
    """Return the item of a candidate. `greatest` is the greatest possible sum of parts in this read."""
    told = told_of(chosen.tier, found.payload)
    return RecalledMemory(
        item=RecalledItem(
            tier=chosen.tier,
            id=chosen.id,
            content=chosen.content,
            score=min(1.0, chosen.score.total / greatest),
            subject=told.subject,
            category=told.category,
            parts=dict(chosen.score.parts),
        ),
        match=found.match,
        ranks=ranks_in(found.lists, chosen.id),
        reranked=found.reranked,
        sources=tuple(told.sources),
        sensitivity=told.sensitivity,
        role=told.role,
        archived_at=told.archived_at,
        since=told.since,
        confirmed=told.confirmed,
        at=told.at,
        approved=told.approved,
        needs_own_word=told.needs_own_word,
        trust=told.trust,
        name=told.name,
    )


@dataclass(frozen=True, slots=True)
class TierFilter:
    """`RecallPort` that removes disabled tiers from every request. A disabled tier counts as empty."""

    inner: RecallPort
    tiers: TiersPolicy

    async def recall(self, request: RecallRequest, *, now: datetime) -> RecallResult:
        kept = tuple(tier for tier in request.tiers if self._is_kept(tier))
        if not kept:
            return RecallResult((), ())
        return await self.inner.recall(replace(request, tiers=kept), now=now)

    def _is_kept(self, tier: Tier) -> bool:
        match tier:
            case "semantic" | "episodic":
                return self.tiers.keeps(tier)
            case "working" | "turns":
                return True


T = TypeVar("T")


def reordered(items: Sequence[T], order: Sequence[int]) -> list[T]:
    """Return `items` with the items at the places in `order` first. Invalid and repeated places are skipped."""
    first = [place for place in dict.fromkeys(order) if 0 <= place < len(items)]
    named = frozenset(first)
    return [items[place] for place in (*first, *(place for place in range(len(items)) if place not in named))]


def match_at(rank: int, *, k: float) -> float:
    """Return the match of the item at this rank, counted from 0."""
    return k / (k + rank)
