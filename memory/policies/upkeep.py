"""Policies of upkeep without a model: hygiene, and gists of old episodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .checks import above_zero, at_least, between, one_of, require, unit

JanitorTrigger = Literal["consolidation", "capture", "schedule", "manual"]
Bounds = Literal["or", "and"]


@dataclass(frozen=True, slots=True)
class RowsPolicy:
    """How long the stages keep what they know of a session (docs/design/rows.md)."""

    session_days: float = 90.0
    """Days after its last turn until the rows of a session go, and its working set with them; 0: never."""
    trim_days: float = 1.0
    """Days after a session's row was last written until it is written once more without its published outcome."""

    def __post_init__(self) -> None:
        at_least("rows.session_days", self.session_days, 0)
        above_zero("rows.trim_days", self.trim_days)


@dataclass(frozen=True, slots=True)
class HygienePolicy:
    """The janitor, the effects of recalls, and the maintenance run (docs/explanation/upkeep.md)."""

    enabled: bool = True
    """False: nothing is culled, flagged or linked, and recalls are not counted."""
    janitor: JanitorTrigger = "consolidation"
    """When the janitor comes by itself: `consolidation` (after a run), `capture` (after a turn), `schedule` (every
    `every_hours`) or `manual` (by command alone)."""
    every_hours: float = 24.0
    """Hours between visits of the janitor `schedule`."""
    confidence_floor: float = 0.1
    """Effective confidence below which a fact is culled; 0: none is."""
    episode_turns: int = 500
    """Turns of its owner after which a persistent episode is culled; 0: turns do not count."""
    episode_days: float = 90.0
    """Days after which a persistent episode is culled; 0: days do not count."""
    episode_bounds: Bounds = "or"
    """`or`: one of the two bounds is enough; `and`: both must be reached."""
    cull_unconsolidated: bool = True
    """Whether these bounds, and `routing.episodes_kept`, also hold for episodes that no run has looked at, where the
    budget tier lets no run make facts of them. The janitor comes every `every_hours` there. False: they wait for
    another tier."""
    waiting_facts: int = 200
    """Pending facts of an owner, and quarantined ones, where the budget tier lets no run judge a pending fact. Beyond,
    the oldest are rejected: they become `forgotten`. 0, or `cull_unconsolidated` false: all are kept."""
    waiting_facts_judged: int = 2_000
    """The same where a run judges: for what only the user settles, or comes faster than it is judged. 0: all are
    kept."""
    stale_days: float = 180.0
    """Days after which a permanent episode is flagged as stale; 0: never."""
    looked_at: int = 1_000
    """Facts, and episodes, that one visit looks at. The next visit goes on where it ended."""
    at_once: int = 100
    """Facts that one visit, or run, proposes to cull: of active, of pending and of quarantined ones."""
    strength_floor: float = 0.05
    """Strength below which maintenance culls a persistent episode; 0: none."""
    merge_similarity: float = 0.95
    """Similarity from which maintenance merges facts of one subject that say the same."""
    link_step: float = 0.1
    """What each recall of two records together adds to their link; a link of 1 grows no more."""
    links_together: int = 5
    """The best items of a recall that are linked, each with each."""
    links_kept: int = 256
    """Links of an owner. Beyond, the weakest goes. 0: no links are kept."""

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
    """Old, faded, long episodes get a gist; their words go to the archive (docs/design/gist.md)."""

    enabled: bool = True
    """False: no episode is compressed. What is archived stays available for its time."""
    by: GistMaker = "extract"
    """Who makes a gist: `extract` (the first sentences) or `model` (task `gist`, where it may be asked)."""
    days: float = 30.0
    """Age in days from which an episode may be compressed."""
    strength: float = 0.2
    """Strength below which it may be compressed."""
    longer_than: int = 240
    """Characters from which it is compressed."""
    chars: int = 160
    """Characters of a gist, at most."""
    at_once: int = 20
    """Episodes that one visit of the janitor compresses."""
    calls: int = 4
    """Calls of a model in one visit; further gists are extracted."""
    retention_days: float = 365.0
    """Days after the last access, else the making, after which the archived words go."""

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
