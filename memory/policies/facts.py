"""Policies of facts: confidence, conflicts, consolidation, pruning, digests and sharing."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal

from ...schemas.observations import Category
from ...schemas.turns import Owner, Sensitivity
from ..language.locales import locale
from .checks import above_zero, at_least, between, one_of, require, unit


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
            unit(f"confidence.{name}", getattr(self, name))


@dataclass(frozen=True, slots=True)
class ConflictPolicy:
    """When two statements meet (memory-model §6). The zones of similarity belong to the embedder."""

    hot: float | None = 0.95
    near_dup: float = 0.85
    conflict_check: float = 0.40
    neighbours: int = 5
    lexical: bool = False
    """True for the hashing embedder: NEAR-DUP by token Jaccard, and there is no HOT."""
    jaccard_near_dup: float = 0.8
    locale: str = "en"
    """The pack that statements are taken apart with (memory/locales)."""

    def __post_init__(self) -> None:
        bounds = [self.conflict_check, self.near_dup] + ([] if self.hot is None else [self.hot])
        for bound in [*bounds, self.jaccard_near_dup]:
            unit("conflict zone", bound)
        locale(self.locale)
        require(bounds == sorted(bounds), "conflict zones must rise: conflict_check, near_dup, hot")
        between("conflict.neighbours", self.neighbours, 1, 100)


ConsolidationTrigger = Literal["capture", "schedule", "manual"]


@dataclass(frozen=True, slots=True)
class ConsolidationPolicy:
    """When episodes become facts, and how much one run reads and proposes."""

    trigger: ConsolidationTrigger = "capture"
    """`capture`: after enough of `episodes` and `turns`; `schedule`: `every` so many seconds in which anything came;
    `manual`: by command alone."""
    every: float = 3_600.0
    episodes: int = 5
    turns: int = 4
    on_eviction: bool = True
    notes_tokens: int = 40_000
    """Of what was observed, in place of `episodes`: so many start a run too; 0: none do. A token is taken as 4
    bytes of UTF-8."""
    max_episodes: int = 20
    max_facts: int = 60
    max_pairs: int = 20
    """Pending facts that one run shows the judge."""
    summary_turns: int = 4
    """Turns of a session that no summary has taken, from which one is written; 0: never."""
    summary_tokens: int = 8_000
    """Of the turns that one summary is made of; a larger turn is shown alone."""
    promote_days: float = 7.0
    """Age from which an episode that was recalled often enough is proposed as a fact."""
    promote_recalls: int = 3
    cluster: int = 5
    """Related episodes from which an insight may be drawn; 0: none is looked for."""
    cluster_similarity: float = 0.5
    """Cosine from which two episodes are related."""
    after_run: float = 2.0
    """Seconds after a run until prune, hygiene and digest follow, one after the other: what the run proposed should be
    written by then."""

    def __post_init__(self) -> None:
        one_of("consolidation.trigger", self.trigger, ConsolidationTrigger)
        for name in ("episodes", "turns", "max_episodes", "promote_recalls", "summary_tokens"):
            at_least(f"consolidation.{name}", getattr(self, name), 1)
        for name in ("max_facts", "notes_tokens", "summary_turns"):
            at_least(f"consolidation.{name}", getattr(self, name), 0)
        between("consolidation.max_pairs", self.max_pairs, 1, 20)
        require(
            self.cluster == 0 or self.cluster >= 2, f"consolidation.cluster must be 0 or 2 or more, not {self.cluster}"
        )
        unit("consolidation.cluster_similarity", self.cluster_similarity)
        for name in ("every", "promote_days", "after_run"):
            above_zero(f"consolidation.{name}", getattr(self, name))


@dataclass(frozen=True, slots=True)
class PrunePolicy:
    """When facts are looked through for what should go, and what is protected then."""

    facts: int = 20
    """Active facts of an owner from which it is worth a call; 0: never."""
    changed: int = 5
    """Changes of facts since the last time."""
    max_facts: int = 100
    """Facts in one call."""
    protected_reinforcements: int = 5
    """So often said again, a fact goes only when it is contradicted."""
    protected_confidence: float = 0.8
    """From here on a fact goes only when it is contradicted, or said word for word by another."""

    def __post_init__(self) -> None:
        for name in ("facts", "changed"):
            at_least(f"prune.{name}", getattr(self, name), 0)
        between("prune.max_facts", self.max_facts, 2, 100)
        at_least("prune.protected_reinforcements", self.protected_reinforcements, 1)
        unit("prune.protected_confidence", self.protected_confidence)


@dataclass(frozen=True, slots=True)
class DigestPolicy:
    """What a digest is made of, and how long it may be."""

    enabled: bool = True
    """Whether one is made after a run; by command it always is."""
    facts: int = 30
    """The facts with most reinforcement."""
    episodes: int = 10
    """The most significant of the recent episodes."""
    tokens: int = 400

    def __post_init__(self) -> None:
        between("digest.facts", self.facts, 0, 100)
        between("digest.episodes", self.episodes, 0, 100)
        between("digest.tokens", self.tokens, 1, 400)


GROUP_MAX = 128
NO_ID = ("Cc", "Cs")
USERS_MIN = 2


@dataclass(frozen=True, slots=True)
class SharingPolicy:
    """Off until a group is named: what was told to one user's memory is nobody else's unless an operator says so."""

    group: str = ""
    """Of each tenant, the group that facts are shared with; its members name it when they read (`groups`)."""
    users: int = 3
    """Distinct users whose active facts say it."""
    categories: tuple[Category, ...] = ("knowledge",)
    """What is about the world, not about a person."""
    ceiling: Sensitivity = "public"
    """The most sensitive that is shared; never secret."""

    def __post_init__(self) -> None:
        plain = len(self.group) <= GROUP_MAX and not any(unicodedata.category(each) in NO_ID for each in self.group)
        require(plain, f"sharing.group must be a group's id: at most {GROUP_MAX} characters, no control characters")
        at_least("sharing.users", self.users, USERS_MIN)
        require(self.ceiling != "secret", "sharing.ceiling must be public or internal: what is secret is never shared")

    @property
    def shared_with(self) -> Owner | None:
        """None: nothing is shared."""
        return Owner(scope="group", id=self.group) if self.group else None
