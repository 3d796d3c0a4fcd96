"""Policies of upkeep without a model: rows of sessions, hygiene, and gists of old episodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .checks import above_zero, at_least, between, one_of, require, unit

JanitorTrigger = Literal["consolidation", "capture", "schedule", "manual"]
Bounds = Literal["or", "and"]


@dataclass(frozen=True, slots=True)
class RowsPolicy:
    """Retention of the rows that the stages keep for a session (docs/design/rows.md)."""

    session_days: float = 90.0
    """Days after the last turn of a session until its rows and its working set are deleted; 0: never."""
    trim_days: float = 1.0
    """Days after the last write of a session's row until the row is written again without its published outcome."""

    def __post_init__(self) -> None:
        at_least("rows.session_days", self.session_days, 0)
        above_zero("rows.trim_days", self.trim_days)


@dataclass(frozen=True, slots=True)
class HygienePolicy:
    """The janitor, the effects of recalls, and the maintenance run (docs/explanation/upkeep.md)."""

    enabled: bool = True
    """False: nothing is culled, flagged or linked, and recalls are not counted."""
    janitor: JanitorTrigger = "consolidation"
    """When the janitor runs by itself: `consolidation` (after a run), `capture` (after a turn), `schedule` (every
    `every_hours`) or `manual` (only by command)."""
    every_hours: float = 24.0
    """Hours between two visits of the janitor with `schedule`."""
    confidence_floor: float = 0.1
    """Effective confidence below which a fact is culled; 0: no fact is culled."""
    episode_turns: int = 500
    """Turns of its owner after which a persistent episode is culled; 0: turns do not count."""
    episode_days: float = 90.0
    """Days after which a persistent episode is culled; 0: days do not count."""
    episode_bounds: Bounds = "or"
    """`or`: one of the two bounds is enough; `and`: both must be reached."""
    cull_unconsolidated: bool = True
    """Effect in a budget tier that does not let a run make facts of episodes. True: `episode_turns`, `episode_days` and
    `routing.episodes_kept` also apply to episodes that no run has read, and the janitor runs every `every_hours`.
    False: these episodes wait for another tier."""
    waiting_facts: int = 200
    """Maximum pending facts and maximum quarantined facts of an owner, when no model may judge pending facts. Above it,
    the oldest are rejected and become `forgotten`. 0, or `cull_unconsolidated` false: no limit."""
    waiting_facts_judged: int = 2_000
    """The same limit when a model may judge pending facts. It applies to facts that only the user can settle, and to
    facts that arrive faster than they are judged. 0: no limit."""
    stale_days: float = 180.0
    """Days after which a permanent episode is flagged as stale; 0: never."""
    looked_at: int = 1_000
    """Maximum facts and maximum episodes that one visit checks. The next visit continues where this one ends."""
    at_once: int = 100
    """Maximum facts that one visit or run proposes to cull, for each state: active, pending, quarantined."""
    strength_floor: float = 0.05
    """Strength below which maintenance culls a persistent episode; 0: no episode is culled."""
    merge_similarity: float = 0.95
    """Minimum similarity of two facts of one subject that maintenance merges because they say the same."""
    link_step: float = 0.1
    """Increase of the link of two records for each recall of both, up to 1."""
    links_together: int = 5
    """Number of best items of a recall that are linked with each other."""
    links_kept: int = 256
    """Maximum links of an owner. Above it, the weakest links are dropped. 0: no links are kept."""

    def __post_init__(self) -> None:
        one_of("hygiene.janitor", self.janitor, JanitorTrigger)
        one_of("hygiene.episode_bounds", self.episode_bounds, Bounds)
        for name in ("confidence_floor", "strength_floor", "merge_similarity", "link_step"):
            unit(f"hygiene.{name}", getattr(self, name))
        for name in ("episode_days", "episode_turns", "stale_days", "waiting_facts", "waiting_facts_judged"):
            at_least(f"hygiene.{name}", getattr(self, name), 0)
        above_zero("hygiene.every_hours", self.every_hours)
        between("hygiene.looked_at", self.looked_at, 1, 10_000)
        between("hygiene.at_once", self.at_once, 1, 1_000)
        between("hygiene.links_together", self.links_together, 1, 20)
        between("hygiene.links_kept", self.links_kept, 0, 4_096)


GistMaker = Literal["extract", "model"]


@dataclass(frozen=True, slots=True)
class GistPolicy:
    """Gists of old, faded, long episodes; their words go to the archive (docs/design/gist.md)."""

    enabled: bool = True
    """False: no episode is compressed. Archived words stay available until they expire."""
    by: GistMaker = "extract"
    """Method of a gist: `extract` (the first sentences) or `model` (task `gist`, when a model may be called)."""
    days: float = 30.0
    """Minimum age in days of an episode that is compressed."""
    strength: float = 0.2
    """Strength below which an episode is compressed."""
    longer_than: int = 240
    """Characters above which an episode is compressed."""
    chars: int = 160
    """Maximum characters of a gist."""
    at_once: int = 20
    """Maximum episodes that one visit of the janitor compresses."""
    calls: int = 4
    """Maximum model calls in one visit; the other gists are extracted."""
    retention_days: float = 365.0
    """Days after the last access, or after archiving, until the archived words are deleted."""

    def __post_init__(self) -> None:
        one_of("gist.by", self.by, GistMaker)
        unit("gist.strength", self.strength)
        at_least("gist.days", self.days, 0)
        at_least("gist.retention_days", self.retention_days, 1)
        between("gist.longer_than", self.longer_than, 40, 2_000)
        between("gist.chars", self.chars, 20, 2_000)
        between("gist.at_once", self.at_once, 1, 100)
        between("gist.calls", self.calls, 1, 4)
        require(
            self.chars < self.longer_than,
            f"gist.chars ({self.chars}) must be below gist.longer_than ({self.longer_than}): a gist is shorter",
        )
