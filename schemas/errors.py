"""Kinds of errors that adapters, codecs and stages raise. Every other exception counts as `Fatal`.

Adapters and codecs convert the errors of their libraries into these kinds. The error boundary
(streams/engine/error_boundary.py) and the lanes (streams/engine/lanes.py) handle an event according to the kind of its
error.
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
    "timed_out",
]


class StageError(Exception):
    """Base of all kinds. `remedy` says what a person can do about the error; it is empty when nothing can be done."""

    remedy: str = ""


class Poison(StageError):
    """A record that can never be processed. It becomes a dead letter with `reason`, then it is acknowledged."""

    def __init__(self, reason: DeadLetterReason, message: str) -> None:
        super().__init__(message)
        self.reason: DeadLetterReason = reason


class ContentFiltered(Poison):
    """A content filter or policy of the model's server refuses the content of a record. Other records may pass."""

    def __init__(self, message: str) -> None:
        super().__init__("refused_by_model", message)


class Transient(StageError):
    """A component does not answer now. The call is tried again later.

    `component` is its name (`model`, `embedder`, `store`, `broker`, …). `retry_after` is the wait in seconds that the
    server requested, if any.
    """

    def __init__(self, component: str, message: str, *, retry_after: float | None = None, remedy: str = "") -> None:
        super().__init__(message)
        self.component = component
        self.retry_after = retry_after
        self.remedy = remedy


class TimedOut(Transient):
    """A component accepted a call and gave no answer in time. It may be away, or the call may be too much work."""


def no_room(component: str, folder: object, *, free: int, needed: int) -> Transient:
    """Return the error for a write that is not started, because the disk has less than `needed` free bytes."""
    return Transient(
        component,
        f"the disk of {folder} has {free >> 20} MiB left, a write needs {needed >> 20} MiB",
        remedy=f"free some space on the disk of {folder}; nothing is lost, it goes on by itself",
    )


class AccessRefused(Transient):
    """A server answers, and refuses this process: credentials, certificates, or a missing right.

    A running process waits, because credentials can be rotated. At the start of a process nothing is retried.
    """


class NoShare(Transient):
    """This process has no free place for the request now. `own`: the caller has used up its own share."""

    def __init__(self, message: str, *, retry_after: float, own: bool) -> None:
        super().__init__("server", message, retry_after=retry_after)
        self.own = own


class OverBudget(StageError):
    """The budget allows no call now. No component failed: the work waits, and nothing is dropped.

    `retry_after` is the number of seconds after which another attempt can succeed.
    """

    def __init__(self, message: str, *, retry_after: float, remedy: str = "") -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.remedy = remedy


class Relinquished(StageError):
    """This worker releases the event without a decision. The event is redelivered, here or to another worker.

    No component failed and the record is not at fault. A worker that ends for this reason exits with status 3.
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
    """A fault of the deployment that affects every key: the version, a collection, a topic. No record or key is at
    fault. So it is not counted as a crash of a record, no record is refused, and no key is parked."""


class LaterVersion(DeploymentFault):
    """A later version of memstream wrote a row of this stage. The current event is not at fault."""
