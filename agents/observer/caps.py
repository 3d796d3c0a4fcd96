"""Caps on the observations of a turn. Pure functions.

Dropped observations are counted, and the cause of the turn's record names them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ...memory.policies import CapturePolicy
from ...schemas.observations import OBSERVATIONS_MAX, OVER_CAP_MAX, OverCap
from ...schemas.turns import Sensitivity
from .answer_schema import ObservationItem
from .turn_cut import CHARACTERS_A_TOKEN

T = TypeVar("T")


def within_caps(
    items: Sequence[T],
    policy: CapturePolicy,
    *,
    item_of: Callable[[T], ObservationItem],
    place_of: Callable[[T], int],
    is_first: Callable[[T], bool],
) -> tuple[list[T], list[T]]:
    """Return the kept and the dropped observations of one turn, both in their original order.

    `place_of` returns the place of the user message that an observation is from. Observations with `is_first` have
    priority, then observations with higher importance.
    """
    by_weight = sorted(range(len(items)), key=lambda n: (not is_first(items[n]), -item_of(items[n]).importance))
    of_message: Counter[int] = Counter()
    kept: set[int] = set()
    characters = CHARACTERS_A_TOKEN * policy.observation_tokens
    for n in by_weight:
        item, place = item_of(items[n]), place_of(items[n])
        size = len(item.content) + len(item.evidence)
        fits = size <= characters and len(kept) < OBSERVATIONS_MAX
        if (kept and not fits) or of_message[place] >= policy.max_per_message:
            continue
        kept.add(n)
        of_message[place] += 1
        characters -= size
    return [items[n] for n in sorted(kept)], [each for n, each in enumerate(items) if n not in kept]


def over_cap(left_out: Iterable[ObservationItem], *, floor: Sensitivity = "public") -> OverCap | None:
    """Return the summary of dropped observations for the record, or None when none was dropped. `floor`: the
    sensitivity of the turn."""
    every = list(left_out)
    shown = [each.content for each in every if "secret" not in (each.sensitivity, floor)]
    return OverCap(observations=len(every), statements=tuple(shown[:OVER_CAP_MAX])) if every else None
