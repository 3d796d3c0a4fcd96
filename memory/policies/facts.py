"""Policies of facts: confidence, conflicts, consolidation, pruning, digests and sharing."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal

from ...schemas.observations import Category
from ...schemas.turns import Owner, Sensitivity
from ..language.locales import locales
from .checks import above_zero, at_least, between, one_of, require, unit


@dataclass(frozen=True, slots=True)
class ConfidencePolicy:
    """The confidence of facts, 0–1."""

    permanent: float = 0.8
    """Confidence of a fact from a permanent observation."""
    persistent: float = 0.7
    """Confidence of a fact from a persistent observation."""
    assistant_discount: float = 0.2
    """Deduction from the confidence when an assistant stated the fact."""
    tool_discount: float = 0.3
    """Deduction from the confidence when a tool stated the fact."""
    reinforcement: float = 0.05
    """Increase of the confidence for each further turn that states the fact, up to 1."""
    consolidated: float = 0.5
    """Confidence of a consolidated fact when the model gives none."""

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            unit(f"confidence.{name}", getattr(self, name))


@dataclass(frozen=True, slots=True)
class ConflictPolicy:
    """The comparison of a new statement with known facts. The zones of similarity depend on the embedder."""

    hot: float | None = 0.95
    """Minimum similarity of two statements in the zone HOT."""
    near_dup: float = 0.85
    """Minimum similarity of two statements in the zone NEAR-DUP."""
    conflict_check: float = 0.40
    """Similarity above which two statements are in the zone CONFLICT-CHECK. At or below it, they are COLD."""
    neighbours: int = 5
    """Number of nearest facts that a statement is compared with."""
    lexical: bool = False
    """Set by the embedder. True for `hashing`: the zone NEAR-DUP then compares words by their Jaccard index, and there
    is no zone HOT."""
    jaccard_near_dup: float = 0.8
    """Minimum Jaccard index of the words of two statements in the zone NEAR-DUP, with `lexical`."""
    locale: str = "en"
    """Language packs for parsing statements, with commas: `en, de`. A statement is parsed with the pack that knows the
    most words of it."""

    def __post_init__(self) -> None:
        bounds = [self.conflict_check, self.near_dup] + ([] if self.hot is None else [self.hot])
        for bound in [*bounds, self.jaccard_near_dup]:
            unit("conflict zone", bound)
        locales(self.locale)
        require(bounds == sorted(bounds), "conflict zones must rise: conflict_check, near_dup, hot")
        between("conflict.neighbours", self.neighbours, 1, 100)


ConsolidationTrigger = Literal["capture", "schedule", "manual"]


@dataclass(frozen=True, slots=True)
class ConsolidationPolicy:
    """Consolidation, which makes facts of episodes: its triggers, and the limits of one run."""

    trigger: ConsolidationTrigger = "capture"
    """`capture`: a run starts after enough `episodes` and `turns`; `schedule`: a run starts after `every` seconds with
    at least one new turn; `manual`: only a command starts a run."""
    every: float = 3_600.0
    """Seconds between scheduled runs."""
    episodes: int = 5
    """Number of new episodes that starts a run."""
    turns: int = 4
    """Minimum number of turns since the last run."""
    on_eviction: bool = True
    """True: the eviction of a persistent or permanent entry from the working set also starts a run."""
    notes_tokens: int = 40_000
    """Tokens of observations that start a run even with fewer `episodes`; 0: off. A token is 4 bytes of UTF-8."""
    max_episodes: int = 20
    """Maximum number of episodes in the prompt of one run."""
    max_facts: int = 60
    """Maximum number of facts in the prompt of one run."""
    max_pairs: int = 20
    """Maximum pending facts in one question to the judge, up to 20."""
    summary_turns: int = 4
    """Number of unsummarised turns of a session that starts a summary; 0: never."""
    summary_tokens: int = 8_000
    """Maximum tokens of the turns in one summary. A larger turn is shown alone."""
    promote_days: float = 7.0
    """Minimum age in days of an often recalled episode that is proposed as a fact."""
    promote_recalls: int = 3
    """Minimum number of recalls of an episode that is proposed as a fact."""
    cluster: int = 5
    """Minimum number of related episodes for an insight; 0: no insights."""
    cluster_similarity: float = 0.5
    """Minimum cosine similarity of two related episodes."""
    after_run: float = 2.0
    """Seconds after a run until prune, hygiene and digest start, one after the other. The delay leaves time to write
    the proposals of the run."""

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
    """Pruning: when it reviews facts, and which facts are protected."""

    facts: int = 20
    """Minimum number of active facts of an owner before pruning asks the model; 0: never."""
    changed: int = 5
    """Minimum number of new or changed facts since the last review."""
    max_facts: int = 100
    """Maximum facts in one call, up to 100."""
    protected_reinforcements: int = 5
    """Number of reinforcements that protects a fact: it is then removed only when another fact contradicts it."""
    protected_confidence: float = 0.8
    """Confidence that protects a fact: it is then removed only when another fact contradicts it or contains all of its
    words."""

    def __post_init__(self) -> None:
        for name in ("facts", "changed"):
            at_least(f"prune.{name}", getattr(self, name), 0)
        between("prune.max_facts", self.max_facts, 2, 100)
        at_least("prune.protected_reinforcements", self.protected_reinforcements, 1)
        unit("prune.protected_confidence", self.protected_confidence)


@dataclass(frozen=True, slots=True)
class DigestPolicy:
    """The content of a digest, and its maximum length."""

    enabled: bool = True
    """True: a digest is made after a consolidation run. The command `digest` works with False, too."""
    facts: int = 30
    """Maximum number of facts that a digest is made from. The most reinforced facts come first."""
    episodes: int = 10
    """Maximum number of recent episodes that a digest is made from. The most significant episodes come first."""
    tokens: int = 400
    """Maximum tokens of a digest, up to 400."""

    def __post_init__(self) -> None:
        between("digest.facts", self.facts, 0, 100)
        between("digest.episodes", self.episodes, 0, 100)
        between("digest.tokens", self.tokens, 1, 400)


GROUP_MAX = 128
NO_ID = ("Cc", "Cs")
USERS_MIN = 2


@dataclass(frozen=True, slots=True)
class SharingPolicy:
    """Sharing of facts of users with a group. Off until a group is set: the memory of a user stays private unless an
    operator decides otherwise."""

    group: str = ""
    """The group of each tenant that receives shared facts. The members name the group in `groups` when they read.
    Empty: nothing is shared."""
    users: int = 3
    """Minimum number of users that have the same active fact, at least 2."""
    categories: tuple[Category, ...] = ("knowledge",)
    """Categories of facts that are shared."""
    ceiling: Sensitivity = "public"
    """The highest sensitivity that is shared: `public` or `internal`."""

    def __post_init__(self) -> None:
        plain = len(self.group) <= GROUP_MAX and not any(unicodedata.category(each) in NO_ID for each in self.group)
        require(plain, f"sharing.group must be a group's id: at most {GROUP_MAX} characters, no control characters")
        at_least("sharing.users", self.users, USERS_MIN)
        require(self.ceiling != "secret", "sharing.ceiling must be public or internal: secret facts are never shared")

    @property
    def shared_with(self) -> Owner | None:
        """The owner of shared facts; None when nothing is shared."""
        return Owner(scope="group", id=self.group) if self.group else None
