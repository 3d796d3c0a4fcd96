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
    """How much less it is when an assistant said it."""
    tool_discount: float = 0.3
    """How much less it is when a tool said it."""
    reinforcement: float = 0.05
    """What each further turn adds, up to 1."""
    consolidated: float = 0.5
    """Confidence of a consolidated fact for which the model named none."""

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            unit(f"confidence.{name}", getattr(self, name))


@dataclass(frozen=True, slots=True)
class ConflictPolicy:
    """How a new statement is compared with known facts. The zones of similarity depend on the embedder."""

    hot: float | None = 0.95
    """Similarity from which two statements are in the zone HOT."""
    near_dup: float = 0.85
    """Similarity from which they are in the zone NEAR-DUP."""
    conflict_check: float = 0.40
    """Similarity above which they are in the zone CONFLICT-CHECK; below is COLD."""
    neighbours: int = 5
    """Nearest facts that a statement is compared with."""
    lexical: bool = False
    """Set by the embedder: true for `hashing`, where NEAR-DUP is the Jaccard index of words and there is no HOT."""
    jaccard_near_dup: float = 0.8
    """Share of common words from which two statements are NEAR-DUP, with `lexical`."""
    locale: str = "en"
    """Language packs that take statements apart, with commas: `en, de`. The pack that knows most words of a statement
    reads it."""

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
    """When episodes become facts, and how much one run reads and proposes."""

    trigger: ConsolidationTrigger = "capture"
    """`capture`: a run starts after enough `episodes` and `turns`; `schedule`: every so many seconds (`every`) in which
    anything came; `manual`: by command alone."""
    every: float = 3_600.0
    """Seconds between runs of a schedule."""
    episodes: int = 5
    """New episodes from which a run starts."""
    turns: int = 4
    """Turns since the last run that are needed for the next."""
    on_eviction: bool = True
    """True: a persistent entry that left the working set starts a run, too."""
    notes_tokens: int = 40_000
    """Tokens of observations that start a run in place of `episodes`; 0: none do. A token is 4 bytes of UTF-8."""
    max_episodes: int = 20
    """Episodes that one run shows the model."""
    max_facts: int = 60
    """Facts that one run shows the model."""
    max_pairs: int = 20
    """Pending facts that one run shows the judge, at most 20."""
    summary_turns: int = 4
    """Turns of a session without a summary from which one is written; 0: never."""
    summary_tokens: int = 8_000
    """Tokens of the turns of one summary. A larger turn is shown alone."""
    promote_days: float = 7.0
    """Age in days from which an often recalled episode is proposed as a fact."""
    promote_recalls: int = 3
    """Recalls that this needs."""
    cluster: int = 5
    """Related episodes from which an insight may be drawn; 0: none is looked for."""
    cluster_similarity: float = 0.5
    """Cosine from which two episodes are related."""
    after_run: float = 2.0
    """Seconds after a run until prune, hygiene and digest follow, one after the other. By then the run's proposals
    should be written."""

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
    """When facts are reviewed for pruning, and which facts are protected."""

    facts: int = 20
    """Active facts of an owner from which pruning asks the model; 0: never."""
    changed: int = 5
    """Changes of facts since the last time that it needs."""
    max_facts: int = 100
    """Facts in one call, at most 100."""
    protected_reinforcements: int = 5
    """A fact that was said again so often goes only when it is contradicted."""
    protected_confidence: float = 0.8
    """From this confidence a fact goes only when it is contradicted, or another says it word for word."""

    def __post_init__(self) -> None:
        for name in ("facts", "changed"):
            at_least(f"prune.{name}", getattr(self, name), 0)
        between("prune.max_facts", self.max_facts, 2, 100)
        at_least("prune.protected_reinforcements", self.protected_reinforcements, 1)
        unit("prune.protected_confidence", self.protected_confidence)


@dataclass(frozen=True, slots=True)
class DigestPolicy:
    """What a digest is made from, and how long it may be."""

    enabled: bool = True
    """True: a digest is made after a run. A command always makes one."""
    facts: int = 30
    """Facts that it is made of: those with most reinforcement."""
    episodes: int = 10
    """Recent episodes that it is made of: the most significant."""
    tokens: int = 400
    """Tokens of a digest, at most 400."""

    def __post_init__(self) -> None:
        between("digest.facts", self.facts, 0, 100)
        between("digest.episodes", self.episodes, 0, 100)
        between("digest.tokens", self.tokens, 1, 400)


GROUP_MAX = 128
NO_ID = ("Cc", "Cs")
USERS_MIN = 2


@dataclass(frozen=True, slots=True)
class SharingPolicy:
    """Which facts of users become facts of a group. Off until a group is named: one user's memory stays private unless
    an operator decides otherwise."""

    group: str = ""
    """Group of each tenant that facts are shared with; its members name it in `groups` when they read. Empty: nothing
    is shared."""
    users: int = 3
    """Distinct users whose active facts say it, at least 2."""
    categories: tuple[Category, ...] = ("knowledge",)
    """Categories that are shared."""
    ceiling: Sensitivity = "public"
    """The most sensitive that is shared: `public` or `internal`."""

    def __post_init__(self) -> None:
        plain = len(self.group) <= GROUP_MAX and not any(unicodedata.category(each) in NO_ID for each in self.group)
        require(plain, f"sharing.group must be a group's id: at most {GROUP_MAX} characters, no control characters")
        at_least("sharing.users", self.users, USERS_MIN)
        require(self.ceiling != "secret", "sharing.ceiling must be public or internal: what is secret is never shared")

    @property
    def shared_with(self) -> Owner | None:
        """The group's owner; None: nothing is shared."""
        return Owner(scope="group", id=self.group) if self.group else None
