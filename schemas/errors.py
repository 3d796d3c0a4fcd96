"""The kinds of error that adapters, codecs and stages raise. Every other exception counts as `Fatal`.

Adapters and codecs translate the errors of their libraries into these kinds. The error boundary
(streams/engine/error_boundary.py) and the lanes (streams/engine/lanes.py) decide by kind what becomes of an event.
"""

from __future__ import annotations

from typing import Literal

DeadLetterReason = Literal[
    "undecodable",
    "invalid",
    "oversized",
    "refused_by_model",
    "unsupported_version",
    "fatal",
    "parked",
    "over_ceiling",
]


class StageError(Exception):
    """Base of all kinds. `remedy`: what a person can do about it; empty where there is nothing to do."""

    remedy: str = ""


class Poison(StageError):
    """A record that can never be handled. It becomes a dead letter with `reason`, then it is acknowledged."""

    def __init__(self, reason: DeadLetterReason, message: str) -> None:
        super().__init__(message)
        self.reason: DeadLetterReason = reason


class ContentFiltered(Poison):
    """A content filter or policy of the model's server refuses what a record says. Another record may pass."""

    def __init__(self, message: str) -> None:
        super().__init__("refused_by_model", message)


class Transient(StageError):
    """A component does not answer now; the call is tried again later.

    `component`: which one (`model`, `embedder`, `store`, `broker`, …). `retry_after`: seconds that the server asked
    for, if it did.
    """

    def __init__(self, component: str, message: str, *, retry_after: float | None = None, remedy: str = "") -> None:
        super().__init__(message)
        self.component = component
        self.retry_after = retry_after
        self.remedy = remedy


def no_room(component: str, folder: object, *, free: int, needed: int) -> Transient:
    """Return the error for a write that is not begun, because the disk has less than `needed` bytes left."""
    return Transient(
        component,
        f"the disk of {folder} has {free >> 20} MiB left, a write needs {needed >> 20} MiB",
        remedy=f"free some space on the disk of {folder}; nothing is lost, it goes on by itself",
    )


class NoShare(Transient):
    """This process has no place for the request now. `own`: the caller's own share is used up."""

    def __init__(self, message: str, *, retry_after: float, own: bool) -> None:
        super().__init__("server", message, retry_after=retry_after)
        self.own = own


class OverBudget(StageError):
    """The budget allows no call now. No component failed: the work waits, and nothing is dropped.

    `retry_after`: seconds after which another attempt can succeed.
    """

    def __init__(self, message: str, *, retry_after: float, remedy: str = "") -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.remedy = remedy


class Relinquished(StageError):
    """This worker gives the event up without a decision; the event is redelivered, here or to another worker.

    No component failed and the record is not at fault. The worker exits 3 when it ends for this.
    """

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class Fatal(StageError):
    """A broken invariant or a wrong setting. The worker stops with this message and commits nothing more."""

    def __init__(self, message: str = "", *, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class DeploymentFault(Fatal):
    """Something is wrong for every key alike: the version, a collection, a topic. No record and no key is at fault, so
    nothing is counted, refused or parked for it."""


class LaterVersion(DeploymentFault):
    """A row of this stage was written by a later version of memstream. The event in hand is not at fault."""
