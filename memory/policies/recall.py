"""Policies of recall: fusion, ranking and limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, Literal

from .checks import above_zero, at_least, between, one_of, require, unit

RankingProfile = Literal["memstream", "classic", "composite"]
RerankerName = Literal["rrf", "late", "cross-encoder", "model"]
LIMIT_MAX: Final = 100
"""Items of an answer, at most."""
ToolStrategy = Literal["ranked", "model"]


@dataclass(frozen=True, slots=True)
class FusionPolicy:
    """How ranked lists are merged: Reciprocal Rank Fusion, rrf = sum of weight / (k + rank), ranks from 0.

    Source: Cormack, Clarke, Büttcher 2009, whose k = 60 counts ranks from 1.
    """

    k: float = 10.0
    """k of Reciprocal Rank Fusion."""
    dense: float = 1.0
    """Weight of the vectors."""
    windowed: float = 1.0
    """Weight of the vectors of messages with their neighbours."""
    lexical: float = 2.0
    """Weight of the words. A list of weight 0 is not asked for."""
    speaker: float = 0.3
    """What messages of a speaker whom the cue names get on top, as a share of the greatest rrf; 0: nothing."""

    def __post_init__(self) -> None:
        above_zero("fusion.k", self.k)
        for name in ("dense", "windowed", "lexical", "speaker"):
            at_least(f"fusion.{name}", getattr(self, name), 0)
        require(self.dense + self.lexical > 0, "fusion.dense and fusion.lexical must not both be 0")


CLASSIC_FUSION = FusionPolicy(k=60.0, dense=1.0, windowed=1.0, lexical=1.0, speaker=0.0)


@dataclass(frozen=True, slots=True)
class CompositePolicy:
    """The weights of the profile `composite`, one for each part of the score. Their sum is 1."""

    similarity: float = 0.35
    """Weight of the match. The weights add up to 1."""
    strength: float = 0.25
    """Weight of strength."""
    recency: float = 0.10
    """Weight of recency."""
    emotion: float = 0.15
    """Weight of emotion."""
    links: float = 0.10
    """Weight of links."""
    importance: float = 0.05
    """Weight of importance."""
    recency_half_life_hours: float = 24.0
    """Half-life of recency, in hours."""

    def __post_init__(self) -> None:
        weights = [getattr(self, name) for name in self.__dataclass_fields__ if name != "recency_half_life_hours"]
        for weight in weights:
            unit("composite weight", weight)
        require(math.isclose(sum(weights), 1.0), f"composite weights must add up to 1, not {sum(weights)}")
        above_zero("composite.recency_half_life_hours", self.recency_half_life_hours)


@dataclass(frozen=True, slots=True)
class RecallToolPolicy:
    """How the tool `recall` finds its answer. All but `strategy` bounds the strategy `model`."""

    strategy: ToolStrategy = "ranked"
    """Who chooses the answer of the tool `recall`: `ranked` (the score) or `model` (one call a read)."""
    facts: int = 200
    """Facts that the model is shown, at most 1 000. Those that rank lowest for the query are left out."""
    episodes: int = 30
    """Episodes that it is shown, at most 200."""
    messages: int = 5
    """Messages that it is shown, at most 50. Each contains the query as a phrase."""
    characters: int = 40_000
    """Characters of all that it is shown. What ranks lowest for the query is left out."""
    patience: float = 10.0
    """Seconds that the tool waits for the model. Then the answer is ranked."""

    def __post_init__(self) -> None:
        one_of("tool.strategy", self.strategy, ToolStrategy)
        between("tool.facts", self.facts, 1, 1_000)
        between("tool.episodes", self.episodes, 0, 200)
        between("tool.messages", self.messages, 0, 50)
        between("tool.characters", self.characters, 1_000, 1_000_000)
        above_zero("tool.patience", self.patience)


@dataclass(frozen=True, slots=True)
class RecallPolicy:
    """What a read searches, how it ranks results, and how long each part may take."""

    profile: RankingProfile = "memstream"
    """How scores are made: `memstream`, `classic` or `composite`."""
    fusion: FusionPolicy = field(default_factory=FusionPolicy)
    """Of the profiles memstream and composite."""
    composite: CompositePolicy = field(default_factory=CompositePolicy)
    pool: int = 100
    """Candidates of one search."""
    limit: int = 10
    """Items of an answer, at most 100."""
    semantic_match: float = 0.4
    """Share of the match in a fact's score."""
    working_match: float = 0.2
    """Share of the match in a working entry's score."""
    episodic_match: float = 0.3
    """Share of the match in an episode's score."""
    fit: float = 1.2
    """What an episode or a working entry gets on top that fits the cue better than all others do. Others get less."""
    fact_fit: float = 1.6
    """The same for a fact: it says what holds, an episode what was said."""
    asks: float = 0.5
    """Share of the score that a message loses which only asks."""
    reinforcements: int = 10
    """Reinforcements from which a fact's reinforcement counts in full."""
    confidence_half_life_days: float = 180.0
    """Half-life of a fact's confidence, in days."""
    recency_half_life_days: float = 7.0
    """Half-life of recency, in days."""
    stability_days: float = 14.0
    """Stability of strength (Ebbinghaus 1885) in days, where a record has none of its own."""
    stability_growth: float = 1.5
    """Factor by which each recall raises it."""
    duplicate_overlap: float = 0.6
    """An item goes when more than this share of its words stands in an item of a higher tier."""
    patience: float = 2.0
    """Seconds that one part of a read may take, from the read's start."""
    reranker: RerankerName = "rrf"
    """Who orders what was found: `rrf` (fusion alone), `late`, `cross-encoder` or `model`."""
    rerank_pool: int = 30
    """Candidates that the reranker is shown, at most 100."""
    cross_encoder: str = "Xenova/ms-marco-MiniLM-L-6-v2"
    """Name or folder of the reranker `cross-encoder`."""
    late_encoder: str = "sentence-transformers/all-MiniLM-L6-v2"
    """Name or folder of the sentence encoder whose token vectors the reranker `late` compares."""
    tool: RecallToolPolicy = field(default_factory=RecallToolPolicy)

    def __post_init__(self) -> None:
        one_of("recall.profile", self.profile, RankingProfile)
        one_of("recall.reranker", self.reranker, RerankerName)
        between("recall.rerank_pool", self.rerank_pool, 1, 100)
        for name in ("cross_encoder", "late_encoder"):
            require(bool(getattr(self, name).strip()), f"recall.{name} must name a model or a folder")
        for name in ("semantic_match", "working_match", "episodic_match", "asks", "duplicate_overlap"):
            unit(f"recall.{name}", getattr(self, name))
        at_least("recall.fit", self.fit, 0)
        at_least("recall.fact_fit", self.fact_fit, 0)
        between("recall.pool", self.pool, 1, 1_000)
        between("recall.limit", self.limit, 1, LIMIT_MAX)
        at_least("recall.reinforcements", self.reinforcements, 1)
        for name in ("confidence_half_life_days", "recency_half_life_days", "stability_days", "patience"):
            above_zero(f"recall.{name}", getattr(self, name))
        at_least("recall.stability_growth", self.stability_growth, 1)

    @property
    def links(self) -> float:
        """The weight of links in the chosen profile; 0: links are not read."""
        return self.composite.links if self.profile == "composite" else 0.0

    @property
    def fused(self) -> FusionPolicy:
        """The fusion policy of the chosen profile."""
        return CLASSIC_FUSION if self.profile == "classic" else self.fusion
