"""One call of a tool: the identity of the caller, and the owner or session that a scope means for this caller."""

from __future__ import annotations

from dataclasses import dataclass

from ..schemas.commands import SessionRef
from ..schemas.tools import TRACE_PREFIX, MemoryScope
from ..schemas.turns import Owner
from .tool_port import ToolError, ToolIdentity


class WriteWaits(Exception):
    """A write that was not applied in time. It waits in the log."""

    def __init__(self, command_id: str) -> None:
        super().__init__(command_id)
        self.command_id = command_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call. `key`: the idempotency key, if any. `patience`: seconds to wait for a write."""

    identity: ToolIdentity
    key: str | None
    patience: float

    def owner(self, scope: MemoryScope) -> Owner:
        """Return the owner that a scope means on this connection. Raises ToolError when the connection does not name
        the owner, or the credential has no access to it."""
        owner = self._named_owner(scope)
        if not self.identity.sees(owner):
            raise ToolError(f"this credential has no access to the {owner.scope} of the connection: use scope user")
        return owner

    def may_change(self, owner: Owner) -> bool:
        """Return whether the connection names this owner, and the credential has access to it."""
        identity = self.identity
        named = {
            "user": identity.user_id,
            "agent": identity.agent_id,
            "org": identity.org_id,
            "group": identity.group_id,
        }
        return named.get(owner.scope) == owner.id and identity.sees(owner)

    def _named_owner(self, scope: MemoryScope) -> Owner:
        identity = self.identity
        match scope:
            case "user" | "session" | "thread":
                return identity.user
            case "agent" | "persona":
                return Owner(scope="agent", id=_named(identity.agent_id, "agent", scope))
            case "org" | "organization":
                return Owner(scope="org", id=_named(identity.org_id, "organization", scope))
            case "group":
                return Owner(scope="group", id=_named(identity.group_id, "group", scope))

    def session_id(self, scope: MemoryScope) -> str | None:
        """Return the id of the session that a scope means; None for a scope without a session."""
        return self.session.session_id if scope in ("session", "thread") else None

    @property
    def session(self) -> SessionRef:
        session = self.identity.session
        if session is None:
            raise ToolError("this connection names no session: give one (X-Memstream-Session, _meta or --session)")
        return session


def record_id(trace_id: str) -> str:
    """Return the id of the record that a trace id names."""
    return trace_id.removeprefix(TRACE_PREFIX)


def trace_id(record: str) -> str:
    return TRACE_PREFIX + record


def _named(value: str | None, what: str, scope: str) -> str:
    if value is None:
        raise ToolError(f"the scope {scope} needs the {what} of the connection, and it names none: use another scope")
    return value
