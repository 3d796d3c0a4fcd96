"""Parameters for tenant, owner and session, with their types and their checks against the credential."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import unquote

from fastapi import Header, Path
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from ..schemas.base import GivenId, Instant
from ..schemas.turns import Owner, Scope, Sensitivity
from .credentials import Caller
from .openapi import NO_CONTROL_CHARACTERS
from .problems import invalid_field

T = TypeVar("T")
_RFC3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)


def _rfc3339(value: Any) -> Any:
    """Parse a time in RFC 3339 format. Pydantic would also accept numbers, as seconds since 1970."""
    if isinstance(value, datetime):  # a field of another model
        return value
    if isinstance(value, str) and _RFC3339.fullmatch(value):
        return datetime.fromisoformat(value.upper())
    raise ValueError("expected an RFC 3339 time with a zone, such as 2026-11-20T10:00:00Z")


Id = Annotated[GivenId, Field(json_schema_extra={"pattern": NO_CONTROL_CHARACTERS})]
Moment = Annotated[Instant, BeforeValidator(_rfc3339)]
Ceiling = Annotated[
    Sensitivity, Field(description="The highest sensitivity to read; `secret` needs the scope memory:read-secret.")
]


def _short(name: str) -> FieldInfo:
    field: FieldInfo = Field(description=f"Short for `{name}`.", json_schema_extra={"deprecated": True})
    return field


TenantId = Annotated[Id | None, Field(description="Required if the token has several tenants.")]
ShortTenant = Annotated[Id | None, _short("tenant_id")]
ShortUser = Annotated[Id | None, _short("user_id")]
ShortSession = Annotated[Id | None, _short("session_id")]


def one_of(name: str, value: str | None, short_name: str, short_value: str | None) -> str | None:
    """Return the value of a parameter that has a short form. Raises Problem if both forms are given and differ."""
    if value is not None and short_value is not None and value != short_value:
        raise invalid_field(short_name, f"is {short_value!r}, but {name} is {value!r}; give only {name}")
    return short_value if value is None else value


class OfTenant(BaseModel):
    """Tenant of a request. It may be omitted if the token allows only one tenant."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tenant_id: TenantId = None
    tenant: ShortTenant = None

    def tenant_of(self, caller: Caller) -> str:
        return caller.tenant(one_of("tenant_id", self.tenant_id, "tenant", self.tenant))


class Whose(OfTenant):
    """Tenant and owner of a request. Each may be omitted if the token allows only one."""

    user_id: Annotated[Id | None, Field(description="The owner; with `scope` and `id`, the user of the session.")] = (
        None
    )
    user: ShortUser = None
    scope: Annotated[Scope | None, Field(description="Together with `id`: an owner that is not a user.")] = None
    id: Id | None = None

    @property
    def given_user(self) -> str | None:
        return one_of("user_id", self.user_id, "user", self.user)

    def owner(self, caller: Caller) -> Owner:
        """Return the named owner, or else the token's only user. Check that the token allows the owner and, if the
        request also names a user, this user."""
        named = self._named()
        if named is None:
            return Owner(scope="user", id=caller.user(self.given_user))
        if self.given_user is not None:
            caller.check_owner(Owner(scope="user", id=self.given_user))
        caller.check_owner(named)
        return named

    def owner_or_all(self, caller: Caller) -> Owner | None:
        """Return the named owner, or None for all owners of the tenant. A request must name a user if its token is
        bound to several users."""
        everybody = self._named() is None and self.given_user is None and caller.users is None
        return None if everybody else self.owner(caller)

    def _named(self) -> Owner | None:
        if (self.scope is None) != (self.id is None):
            raise invalid_field("scope" if self.id is None else "id", "scope and id go together")
        if self.scope is None or self.id is None:
            return None
        return Owner(scope=self.scope, id=self.id)


RecordId = Annotated[str, Path(min_length=1, max_length=64)]


class RecordQuery(OfTenant):
    """Tenant of one record, and the highest sensitivity to read."""

    ceiling: Ceiling = "internal"

    def tenant_of(self, caller: Caller) -> str:
        """Return the tenant. Check tenant and ceiling against the credential."""
        tenant_id = super().tenant_of(caller)
        caller.check_ceiling(self.ceiling, tenant_id)
        return tenant_id


SESSION_HEADER_MAX: Final = 128 * 12
"""Maximum number of characters of X-Memstream-Session: a character of an id has at most four bytes, each `%XX`."""
SessionHeader = Annotated[
    str | None,
    Header(
        alias="X-Memstream-Session",
        description="The session, percent-encoded; used if the parameter is omitted.",
        max_length=SESSION_HEADER_MAX,
    ),
]
_ID: TypeAdapter[str] = TypeAdapter(GivenId)


def session_of(parameter: str | None, header: str | None) -> str | None:
    """Return the session. Raises Problem for a header that names none, or that is too long for a session."""
    if header is not None and len(header) > SESSION_HEADER_MAX:
        raise invalid_field("X-Memstream-Session", f"has more than {SESSION_HEADER_MAX} characters")
    if parameter is not None or header is None:
        return parameter
    try:
        header.encode("ascii")
        return _ID.validate_python(unquote(header, errors="strict"))
    except (ValidationError, UnicodeError):
        raise invalid_field("X-Memstream-Session", "is not a session id in percent-encoded UTF-8") from None


def bounded(make: Callable[[], T]) -> T:
    """Return the result of `make`. Convert its ValueError about a limit to a Problem (422)."""
    try:
        return make()
    except ValueError as error:
        raise invalid_field("request", str(error)) from None
