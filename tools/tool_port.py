"""The interface of the tools: the identity of a caller, the calls, and their errors. HTTP, MCP and adapters use it."""

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
    """The identity of the caller of a tool. It comes from the credential and the transport, never from the
    arguments."""

    tenant_id: str
    user_id: str
    caller: str
    """Name in the audit trail: the name of a token, or `cli:<user of the machine>`."""
    session_id: str | None = None
    agent_id: str | None = None
    org_id: str | None = None
    group_id: str | None = None
    ceiling: Sensitivity = "internal"
    """The highest sensitivity that may be read."""
    tools: frozenset[str] | None = None
    """The tools that the credential may call. None: all tools of the tenant."""
    may_write: bool = True
    """True when the credential may call tools that change memory."""
    admin: bool = False
    """True when the credential may call tools with the guard `admin`."""
    speaks_for_user: bool = False
    """True when a statement of this caller counts as a statement of the user. Otherwise it counts as a statement of an
    assistant."""
    sees: Callable[[Owner], bool] = sees_all
    """A function that returns whether the credential may read and change the memory of an owner."""

    @property
    def trust(self) -> Trust:
        """The source of a statement by this caller: the user or an assistant."""
        return "user" if self.speaks_for_user else "assistant"

    @property
    def user(self) -> Owner:
        return Owner(scope="user", id=self.user_id)

    @property
    def session(self) -> SessionRef | None:
        return None if self.session_id is None else SessionRef(user_id=self.user_id, session_id=self.session_id)


class ToolError(Exception):
    """A call that was not executed. The message is one sentence that says what to do. `code`: the code of a refused
    edit."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class ToolPort(Protocol):
    """The tools of agents."""

    async def offered(self, identity: ToolIdentity) -> Sequence[ToolSpec]:
        """Return the tools that this caller may call, in the order of the catalogue."""
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
            key: idempotency key; a repeated call with the same key is applied once.
            patience: seconds to wait for a write; None: the default.

        Raises:
            ToolError: the tool is unknown, the arguments are wrong, or memory refuses the call.
            Transient: a server does not answer.
        """
        ...
