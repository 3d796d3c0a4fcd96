"""The importance of an observation: the value from the model, raised by the policy."""

from __future__ import annotations

from ...schemas.observations import Category, Emotion
from ..policies import CapturePolicy
from ..policies.observation import Boosted


def boosted_importance(
    importance: float, *, category: Category, is_correction: bool, emotion: Emotion | None, policy: CapturePolicy
) -> float:
    """Return the importance, 0–1. It is increased once when `policy.boosted` contains the category, `correction` for a
    correction, or `emotional` for an observation with an emotion. An emotion with valence 0 and arousal 0 counts as no
    emotion."""
    names: set[Boosted] = {category}
    if is_correction:
        names.add("correction")
    if emotion is not None and (emotion.valence or emotion.arousal):
        names.add("emotional")
    if names.isdisjoint(policy.boosted):
        return importance
    return min(1.0, round(importance + policy.boost, 6))
