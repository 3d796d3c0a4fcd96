"""Inputs and result of a session edit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
class TurnTraces:
    """The traces of a turn in the store: the number of its messages, and the owners that may have a record of it."""

    messages: int = 0
    owners: tuple[Owner, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEditScope:
    """The inputs of an edit. `session`: the row before the edit."""

    command: Command
    session: SessionRow
    policy: MemoryPolicy
    secrets: SecretFilter
    now: datetime
    traces: TurnTraces = TurnTraces()
    """For turn.retract: the traces of the turn."""

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
    """The writes of a restore, which keeps the times of its records. None: they follow from the session."""
    more_writes: tuple[Write, ...] = ()
    """Writes besides those that follow from the session."""
    records: tuple[OutRecord, ...] = ()
    """Records that are sent before the result."""


SessionEdit = Callable[[Any, SessionEditScope], SessionEditResult]
"""An edit function. It takes the arguments of its command kind."""


def refused(code: str, message: str, scope: SessionEditScope) -> SessionEditResult:
    return SessionEditResult(ResultError(code=code, message=message), scope.session)
