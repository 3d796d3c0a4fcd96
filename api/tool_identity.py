"""Identity of a tool's caller over HTTP, from the credential and the headers, never from the arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from pydantic import TypeAdapter, ValidationError

from ..schemas.base import GivenId
from ..tools.tool_port import ToolIdentity
from .credentials import Caller
from .problems import invalid_field

TENANT_HEADER: Final = "X-Memstream-Tenant"
USER_HEADER: Final = "X-Memstream-User"
SESSION_HEADER: Final = "X-Memstream-Session"
AGENT_HEADER: Final = "X-Memstream-Agent"
ORG_HEADER: Final = "X-Memstream-Org"
GROUP_HEADER: Final = "X-Memstream-Group"
"""Headers of the identity. Each header has a percent-encoded id. The header of the tenant or the user may be omitted if
the token allows only one tenant or user."""
_ID: TypeAdapter[str] = TypeAdapter(GivenId)


def identity_of(caller: Caller, headers: Mapping[str, str]) -> ToolIdentity:
    """Return the identity of a request. Raises Problem if an id is missing, invalid or not allowed for the caller."""
    return ToolIdentity(
        tenant_id=caller.tenant(_id(headers, TENANT_HEADER)),
        user_id=caller.user(_id(headers, USER_HEADER)),
        caller=caller.name,
        session_id=_id(headers, SESSION_HEADER),
        agent_id=_id(headers, AGENT_HEADER),
        org_id=_id(headers, ORG_HEADER),
        group_id=_id(headers, GROUP_HEADER),
        may_write="memory:write" in caller.scopes,
        admin="memory:admin" in caller.scopes,
        speaks_for_user="memory:speak-for-user" in caller.scopes,
        sees=caller.sees,
    )


def _id(headers: Mapping[str, str], name: str) -> str | None:
    """Return the id in a header, or None. `headers` must ignore the case of names."""
    given = headers.get(name)
    if given is None:
        return None
    try:
        given.encode("ascii")
        return _ID.validate_python(unquote(given, errors="strict"))
    except (ValidationError, UnicodeError):
        raise invalid_field(name, "is not an id of 1 to 128 characters in percent-encoded UTF-8") from None
