"""Inputs and result of a manual edit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from ....adapters.ports import VectorStore
from ....memory.policies import MemoryPolicy
from ....memory.secrets.secret_filter import SecretFilter
from ....schemas import ids
from ....schemas.base import Contract
from ....schemas.commands import Command, ResultError
from ....schemas.outcomes import OutRecord, Write
from ....schemas.turns import Owner
from ....streams.engine.decision import Rows
from ....streams.engine.retry import Calls
from ...common.handled_sessions import HandledSessions
from ..episodes import Episodes
from ..fact_changes import FactChange, FactChanger
from ..fact_overlay import Vector
from ..rows import turns_of

NOT_EMBEDDED: Final = "the embedder refuses its text: import it with another embedder"
"""Reason for a line whose text is not among the vectors of `embed_accepted`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerEditScope:
    """The inputs of an edit. `rows`: the stage's table rows on the owner's partition."""

    command: Command
    owner: Owner
    owner_key: str
    facts: FactChanger
    episodes: Episodes
    recorded_episodes: int
    """Number of episodes ever recorded for the owner."""
    rows: Rows
    sessions: HandledSessions
    store: VectorStore
    calls: Calls
    embed: Callable[[Sequence[str]], Awaitable[Mapping[str, Vector]]]
    policy: MemoryPolicy
    secrets: SecretFilter
    now: datetime

    def is_erased(self, session_id: str | None, user_id: str | None = None) -> bool:
        """Return whether a session was erased. `user_id`: its user; None: the owner, if the owner is a user."""
        user = user_id or (self.owner.id if self.owner.scope == "user" else None)
        if session_id is None or user is None:
            return False
        session_key = ids.session_key(self.command.tenant_id, user, session_id)
        return turns_of(self.rows, self.owner_key, session_key).erased

    async def embed_accepted(self, texts: Iterable[str]) -> Mapping[str, Vector]:
        """Return the vectors of the texts, without the texts that the embedder refuses."""
        return await self.facts.embed_accepted(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerEditResult:
    """The effects of an edit, or the reason for its refusal.

    `after`: small rows to write after the owner's row. `cleanup`: rows to delete when all effects are applied.
    `state_ids`: facts without a change whose state is published, too.
    """

    result: Contract | ResultError
    changes: tuple[FactChange, ...] = ()
    episodes: int = 0
    """Number of added episodes."""
    writes: tuple[Write, ...] = ()
    records: tuple[OutRecord, ...] = ()
    after: Mapping[str, bytes] = field(default_factory=dict)
    cleanup: tuple[str, ...] = ()
    state_ids: tuple[str, ...] = ()


OwnerEdit = Callable[[Any, OwnerEditScope], Awaitable[OwnerEditResult]]
"""An edit function. It takes the arguments of its command kind."""


def refused(code: str, message: str) -> OwnerEditResult:
    return OwnerEditResult(result=ResultError(code=code, message=message))


def refused_session() -> OwnerEditResult:
    """Refuse an edit that names an erased session."""
    return refused("erased", "the session was erased: leave session_id out, or name another session")
