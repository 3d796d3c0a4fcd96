"""Recall: a request → ranked items across the tiers, explained, and what is missing. A read: nothing is written.

filter   which records may be seen                     filters.py
search   all searches at once, each with a deadline    searching.py
fuse     the lists of a tier → match                   memory/fusion.py
rank     match and the record → a score of parts       memory/ranking.py
choose   the best of all tiers, none said twice        memory/choosing.py
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

import structlog

from ..adapters.ports import Embedder, Payload, VectorStore
from ..memory.choosing import Scored, choose
from ..memory.fusion import Rank, fuse
from ..memory.policies import RecallPolicy
from ..memory.ranking import Score, composite, overlap, ranked
from ..memory.zones import words
from ..schemas.recalled import RecalledItem, Tier
from ..schemas.turns import Sensitivity
from .request import RecallRequest
from .rows import Source, content_of, impression_of, told_of, trace_of
from .searching import Missing, Pool, Searched, Searching

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Recollection:
    """One item with its explanation: the parts of the score stand in `item`."""

    item: RecalledItem
    match: float
    """How well the cue fits, 0–1."""
    ranks: tuple[Rank, ...]
    """Where each search had it, from 0."""
    sources: tuple[Source, ...]
    """Provenance: the turns that it comes from."""
    sensitivity: Sensitivity
    role: str | None
    """Of a message: who said it."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """Best first. With something missing it is what could be found, not what there is."""

    items: tuple[Recollection, ...]
    missing: tuple[Missing, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    payload: Payload
    match: float
    ranks: tuple[Rank, ...]


class Recall:
    """The read side's service. One instance serves any number of reads at once."""

    def __init__(
        self, *, store: VectorStore, embedder: Embedder, collections: Collection[str], policy: RecallPolicy
    ) -> None:
        """`collections` are those that exist: what was never made holds nothing."""
        self._store = store
        self._embedder = embedder
        self._collections = frozenset(collections)
        self._policy = policy

    async def recall(self, request: RecallRequest, *, now: datetime) -> Recalled:
        """`Fatal` when a broken invariant shows; parts that are slow or away are told in the answer."""
        searched = await Searching(
            store=self._store,
            embedder=self._embedder,
            collections=self._collections,
            policy=self._policy,
            request=request,
            now=now,
        ).run()
        if searched.missing:
            log.warning("recall_incomplete", missing=[each.part for each in searched.missing])
        candidates = dict(self._candidates(searched, request))
        scored = (
            Scored(tier, identity, content_of(each.payload), self._score(tier, each, request, now))
            for (tier, identity), each in candidates.items()
        )
        chosen = choose(scored, limit=request.limit, tiers=len(request.tiers), policy=self._policy)
        items = tuple(_recollection(each, candidates[each.tier, each.id]) for each in chosen)
        return Recalled(items, searched.missing)

    def _candidates(self, searched: Searched, request: RecallRequest) -> Iterator[tuple[tuple[Tier, str], _Candidate]]:
        for tier, pool in searched.pools.items():
            if pool.lists:
                for each in fuse(pool.lists, policy=self._policy.fused, pool=self._policy.pool):
                    yield (tier, each.id), _Candidate(pool.payloads[each.id], each.match, each.ranks)
            else:
                yield from _without_index(tier, pool, request.asked)

    def _score(self, tier: Tier, candidate: _Candidate, request: RecallRequest, now: datetime) -> Score:
        if self._policy.profile == "composite":
            return composite(
                impression_of(tier, candidate.payload, now=now, policy=self._policy),
                match=candidate.match,
                mood=request.mood,
                now=now,
                policy=self._policy.composite,
            )
        return ranked(trace_of(tier, candidate.payload), match=candidate.match, now=now, policy=self._policy)


def _without_index(tier: Tier, pool: Pool, cue: str | None) -> Iterator[tuple[tuple[Tier, str], _Candidate]]:
    """Matched by the share of the cue's words that a text has; 0 without a cue."""
    asked = words(cue) if cue else frozenset[str]()
    for identity, payload in pool.payloads.items():
        match = overlap(asked, words(content_of(payload))) if asked else 0.0
        yield (tier, identity), _Candidate(payload, match, ())


def _recollection(chosen: Scored, candidate: _Candidate) -> Recollection:
    told = told_of(chosen.tier, candidate.payload)
    return Recollection(
        item=RecalledItem(
            tier=chosen.tier,
            id=chosen.id,
            content=chosen.content,
            score=chosen.score.value,
            subject=told.subject,
            category=told.category,
            parts={part.name: part.value for part in chosen.score.parts},
        ),
        match=candidate.match,
        ranks=candidate.ranks,
        sources=tuple(told.sources),
        sensitivity=told.sensitivity,
        role=told.role,
    )
