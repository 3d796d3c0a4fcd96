"""What an edit of a session may read, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ....memory.policies import MemoryPolicy
from ....memory.secrets.secret_filter import SecretFilter
from ....schemas.base import Contract
from ....schemas.commands import Command, ResultError
from ....schemas.turns import Owner
from ..rows import SessionRow


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEditScope:
    """What an edit may read. `session`: the row before the edit."""

    command: Command
    session: SessionRow
    policy: MemoryPolicy
    secrets: SecretFilter
    now: datetime

    def may_hold(self, owner: Owner) -> bool:
        """Whether the session may hold blocks of this owner: its own user's, and no other user's."""
        assert self.command.session is not None  # route refuses a command without one
        return owner.scope != "user" or owner.id == self.command.session.user_id


@dataclass(frozen=True, slots=True)
class SessionEditResult:
    """The session after an edit, or why it is refused."""

    result: Contract | ResultError
    session: SessionRow


SessionEdit = Callable[[Any, SessionEditScope], SessionEditResult]
"""Takes the arguments of its kind."""


def refused(code: str, message: str, scope: SessionEditScope) -> SessionEditResult:
    return SessionEditResult(ResultError(code=code, message=message), scope.session)
