"""Inputs and result of a session edit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ....memory.policies import MemoryPolicy
from ....memory.secrets.secret_filter import SecretFilter
from ....schemas.base import Contract
from ....schemas.commands import Command, ResultError
from ....schemas.outcomes import OutRecord, Write
from ....schemas.turns import Owner
from ..rows import SessionRow


@dataclass(frozen=True, slots=True)
class Traces:
    """The traces of a turn or a session in the store: the number of its messages, and the owners that may have a record
    of it. For a session also the records that the observer writes."""

    messages: int = 0
    owners: tuple[Owner, ...] = ()
    points: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Ids by collection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEditScope:
    """The inputs of an edit. `session`: the row before the edit."""

    command: Command
    session: SessionRow
    policy: MemoryPolicy
    secrets: SecretFilter
    now: datetime
    traces: Traces = Traces()
    """For turn.retract and session.erase."""

    def may_hold(self, owner: Owner) -> bool:
        """Return whether the session may hold blocks of this owner. Blocks of other users are not allowed."""
        assert self.command.session is not None  # route refuses a command without a session
        return owner.scope != "user" or owner.id == self.command.session.user_id


@dataclass(frozen=True, slots=True)
class SessionEditResult:
    """The session after an edit, or the reason for its refusal."""

    result: Contract | ResultError
    session: SessionRow
    writes: tuple[Write, ...] | None = None
    """The writes of an edit that does not write the session's projections. None: they follow from the session."""
    more_writes: tuple[Write, ...] = ()
    """Writes besides those that follow from the session."""
    records: tuple[OutRecord, ...] = ()
    """Records that are sent before the result."""
    cleanup: tuple[str, ...] = ()
    """Rows that are deleted after all effects."""


SessionEdit = Callable[[Any, SessionEditScope], SessionEditResult]
"""An edit function. It takes the arguments of its command kind."""


def refused(code: str, message: str, scope: SessionEditScope) -> SessionEditResult:
    return SessionEditResult(ResultError(code=code, message=message), scope.session)
