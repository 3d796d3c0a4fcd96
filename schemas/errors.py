"""The three kinds of error that may leave a handler; every other exception counts as `Fatal`.

Adapters and codecs translate what their libraries raise into these, so that the boundary
(streams/engine/error_boundary.py) is the only place that decides what becomes of an event.
"""

from __future__ import annotations

from typing import Literal

DeadLetterReason = Literal["undecodable", "invalid", "oversized", "refused_by_model", "unsupported_version", "fatal"]


class StageError(Exception):
    """Base of the three kinds."""


class Poison(StageError):
    """This record can never be handled: it goes to the dead letters under `reason`, then it is acknowledged."""

    def __init__(self, reason: DeadLetterReason, message: str) -> None:
        super().__init__(message)
        self.reason: DeadLetterReason = reason


class Transient(StageError):
    """The outside world is away: try again later. `retry_after` is what the server asked for, in seconds.

    `component` names who is away (`model`, `embedder`, `store`, `broker`), and `remedy` what a person can do.
    """

    def __init__(self, component: str, message: str, *, retry_after: float | None = None, remedy: str = "") -> None:
        super().__init__(message)
        self.component = component
        self.retry_after = retry_after
        self.remedy = remedy


class OverBudget(Transient):
    """The budget allows no call now; `retry_after` says when asking again can help. Nobody is away: it is no failure of
    a model, and nothing is dropped, the work waits."""

    def __init__(self, message: str, *, retry_after: float, remedy: str = "") -> None:
        super().__init__("budget", message, retry_after=retry_after, remedy=remedy)


class Fatal(StageError):
    """A broken invariant or a wrong setting: the worker stops with this message and commits nothing."""


class LaterVersion(Fatal):
    """What this stage itself has stored was written by a later version of memstream; no event is to blame."""
