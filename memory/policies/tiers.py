"""The tiers of memory that are on, besides the working set and the session log."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from .checks import require

LongTier = Literal["episodic", "semantic", "digest"]
LONG_TIERS: Final[tuple[LongTier, ...]] = ("episodic", "semantic", "digest")
"""The tiers that can be off. The records of a tier are made from the records of the previous tier in this list. The
working set is always on. The session log is on wherever a recorder runs."""


@dataclass(frozen=True, slots=True)
class TiersPolicy:
    """The tiers that are on. A tier that is off is neither written nor read; its records stay.

    Loading a policy fails when a tier needs another tier that is off. So without `episodic` only the working set
    remains.
    """

    episodic: bool = True
    """Episodes are kept. Off: only the working set is kept."""
    semantic: bool = True
    """Facts are kept. This tier needs `episodic`."""
    digest: bool = True
    """Digests are kept. This tier needs `semantic`."""

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
        """True when only the working set is kept."""
        return not self.episodic
