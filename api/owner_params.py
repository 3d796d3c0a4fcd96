"""Parameters that name a tenant, an owner or a session, checked against the credential, and their types."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, TypeVar
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
    """Read a time as RFC 3339 requires. Pydantic would also accept numbers, as seconds since 1970."""
    if isinstance(value, str) and _RFC3339.fullmatch(value):
        return datetime.fromisoformat(value.upper())
    raise ValueError("expected a time as in RFC 3339, with its zone: 2026-11-20T10:00:00Z")


Id = Annotated[GivenId, Field(json_schema_extra={"pattern": NO_CONTROL_CHARACTERS})]
Moment = Annotated[Instant, BeforeValidator(_rfc3339)]
Ceiling = Annotated[
    Sensitivity, Field(description="The highest sensitivity to read; `secret` needs the scope memory:read-secret.")
]


def _short(name: str) -> FieldInfo:
    field: FieldInfo = Field(description=f"Short for `{name}`.", json_schema_extra={"deprecated": True})
    return field


TenantId = Annotated[Id | None, Field(description="Required when the token has several.")]
ShortTenant = Annotated[Id | None, _short("tenant_id")]
ShortUser = Annotated[Id | None, _short("user_id")]
ShortSession = Annotated[Id | None, _short("session_id")]


def one_of(name: str, value: str | None, short_name: str, short_value: str | None) -> str | None:
    """Return the value of a parameter that has a short form. Both may be given when they are equal."""
    if value is not None and short_value is not None and value != short_value:
        raise invalid_field(short_name, f"is {short_value!r}, but {name} is {value!r}; give {name} alone")
    return short_value if value is None else value


class OfTenant(BaseModel):
    """The tenant of a read. It may be left out when the token allows only one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tenant_id: TenantId = None
    tenant: ShortTenant = None

    def tenant_of(self, caller: Caller) -> str:
        return caller.tenant(one_of("tenant_id", self.tenant_id, "tenant", self.tenant))


class Whose(OfTenant):
    """A tenant and an owner. Each may be left out when the token allows only one."""

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
        """Return the named owner, otherwise the token's only user. A user beside a named owner is checked, too."""
        named = self._named()
        if named is None:
            return Owner(scope="user", id=caller.user(self.given_user))
        if self.given_user is not None:
            caller.check_owner(Owner(scope="user", id=self.given_user))
        caller.check_owner(named)
        return named

    def owner_or_all(self, caller: Caller) -> Owner | None:
        """Return the named owner, or None for all owners of the tenant. A token that is bound to users has to name one
        of them."""
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
    """The tenant of one record, and the highest sensitivity that may be read."""

    ceiling: Ceiling = "internal"

    def tenant_of(self, caller: Caller) -> str:
        """Check tenant and ceiling against the credential."""
        caller.check_ceiling(self.ceiling)
        return super().tenant_of(caller)


SessionHeader = Annotated[
    str | None,
    Header(
        alias="X-Memstream-Session",
        description="The session, percent-encoded; used when the parameter is left out.",
        max_length=128 * 12,
    ),
]
_ID: TypeAdapter[str] = TypeAdapter(GivenId)


def session_of(parameter: str | None, header: str | None) -> str | None:
    if parameter is not None or header is None:
        return parameter
    try:
        header.encode("ascii")
        return _ID.validate_python(unquote(header, errors="strict"))
    except (ValidationError, UnicodeError):
        raise invalid_field("X-Memstream-Session", "is not a session id in percent-encoded UTF-8") from None


def bounded(make: Callable[[], T]) -> T:
    """Turn a service's ValueError about its limits into a problem (422)."""
    try:
        return make()
    except ValueError as error:
        raise invalid_field("request", str(error)) from None
