"""Policies of upkeep without a model: hygiene, and gists of old episodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .checks import above_zero, at_least, between, one_of, require, unit

JanitorTrigger = Literal["consolidation", "capture", "schedule", "manual"]
Bounds = Literal["or", "and"]


@dataclass(frozen=True, slots=True)
class HygienePolicy:
    """The janitor, what recalls leave behind, and the maintenance run (memory-model §§7, 8)."""

    enabled: bool = True
    """False: nothing is culled, flagged or linked, whoever asks; recalls are not counted."""
    janitor: JanitorTrigger = "consolidation"
    """When it comes by itself: after a run, after each captured turn, every `every_hours`, or only by command."""
    every_hours: float = 24.0
    """Of the janitor `schedule`."""
    confidence_floor: float = 0.1
    """A fact below this effective confidence is culled. 0: none is."""
    episode_turns: int = 500
    """Turns of its owner after which a persistent episode is culled; 0: never by turns."""
    episode_days: float = 90.0
    """Days after which a persistent episode is culled; 0: never by days."""
    episode_bounds: Bounds = "or"
    """Whether one of the two is enough."""
    stale_days: float = 180.0
    """Days after which a permanent episode is flagged as stale; 0: never."""
    looked_at: int = 1_000
    """Facts, and episodes, that one visit of the janitor looks at; the next one goes on where it ended."""
    at_once: int = 100
    """Facts that one visit proposes to cull; the rest is the next one's."""
    strength_floor: float = 0.05
    """Maintenance culls persistent episodes below this strength; 0: none."""
    merge_similarity: float = 0.95
    """Maintenance merges facts of one subject from this similarity on, where they say the same."""
    link_step: float = 0.1
    """What each recall of two records together adds to their link; a link of 1 grows no more."""
    links_together: int = 5
    """The best so many of a recall are linked, each with each."""
    links_kept: int = 256
    """Per owner; the weakest makes room for what is recalled together. 0: no links are kept."""

    def __post_init__(self) -> None:
        one_of("hygiene.janitor", self.janitor, JanitorTrigger)
        one_of("hygiene.episode_bounds", self.episode_bounds, Bounds)
        for name in ("confidence_floor", "strength_floor", "merge_similarity", "link_step"):
            unit(f"hygiene.{name}", getattr(self, name))
        for name in ("episode_days", "episode_turns", "stale_days"):
            at_least(f"hygiene.{name}", getattr(self, name), 0)
        above_zero("hygiene.every_hours", self.every_hours)
        between("hygiene.looked_at", self.looked_at, 1, 10_000)
        between("hygiene.at_once", self.at_once, 1, 1_000)
        between("hygiene.links_together", self.links_together, 1, 20)
        between("hygiene.links_kept", self.links_kept, 0, 4_096)


GistMaker = Literal["extract", "model"]


@dataclass(frozen=True, slots=True)
class GistPolicy:
    """Old, faded, long episodes get a gist; their words go to the archive (memory-model §8)."""

    enabled: bool = True
    """False: no episode is compressed. What is in the archive can be had still, and is kept its time."""
    by: GistMaker = "extract"
    """Who makes it: the first sentences, or a model (task `gist`) where it may be asked."""
    days: float = 30.0
    """An episode's age from which it may be compressed."""
    strength: float = 0.2
    """Below which it may be: what was recalled lately keeps its words."""
    longer_than: int = 240
    """Characters: what is no longer keeps its words."""
    chars: int = 160
    """Characters of a gist, at most."""
    at_once: int = 20
    """Episodes that one visit of the janitor compresses: their words are in its outcome."""
    calls: int = 4
    """Questions to a model in one visit; what is beyond is extracted."""
    retention_days: float = 365.0
    """Days after the last access, else the making, after which the words go."""

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
