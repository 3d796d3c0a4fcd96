"""Failures of one event that the error boundary counts against its record (error_boundary.py)."""

from __future__ import annotations

from ...schemas.base import describe
from ..log.port import Position
from .decision import StageDecision

HUNG = "the event loop did not move for"
"""Prefix of the recorded reason of a death by a hang (hangs.py)."""


class DecisionFailed(Exception):
    """An unexpected exception of decoding or of `decide`. `__cause__` is the original exception."""


class EffectFailed(Exception):
    """The effects of an outcome failed for a reason that affects only its key. Its row is durable."""

    def __init__(self, error: Exception, decided: StageDecision) -> None:
        super().__init__(describe(error))
        self.error = error
        self.decided = decided
        self.of_refused_lane = False
        """True when a stage without a table has already refused an event of this lane. Later failures of the lane do
        not end the worker."""

    @property
    def source(self) -> Position:
        """The position of the event for which the outcome was decided."""
        source = self.decided.outcome.source
        return Position(source.topic, source.partition, source.offset)
