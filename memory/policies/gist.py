"""Which old episodes are compressed, to what, and how long their words are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .checks import at_least, between, one_of, require, unit

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
