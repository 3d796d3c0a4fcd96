"""Which tiers of memory are kept, beside the working set and the session log (memory-model, sections 2 and 3)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from .checks import require

LongTier = Literal["episodic", "semantic", "digest"]
LONG_TIERS: Final[tuple[LongTier, ...]] = ("episodic", "semantic", "digest")
"""The tiers that can be off; each is made of the one before it. The working set is always on, the session log where a
recorder runs."""


@dataclass(frozen=True, slots=True)
class TiersPolicy:
    """A tier that is off is neither written nor read, and what lies in it stays. One that needs another that is off is
    refused here, at load; so without `episodic` there is the working set alone."""

    episodic: bool = True
    """Episodes are kept. Off: the working set alone."""
    semantic: bool = True
    """Facts are kept. It needs `episodic`."""
    digest: bool = True
    """Digests are kept. It needs `semantic`."""

    def __post_init__(self) -> None:
        for needed, tier in pairwise(LONG_TIERS):
            on = [f"{each} = false" for each in LONG_TIERS[LONG_TIERS.index(tier) :] if self.keeps(each)]
            require(
                self.keeps(needed) or not self.keeps(tier),
                f"{tier} needs {needed}: write {needed} = true, or {' and '.join(on)}",
            )

    def keeps(self, tier: LongTier) -> bool:
        return {"episodic": self.episodic, "semantic": self.semantic, "digest": self.digest}[tier]

    @property
    def off(self) -> tuple[LongTier, ...]:
        return tuple(tier for tier in LONG_TIERS if not self.keeps(tier))

    @property
    def working_only(self) -> bool:
        """Nothing goes beyond the working set."""
        return not self.episodic
