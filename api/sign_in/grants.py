"""Grants: a table that maps the claims of an access token to tenants, users and scopes.

    [[oidc.grant]]
    when = { "realm_access.roles" = "memory-user" }   # claims that a token must have
    tenants_from = "organization"                     # or tenants = ["acme"]
    users_from = "sub"                                # or users = ["u1"]; without both: all users
    scopes = ["turns:write", "memory:read"]

The first grant whose conditions hold gives the rights. A token without such a grant has no rights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from ...schemas.base import GivenId, explain
from ..scopes import Scope

GRANTS_MAX: Final = 200
SPACED: Final = frozenset({"scope", "scp"})
"""Claims that have several values in one text, separated by spaces (RFC 8693, Entra ID)."""

Plain = StrictBool | StrictInt | StrictStr
ClaimPath = Annotated[str, StringConstraints(min_length=1, max_length=256)]
_ID: TypeAdapter[str] = TypeAdapter(GivenId)


class NoGrant(Exception):
    """No grant gives this token rights, or the token lacks a claim that its grant reads."""


@dataclass(frozen=True, slots=True)
class Rights:
    """Rights that a grant gives to a token. `users` None allows all users."""

    tenants: frozenset[str]
    users: frozenset[str] | None
    scopes: frozenset[Scope]


class Grant(BaseModel):
    """Row of the table. Tenants and users are fixed, or values of a claim."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    when: Mapping[ClaimPath, Plain | Annotated[tuple[Plain, ...], Field(min_length=1)]]
    """Claims and their values. A claim that is a list must contain the value. A list of values allows each of them."""
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]
    scopes_from: ClaimPath | None = None
    """Claim that names scopes. The token gets the scopes that are in both `scopes` and the claim."""
    tenants: Annotated[tuple[GivenId, ...], Field(min_length=1)] | None = None
    tenants_from: ClaimPath | None = None
    users: Annotated[tuple[GivenId, ...], Field(min_length=1)] | None = None
    users_from: ClaimPath | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.tenants is None) == (self.tenants_from is None):
            raise ValueError("needs either tenants or tenants_from")
        if self.users is not None and self.users_from is not None:
            raise ValueError("has both users and users_from: keep one of them")
        return self

    def holds(self, claims: Mapping[str, object]) -> bool:
        return all(_meets(values_at(claims, path), wanted) for path, wanted in self.when.items())


class GrantTable(BaseModel):
    """The table `[oidc]` of the settings' file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    grant: Annotated[tuple[Grant, ...], Field(max_length=GRANTS_MAX)] = ()


def read_grants(table: object) -> tuple[tuple[Grant, ...], list[str]]:
    """Read the table `[oidc]`. Return the grants and the problems."""
    try:
        return GrantTable.model_validate(table).grant, []
    except ValidationError as error:
        return (), [f"oidc: {line.replace('Value error, ', '')}" for line in explain(error).splitlines()]


def rights_of(grants: Sequence[Grant], claims: Mapping[str, object]) -> Rights:
    """Return the rights of a token with these claims. Raises NoGrant."""
    for number, grant in enumerate(grants, start=1):
        if grant.holds(claims):
            return _rights(grant, f"grant {number}", claims)
    raise NoGrant("no [[oidc.grant]] of the server's settings matches the claims of this token")


def _rights(grant: Grant, name: str, claims: Mapping[str, object]) -> Rights:
    tenants = frozenset(grant.tenants or ()) if grant.tenants_from is None else _ids(claims, grant.tenants_from, name)
    users = None if grant.users is None else frozenset(grant.users)
    if grant.users_from is not None:
        users = _ids(claims, grant.users_from, name)
    scopes = frozenset(grant.scopes)
    if grant.scopes_from is not None:
        scopes &= frozenset(values_at(claims, grant.scopes_from))
        if not scopes:
            raise NoGrant(f"{name} gives no scope: the token's claim {grant.scopes_from!r} names none of its scopes")
    return Rights(tenants, users, scopes)


def _ids(claims: Mapping[str, object], path: str, name: str) -> frozenset[str]:
    try:
        found = frozenset(_ID.validate_python(value, strict=True) for value in values_at(claims, path))
    except ValidationError:
        raise NoGrant(f"{name} reads the claim {path!r}, whose value is not an id of 1 to 128 characters") from None
    if not found:
        raise NoGrant(f"{name} reads the claim {path!r}, which this token does not have")
    return found


def values_at(claims: Mapping[str, object], path: str) -> tuple[bool | int | str, ...]:
    """Return the values of a claim: the items of a list, or the value itself.

    `path` is the name of a claim, or names of nested objects joined by dots. A claim with the whole name comes first,
    because names may be URLs.
    """
    value: object = claims.get(path)
    if path not in claims:
        value = claims
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, str) and path in SPACED:
        return tuple(value.split())
    values = value if isinstance(value, list) else [value]
    return tuple(each for each in values if isinstance(each, bool | int | str))


def _meets(values: Sequence[Plain], wanted: Plain | Sequence[Plain]) -> bool:
    """Return whether a claim has a wanted value. True and 1 are different values."""
    allowed = wanted if isinstance(wanted, tuple) else (wanted,)
    return any(type(value) is type(each) and value == each for value in values for each in allowed)
