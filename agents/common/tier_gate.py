"""Commands whose tier of memory is off are refused, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ...memory.policies import TiersPolicy
from ...memory.policies.tiers import LongTier
from ...schemas.commands import ResultError

WORKS_ON: Final[Mapping[str, LongTier]] = MappingProxyType(
    {
        "facts.apply": "semantic",
        "facts.approve": "semantic",
        "facts.reject": "semantic",
        "episodes.record": "episodic",
        "episodes.keep": "episodic",
        "flush_important": "episodic",
        "compact": "episodic",
        "consolidate": "semantic",
        "prune": "semantic",
        "digest": "digest",
        "hygiene": "episodic",
    }
)
"""The tier that each kind of command works on."""


def refusal(kind: str, tiers: TiersPolicy) -> ResultError | None:
    """Return why a command of this kind is refused; None when its tier is on."""
    tier = WORKS_ON.get(kind)
    if tier is None or tiers.keeps(tier):
        return None
    return ResultError(code="tier_off", message=f"{kind} works on the tier {tier}, which is off: memory.tiers.{tier}")
