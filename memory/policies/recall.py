"""Policies of recall: fusion, ranking and limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, Literal

from .checks import above_zero, at_least, between, one_of, require, unit

RankingProfile = Literal["memstream", "classic", "composite"]
RerankerName = Literal["rrf", "late", "cross-encoder", "model"]
LIMIT_MAX: Final = 100
"""Maximum items of an answer."""
ToolStrategy = Literal["ranked", "model"]


@dataclass(frozen=True, slots=True)
class FusionPolicy:
    """The fusion of ranked lists: Reciprocal Rank Fusion, rrf = sum of weight / (k + rank), ranks from 0.

    Source: Cormack, Clarke, Büttcher 2009, whose k = 60 counts ranks from 1.
    """

    k: float = 10.0
    """k of Reciprocal Rank Fusion."""
    dense: float = 1.0
    """Weight of the vector search."""
    windowed: float = 1.0
    """Weight of the vector search over messages with their neighbours."""
    lexical: float = 2.0
    """Weight of the search by words. A search of weight 0 is not made."""
    speaker: float = 0.3
    """Bonus for messages of a speaker whom the cue names, as a share of the greatest rrf; 0: no bonus."""

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
    """The tool `recall`. All values except `strategy` limit the strategy `model`."""

    strategy: ToolStrategy = "ranked"
    """Choice of the answer of the tool `recall`: `ranked` (by score) or `model` (one model call per read)."""
    facts: int = 200
    """Maximum facts that the model is shown, up to 1 000. Facts with a lower rank for the query are left out."""
    episodes: int = 30
    """Maximum episodes that the model is shown, up to 200."""
    messages: int = 5
    """Maximum messages that the model is shown, up to 50. Each contains the query as a phrase."""
    characters: int = 40_000
    """Maximum characters of everything that the model is shown. Items with a lower rank for the query are left out."""
    patience: float = 10.0
    """Seconds that the tool waits for the model. After that the answer is `ranked`."""

    def __post_init__(self) -> None:
        one_of("tool.strategy", self.strategy, ToolStrategy)
        between("tool.facts", self.facts, 1, 1_000)
        between("tool.episodes", self.episodes, 0, 200)
        between("tool.messages", self.messages, 0, 50)
        between("tool.characters", self.characters, 1_000, 1_000_000)
        above_zero("tool.patience", self.patience)


@dataclass(frozen=True, slots=True)
class RecallPolicy:
    """Recall: the search, the ranking and the time limits of a read."""

    profile: RankingProfile = "memstream"
    """Formula of the scores: `memstream`, `classic` or `composite`."""
    fusion: FusionPolicy = field(default_factory=FusionPolicy)
    """Fusion in the profiles `memstream` and `composite`."""
    composite: CompositePolicy = field(default_factory=CompositePolicy)
    pool: int = 100
    """Maximum candidates of one search."""
    limit: int = 10
    """Items of an answer when the caller sets no limit, up to 100."""
    semantic_match: float = 0.4
    """Weight of the match in a fact's score."""
    working_match: float = 0.2
    """Weight of the match in a working entry's score."""
    episodic_match: float = 0.3
    """Weight of the match in an episode's score."""
    fit: float = 1.2
    """Bonus for an episode or a working entry that fits the cue best of all candidates. A weaker fit gets less."""
    fact_fit: float = 1.6
    """The same bonus for a fact. It is higher, because a fact states what is true, and an episode only what somebody
    said."""
    asks: float = 0.5
    """Share of the score that a message loses when the message only asks a question."""
    replies: float = 0.2
    """Share of the score that a message loses when another than the user wrote it."""
    reinforcements: int = 10
    """Number of reinforcements at which the reinforcement of a fact counts in full."""
    confidence_half_life_days: float = 180.0
    """Half-life of a fact's confidence, in days."""
    recency_half_life_days: float = 7.0
    """Half-life of recency, in days."""
    stability_days: float = 14.0
    """Stability of strength in days (Ebbinghaus 1885), for a record without its own stability."""
    stability_growth: float = 1.5
    """Factor by which each recall raises the stability."""
    duplicate_overlap: float = 0.6
    """An item is left out when an item of a higher tier contains more than this share of its words."""
    patience: float = 2.0
    """Maximum seconds of one part of a read, counted from the start of the read."""
    reranker: RerankerName = "rrf"
    """Order of the found items: `rrf` (fusion alone), `late`, `cross-encoder` or `model`."""
    rerank_pool: int = 30
    """Maximum candidates that the reranker is shown, up to 100."""
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
        for name in ("semantic_match", "working_match", "episodic_match", "asks", "replies", "duplicate_overlap"):
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
