"""The port of the tools: who calls, what a call gives, and how it fails. HTTP, MCP and adapters call it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..recall.record_reader import sees_all
from ..schemas.base import Contract
from ..schemas.commands import SessionRef
from ..schemas.facts import Trust
from ..schemas.tools import ToolSpec
from ..schemas.turns import Owner, Sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolIdentity:
    """On whose behalf a tool is called. It comes from the credential and the transport, never from the arguments."""

    tenant_id: str
    user_id: str
    caller: str
    """For the audit trail: the name of a token, or `cli:<user of the machine>`."""
    session_id: str | None = None
    agent_id: str | None = None
    org_id: str | None = None
    group_id: str | None = None
    ceiling: Sensitivity = "internal"
    """The highest sensitivity that may be read."""
    tools: frozenset[str] | None = None
    """The tools that the credential may call. None: those that the tenant has."""
    may_write: bool = True
    """Whether the credential may call tools that change memory."""
    admin: bool = False
    """Whether the credential may call tools that are guarded as `admin`."""
    speaks_for_user: bool = False
    """Whether what the credential states is the user's own word. Otherwise it is an assistant's."""
    sees: Callable[[Owner], bool] = sees_all
    """Whether the credential may read and change this owner's memory."""

    @property
    def trust(self) -> Trust:
        """Whose word a statement of this caller is."""
        return "user" if self.speaks_for_user else "assistant"

    @property
    def user(self) -> Owner:
        return Owner(scope="user", id=self.user_id)

    @property
    def session(self) -> SessionRef | None:
        return None if self.session_id is None else SessionRef(user_id=self.user_id, session_id=self.session_id)


class ToolError(Exception):
    """A call that did nothing. The message is one sentence that says what to do. `code`: that of a refused edit."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class ToolPort(Protocol):
    """The tools of agents."""

    async def offered(self, identity: ToolIdentity) -> Sequence[ToolSpec]:
        """Return the tools that this caller has, in the order of the catalogue."""
        ...

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        identity: ToolIdentity,
        key: str | None = None,
        patience: float | None = None,
    ) -> Contract:
        """Call a tool. Return its result contract, or `ToolAccepted` for a write that was not applied in time.

        Args:
            key: idempotency key; a repeated call with it is applied once.
            patience: seconds to wait for a write; None: the default.

        Raises:
            ToolError: unknown tool, wrong arguments, or what memory refuses.
            Transient: a server does not answer.
        """
        ...
