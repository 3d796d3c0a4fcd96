"""Every number that rules the memory, as frozen types that are checked when they are made (memory-model, all sections).

A policy that contradicts itself raises ValueError at start, never in the middle of a turn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from ..schemas.turns import Role, Scope
from ..schemas.working import ENTRIES_MAX

DecayStrategy = Literal["power-law", "exponential", "none"]


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _unit(name: str, value: float) -> None:
    _require(math.isfinite(value) and 0.0 <= value <= 1.0, f"{name} must lie between 0 and 1, not {value}")


@dataclass(frozen=True, slots=True)
class DecayPolicy:
    """How attention fades by turns. Source: Anderson & Schooler 1991 for the power law of forgetting."""

    strategy: DecayStrategy = "power-law"
    rate: float = 0.5

    def __post_init__(self) -> None:
        _require(
            self.strategy in ("power-law", "exponential", "none"),
            f"decay.strategy must be power-law, exponential or none, not {self.strategy!r}",
        )
        _require(math.isfinite(self.rate) and self.rate >= 0, f"decay.rate must be 0 or more, not {self.rate}")


@dataclass(frozen=True, slots=True)
class WorkingSetPolicy:
    """Size of the working set. Capacity 7: Miller 1956."""

    capacity: int = 7
    max_pinned: int = 2
    decay: DecayPolicy = field(default_factory=DecayPolicy)

    def __post_init__(self) -> None:
        _require(
            1 <= self.capacity <= ENTRIES_MAX,
            f"working.capacity must lie between 1 and {ENTRIES_MAX}, not {self.capacity}",
        )
        _require(
            0 <= self.max_pinned < self.capacity,
            f"working.max_pinned ({self.max_pinned}) must be below working.capacity ({self.capacity})",
        )


@dataclass(frozen=True, slots=True)
class CapturePolicy:
    """What of a turn is shown to the model, and how much may come back."""

    enabled: bool = True
    roles: tuple[Role, ...] = ("user", "assistant")
    threshold: float = 0.4
    """Importance below which an observation stays in the working set."""
    max_per_turn: int = 3
    max_assistant_chars: int = 500
    context_messages: int = 6
    context_tokens: int = 2_000

    def __post_init__(self) -> None:
        _unit("capture.threshold", self.threshold)
        _require(bool(self.roles), "capture.roles must name at least one role")
        _require(1 <= self.max_per_turn <= 64, f"capture.max_per_turn must be 1 to 64, not {self.max_per_turn}")
        for name in ("max_assistant_chars", "context_messages", "context_tokens"):
            _require(getattr(self, name) >= 0, f"capture.{name} must be 0 or more, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class RoutingPolicy:
    """Which observations go beyond the working set, and whose they are."""

    significance: float = 0.6
    """Importance from which a lasting observation is an episode."""
    scope: Scope = "user"
    """`episodic.scope`: the owner of what is learnt when the turn names no scope."""
    episodes_kept: int = 200
    """Per owner; beyond, the oldest that are consolidated go. 0: all are kept."""

    def __post_init__(self) -> None:
        _unit("routing.significance", self.significance)
        _require(self.episodes_kept >= 0, "routing.episodes_kept must be 0 or more")
        _require(self.scope in ("user", "agent", "org", "group"), f"episodic.scope is unknown: {self.scope!r}")


@dataclass(frozen=True, slots=True)
class ConfidencePolicy:
    """How sure we are of a fact, 0–1."""

    permanent: float = 0.8
    persistent: float = 0.7
    assistant_discount: float = 0.2
    tool_discount: float = 0.3
    reinforcement: float = 0.05
    consolidated: float = 0.5
    """Of a consolidated fact for which the model named none."""

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            _unit(f"confidence.{name}", getattr(self, name))


@dataclass(frozen=True, slots=True)
class ConflictPolicy:
    """Similarity zones; they belong to the embedder (memory-model §6). In this version they are told, not acted on."""

    hot: float | None = 0.95
    near_dup: float = 0.85
    conflict_check: float = 0.40
    neighbours: int = 5
    lexical: bool = False
    """True for the hashing embedder: NEAR-DUP by token Jaccard, and there is no HOT."""
    jaccard_near_dup: float = 0.8

    def __post_init__(self) -> None:
        bounds = [self.conflict_check, self.near_dup] + ([] if self.hot is None else [self.hot])
        for bound in [*bounds, self.jaccard_near_dup]:
            _unit("conflict zone", bound)
        _require(bounds == sorted(bounds), "conflict zones must rise: conflict_check, near_dup, hot")
        _require(1 <= self.neighbours <= 100, f"conflict.neighbours must be 1 to 100, not {self.neighbours}")


ConsolidationTrigger = Literal["capture", "manual"]


@dataclass(frozen=True, slots=True)
class ConsolidationPolicy:
    """When episodes become facts, and how much one run reads and proposes."""

    trigger: ConsolidationTrigger = "capture"
    episodes: int = 5
    turns: int = 4
    on_eviction: bool = True
    max_episodes: int = 20
    max_facts: int = 60

    def __post_init__(self) -> None:
        _require(self.trigger in ("capture", "manual"), f"consolidation.trigger is unknown: {self.trigger!r}")
        for name in ("episodes", "turns", "max_episodes"):
            _require(getattr(self, name) >= 1, f"consolidation.{name} must be 1 or more, not {getattr(self, name)}")
        _require(self.max_facts >= 0, f"consolidation.max_facts must be 0 or more, not {self.max_facts}")


@dataclass(frozen=True, slots=True)
class ObservePolicy:
    """When a session's unobserved turns are shown to the model."""

    together: int = 8
    """Turns of a session in one call; 1 = one by one (MEMSTREAM_OBSERVE_TOGETHER)."""
    patience: float = 60.0
    """Seconds that a turn waits for a model that is away before it is deferred; also the pause before the next try."""
    unobserved_tokens: int = 0
    """Observe when this many tokens wait; 0 = every turn at once. A token is taken as 4 characters."""
    round_tokens: int = 8_000
    """Of the turns in one call; a turn that is larger is shown alone."""
    backlog: int = 16
    """Unread events of a partition beyond which its sessions wait for company: two full rounds. With 12 partitions some
    200 turns, three seconds of 64 calls at a time that take a second each."""
    company: float = 600.0
    """Seconds that a turn waits for company at most, however long the backlog lasts."""

    def __post_init__(self) -> None:
        _require(1 <= self.together <= 64, f"observe.together must be 1 to 64, not {self.together}")
        for name in ("patience", "company"):
            seconds = getattr(self, name)
            _require(math.isfinite(seconds) and seconds > 0, f"observe.{name} must be above 0, not {seconds}")
        for name in ("unobserved_tokens", "backlog"):
            _require(getattr(self, name) >= 0, f"observe.{name} must be 0 or more, not {getattr(self, name)}")
        _require(self.round_tokens >= 1, f"observe.round_tokens must be 1 or more, not {self.round_tokens}")


RankingProfile = Literal["memstream", "classic", "composite"]
RerankerName = Literal["rrf", "cross-encoder", "model"]


@dataclass(frozen=True, slots=True)
class FusionPolicy:
    """How ranked lists become one: Reciprocal Rank Fusion, rrf = sum of weight / (k + rank), ranks from 0.

    Source: Cormack, Clarke, Büttcher 2009; whose k = 60 counts ranks from 1.
    """

    k: float = 10.0
    dense: float = 1.0
    windowed: float = 1.0
    """Of the vectors of messages embedded with their neighbours."""
    lexical: float = 2.0
    """A list of weight 0 is not asked for."""
    speaker: float = 0.3
    """What messages of the speaker whom a cue names get besides, as a share of the greatest rrf; 0 = no preference."""

    def __post_init__(self) -> None:
        _require(math.isfinite(self.k) and self.k > 0, f"fusion.k must be above 0, not {self.k}")
        for name in ("dense", "windowed", "lexical", "speaker"):
            weight = getattr(self, name)
            _require(math.isfinite(weight) and weight >= 0, f"fusion.{name} must be 0 or more, not {weight}")
        _require(self.dense + self.lexical > 0, "fusion.dense and fusion.lexical must not both be 0")


CLASSIC_FUSION = FusionPolicy(k=60.0, dense=1.0, windowed=1.0, lexical=1.0, speaker=0.0)


@dataclass(frozen=True, slots=True)
class CompositePolicy:
    """The weights of the profile `composite`, one a part of the score; together 1."""

    similarity: float = 0.35
    strength: float = 0.25
    recency: float = 0.10
    emotion: float = 0.15
    links: float = 0.10
    importance: float = 0.05
    recency_half_life_hours: float = 24.0

    def __post_init__(self) -> None:
        weights = [getattr(self, name) for name in self.__dataclass_fields__ if name != "recency_half_life_hours"]
        for weight in weights:
            _unit("composite weight", weight)
        _require(math.isclose(sum(weights), 1.0), f"composite weights must add up to 1, not {sum(weights)}")
        hours = self.recency_half_life_hours
        _require(math.isfinite(hours) and hours > 0, f"composite.recency_half_life_hours must be above 0, not {hours}")


@dataclass(frozen=True, slots=True)
class RecallPolicy:
    """How memory is read: what is asked for, how it is ranked, how long a part may take."""

    profile: RankingProfile = "memstream"
    fusion: FusionPolicy = field(default_factory=FusionPolicy)
    """Of the profiles memstream and composite."""
    composite: CompositePolicy = field(default_factory=CompositePolicy)
    pool: int = 100
    """Candidates of one search."""
    limit: int = 10
    semantic_match: float = 0.4
    working_match: float = 0.2
    episodic_match: float = 0.3
    reinforcements: int = 10
    """From so many on, a fact's reinforcement counts in full."""
    confidence_half_life_days: float = 180.0
    recency_half_life_days: float = 7.0
    stability_days: float = 14.0
    """Of strength (Ebbinghaus 1885), where a record has none of its own; by `stability_growth` more at each recall."""
    stability_growth: float = 1.5
    duplicate_overlap: float = 0.6
    """An item goes when more than this share of its words stands in one of a higher tier."""
    patience: float = 2.0
    """Seconds that one part of a read may take, from the read's start."""
    reranker: RerankerName = "rrf"
    """Who puts what was found into its last order; `rrf`: nobody, fusion has done it."""
    rerank_pool: int = 30
    """Candidates that it is shown."""
    cross_encoder: str = "Xenova/ms-marco-MiniLM-L-6-v2"
    """Name or folder of the reranker `cross-encoder`."""

    def __post_init__(self) -> None:
        _require(self.profile in ("memstream", "classic", "composite"), f"recall.profile is unknown: {self.profile!r}")
        _require(self.reranker in ("rrf", "cross-encoder", "model"), f"recall.reranker is unknown: {self.reranker!r}")
        _require(1 <= self.rerank_pool <= 100, f"recall.rerank_pool must be 1 to 100, not {self.rerank_pool}")
        _require(bool(self.cross_encoder.strip()), "recall.cross_encoder must name a model or a folder")
        for name in ("semantic_match", "working_match", "episodic_match", "duplicate_overlap"):
            _unit(f"recall.{name}", getattr(self, name))
        _require(1 <= self.pool <= 1_000, f"recall.pool must be 1 to 1000, not {self.pool}")
        _require(1 <= self.limit <= 100, f"recall.limit must be 1 to 100, not {self.limit}")
        _require(self.reinforcements >= 1, f"recall.reinforcements must be 1 or more, not {self.reinforcements}")
        for name in ("confidence_half_life_days", "recency_half_life_days", "stability_days", "patience"):
            value = getattr(self, name)
            _require(math.isfinite(value) and value > 0, f"recall.{name} must be above 0, not {value}")
        growth = self.stability_growth
        _require(math.isfinite(growth) and growth >= 1, f"recall.stability_growth must be 1 or more, not {growth}")

    @property
    def fused(self) -> FusionPolicy:
        """The fusion of the chosen profile."""
        return CLASSIC_FUSION if self.profile == "classic" else self.fusion


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """All of them, as one worker or one tenant has them."""

    working: WorkingSetPolicy = field(default_factory=WorkingSetPolicy)
    capture: CapturePolicy = field(default_factory=CapturePolicy)
    routing: RoutingPolicy = field(default_factory=RoutingPolicy)
    confidence: ConfidencePolicy = field(default_factory=ConfidencePolicy)
    conflict: ConflictPolicy = field(default_factory=ConflictPolicy)
    consolidation: ConsolidationPolicy = field(default_factory=ConsolidationPolicy)
    observe: ObservePolicy = field(default_factory=ObservePolicy)
    recall: RecallPolicy = field(default_factory=RecallPolicy)
