"""Selection of facts by slot. The slots are a policy of the tenant (memory/policies/slots.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from qdrant_client import models

from ..adapters.vectors.conditions import any_of
from ..memory.policies import MemoryPolicy
from ..schemas.recall import TIERS, Tier
from ..schemas.slots import OTHER

SLOTS_ASKED_MAX: Final = 128
"""Maximum number of slots that a request may name."""


@dataclass(frozen=True, slots=True)
class SlotSelection:
    """The slots of the facts to read. Created by `select_slots`."""

    names: tuple[str, ...]
    defined: tuple[str, ...] = ()
    """All slots of the policy, if `names` contains `other`. A fact with another slot, or without one, is `other`."""

    def condition(self) -> models.Condition:
        named = any_of("slot", [name for name in self.names if name != OTHER])
        if OTHER not in self.names:
            return named
        other = models.Filter(must_not=[any_of("slot", self.defined)])
        return models.Filter(should=[named, other])


SlotSelector = Callable[[str, Sequence[str]], SlotSelection | None]
"""Function of a tenant and names that returns the selection, or None without names. Raises ValueError."""


def defined_slots(policy: MemoryPolicy) -> tuple[str, ...]:
    """Return the enabled slots of a policy, in its order."""
    return tuple(name for name, slot in policy.slots.items() if slot.enabled)


def select_slots(names: Sequence[str], policy: MemoryPolicy) -> SlotSelection | None:
    """Return the selection of these slots, or None without names, which selects every fact.

    Raises ValueError, with the known names, for a name that the policy does not define.
    """
    if not names:
        return None
    if len(names) > SLOTS_ASKED_MAX:
        raise ValueError(f"{len(names)} slots are named; at most {SLOTS_ASKED_MAX} are allowed")
    defined = defined_slots(policy)
    for name in names:
        if name != OTHER and name not in defined:
            raise ValueError(f"there is no slot {name[:80]!r}; known: {', '.join((*defined, OTHER))}")
    return SlotSelection(tuple(dict.fromkeys(names)), defined if OTHER in names else ())


def tiers_with_slots(tiers: Sequence[Tier], selection: SlotSelection | None) -> tuple[Tier, ...]:
    """Return the tiers to read. Only facts have slots, so a selection by slot reads no other tier.

    Raises ValueError when the request leaves out the facts.
    """
    if selection is None:
        return tuple(tiers)
    if "semantic" not in tiers:
        raise ValueError("only facts have slots: leave out tiers, or include the tier semantic")
    return tuple(tier for tier in TIERS if tier == "semantic")
