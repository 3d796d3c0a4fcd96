"""The importance of an observation: the value from the model, raised by the policy."""

from __future__ import annotations

from ...schemas.observations import Category, Emotion
from ..policies import CapturePolicy
from ..policies.observation import Boosted


def boosted_importance(
    importance: float, *, category: Category, is_correction: bool, emotion: Emotion | None, policy: CapturePolicy
) -> float:
    """Return the importance, 0–1, raised once when a boosted name applies. A valence and arousal of 0 count as no
    emotion."""
    names: set[Boosted] = {category}
    if is_correction:
        names.add("correction")
    if emotion is not None and (emotion.valence or emotion.arousal):
        names.add("emotional")
    if names.isdisjoint(policy.boosted):
        return importance
    return min(1.0, round(importance + policy.boost, 6))
