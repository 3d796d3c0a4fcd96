"""Bearer tokens of a file, with their scopes, tenants and users. api/sign_in/ adds tokens of an identity provider.

A TOML file has the SHA-256 of each token, never the token itself. The identity of a caller (tenant, user) comes from
the token and from parameters that are checked against it, never from text content.

    [[token]]
    name = "chat service"
    sha256 = "…"
    tenants = ["acme"]
    scopes = ["turns:write", "memory:read"]
    users = ["u1"]                            # optional: only memory of these users, no shared memory
    expires_at = 2027-01-31T00:00:00Z         # optional: from then on the token is refused
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import structlog
from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)
from starlette.datastructures import Headers
from starlette.types import Scope as ASGIScope

from ..schemas.base import GivenId, Instant, explain
from ..schemas.text_files import toml_of
from ..schemas.turns import Owner, Sensitivity
from ..tools.audit import audit
from .problems import CHALLENGE, Problem, forbidden, invalid_field, unauthorized
from .scopes import SCOPES, Scope

log = structlog.get_logger(__name__)

PREFIX = "mst_"
"""Prefix of every token, by which scanners for leaked secrets recognise tokens."""
RANDOM_BYTES = 32
ADMITTED: Final = "admitted"
"""Key in the state of a request: its caller, or the problem of its credential."""
TOKENS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Signed:
    """End of an access token's validity, in seconds since 1970, and the id of the key that signed it."""

    until: float
    key_id: str


@dataclass(frozen=True, slots=True)
class Caller:
    """Rights of one credential. `tenants` None allows all tenants, and `users` None allows all users."""

    name: str
    scopes: frozenset[Scope]
    tenants: frozenset[str] | None = None
    users: frozenset[str] | None = None
    sha256: str = field(default="", repr=False, compare=False)
    """SHA-256 of the token. Two tokens with the same name are two callers."""
    signed: Signed | None = field(default=None, repr=False, compare=False)
    """None unless the token comes from an identity provider."""
    action: str = field(default="", repr=False, compare=False)
    """Method and route of the request, for the audit trail."""

    def require(self, scope: Scope) -> None:
        if scope not in self.scopes:
            raise forbidden(f"the token {self.name!r} lacks the scope {scope}")

    def tenant(self, requested: str | None) -> str:
        """Return the requested tenant, or the token's only tenant. Raises Problem if neither exists, or if the token
        does not allow the tenant."""
        if requested is not None:
            if self.tenants is not None and requested not in self.tenants:
                raise forbidden(f"the token {self.name!r} has no access to the tenant of this request")
            return requested
        only = _only(self.tenants)
        if only is None:
            raise invalid_field("tenant", "is required, because the token does not have exactly one tenant")
        return only

    def user(self, requested: str | None) -> str:
        """Return the requested user, or the token's only user. Raises Problem if neither exists, or if the token does
        not allow the user."""
        user = requested if requested is not None else _only(self.users)
        if user is None:
            raise invalid_field("user", "is required, because the token does not have exactly one user")
        self.check_owner(Owner(scope="user", id=user))
        return user

    def check_owner(self, owner: Owner) -> None:
        if not self.sees(owner):
            raise forbidden(f"the token {self.name!r} has no access to the {owner.scope} of this request")

    def sees(self, owner: Owner) -> bool:
        """Return whether this caller may see the owner's memory.

        A token that is bound to users sees no memory of agents, organisations or groups.
        """
        return self.users is None or (owner.scope == "user" and owner.id in self.users)

    def check_ceiling(self, ceiling: Sensitivity, tenant_id: str | None, owner: Owner | None = None) -> None:
        """Check the highest sensitivity of a read. A read of `secret` is written to the audit trail."""
        if ceiling == "secret":
            self.require("memory:read-secret")
            audit(self.action, who=self.name, tenant_id=tenant_id, owner=owner, result="allowed", ceiling=ceiling)


ANYONE = Caller("anyone", frozenset(SCOPES) - {"memory:speak-for-user"})
"""Caller of a server without a token file. Such a server listens only on the loopback interface, and local processes
can read the memory's folder anyway. The scope `memory:speak-for-user` is excluded, so a statement in a tool call counts
as the assistant's statement, not as the user's."""


def _only(ids: frozenset[str] | None) -> str | None:
    return next(iter(ids)) if ids is not None and len(ids) == 1 else None


PROVIDED: Final = "oidc:"
"""Prefix of the names of callers with an access token of the identity provider. The subject follows."""
RESERVED: Final = ("/memstream/", "cli:", PROVIDED)
"""Prefixes of names in `issued_by` and in the audit log: stages, command line users, subjects of the identity provider.
The name of a token must not begin with them."""


def unreserved(name: str) -> str:
    """Return the given name of a token. Raises ValueError if the name has a reserved prefix."""
    if name.startswith(RESERVED):
        raise ValueError(
            f"must not begin with {' or '.join(RESERVED)}: these names mean stages, the command line and subjects of "
            "an identity provider"
        )
    return name


def _with_zone(value: object) -> datetime:
    """Return a time of the token file. Raises ValueError if it has no zone: the file does not say whose midnight."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError("must be a time with its zone, such as 2027-01-31T00:00:00Z")
    return moment


def note_caller(state: MutableMapping[str, Any], caller: Caller | None) -> None:
    """Note the name of a request's caller, and its only tenant, for the audit log. None: the caller is unknown."""
    state["caller"], state["tenant"] = ("unknown", None) if caller is None else (caller.name, _only(caller.tenants))


class TokenEntry(BaseModel):
    """Entry of one token in the token file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, StringConstraints(min_length=1, max_length=128), AfterValidator(unreserved)]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    tenants: Annotated[tuple[GivenId, ...], Field(min_length=1)]
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]
    users: Annotated[tuple[GivenId, ...], Field(min_length=1)] | None = None
    expires_at: Annotated[Instant, BeforeValidator(_with_zone)] | None = None

    def expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    def caller(self) -> Caller:
        users = None if self.users is None else frozenset(self.users)
        return Caller(self.name, frozenset(self.scopes), frozenset(self.tenants), users, self.sha256)


class TokenFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    token: Annotated[tuple[TokenEntry, ...], Field(min_length=1, max_length=TOKENS_MAX)]


def utc_now() -> datetime:
    return datetime.now(UTC)


class Credentials:
    """Known tokens, by their digests. With `entries` None, no token is required. `now` returns the current time."""

    challenge: str = CHALLENGE
    """WWW-Authenticate header of a 401 answer. Credentials of an identity provider add the URL of their metadata (RFC
    9728, `resource_metadata`), which shows a client of `/mcp` where to get a token."""

    def __init__(self, entries: Sequence[TokenEntry] | None, *, now: Callable[[], datetime] = utc_now) -> None:
        self._entries = entries
        self._now = now
        self._reported: set[TokenEntry] = set()

    @property
    def entries(self) -> Sequence[TokenEntry] | None:
        return self._entries

    @property
    def open(self) -> bool:
        """True when no token is required."""
        return self._entries is None

    @classmethod
    def read(cls, text: str) -> Credentials:
        """Parse the text of a token file. Raises ValueError, whose message never contains a digest."""
        return Credentials(read_entries(text.encode()))

    def find(self, token: str) -> Caller | None:
        """Return the caller of a token of the file that has not expired, or None."""
        entry = self._entry(token)
        return None if entry is None or entry.expired(self._now()) else entry.caller()

    def _entry(self, token: str) -> TokenEntry | None:
        """Return the entry of a token, or None.

        The token is compared with every entry, each in constant time, so that the duration reveals nothing.
        """
        given = digest(token)
        found = [entry for entry in self.entries or () if hmac.compare_digest(entry.sha256, given)]
        return found[0] if found else None

    def caller(self, token: str | None) -> Caller:
        """Return the caller of a request. Raises Problem (401) whose detail names the cause: the token is missing,
        unknown or expired."""
        if self.open:
            return ANYONE
        if token is None:
            raise unauthorized("a bearer token is needed: Authorization: Bearer <token>", challenge=self.challenge)
        entry = self._entry(token)
        if entry is None:
            raise unauthorized("unknown token; `memstream tokens new` creates one", challenge=self.challenge)
        if entry.expired(self._now()):
            self._report(entry)
            why = f"the token {entry.name!r} expired at {entry.expires_at:%Y-%m-%dT%H:%M:%SZ}"
            raise unauthorized(f"{why}; `memstream tokens new` creates another", challenge=self.challenge)
        return entry.caller()

    async def prepare(self) -> None:
        """Load what checking a token needs. A failure is logged."""

    async def caller_of(self, scope: ASGIScope) -> Caller:
        """Return the caller of a request, and note its name for the audit log. Raises Problem.

        The credential is checked once per request, by the first call (api/admission.py).
        """
        state = scope.setdefault("state", {})
        if ADMITTED not in state:
            try:
                state[ADMITTED] = await self.admit(bearer_token(Headers(scope=scope)))
            except Problem as problem:
                state[ADMITTED] = problem
        found: Caller | Problem = state[ADMITTED]
        if isinstance(found, Problem):
            raise found
        note_caller(state, found)
        return found

    async def admit(self, token: str | None) -> Caller:
        """Return the caller with this token. Raises Problem."""
        return self.caller(token)

    def _report(self, entry: TokenEntry) -> None:
        """Log the use of an expired token, once for each entry."""
        if entry not in self._reported:
            self._reported.add(entry)
            remedy = "give the caller a new token (memstream tokens new)"
            log.warning("token_expired", token=entry.name, expires_at=str(entry.expires_at), remedy=remedy)

    def holds(self, caller: Caller) -> bool:
        """Return whether the caller's token still exists with the same rights, and has not expired."""
        return self.open or any(
            (entry.sha256, entry.caller()) == (caller.sha256, caller) and not entry.expired(self._now())
            for entry in self.entries or ()
        )


class FileCredentials(Credentials):
    """Tokens in a file. The file is read again when it changes.

    Each use compares the file's modification time, inode and size. If the changed file cannot be read, the previous
    tokens stay valid, because an editor may write a file in two steps. The log reports the error once.
    """

    def __init__(self, path: Path, *, now: Callable[[], datetime] = utc_now) -> None:
        """Read the file. Raises OSError and ValueError."""
        self._path = path
        self._seen = self._mark()
        super().__init__(read_entries(path.read_bytes()), now=now)

    @property
    def entries(self) -> Sequence[TokenEntry] | None:
        mark = self._mark()
        if mark != self._seen:
            self._seen = mark
            self._read_again()
        return self._entries

    def _mark(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def _read_again(self) -> None:
        try:
            self._entries = read_entries(self._path.read_bytes())
        except (OSError, ValueError) as error:
            remedy = "correct the file; the previous tokens stay valid"
            log.error("tokens_not_read", file=str(self._path), why=str(error), remedy=remedy)
            return
        log.warning("tokens_read_again", file=str(self._path), tokens=len(self._entries))


def read_entries(value: bytes) -> Sequence[TokenEntry]:
    """Parse the entries of a token file. Raises ValueError, whose message never contains a digest."""
    try:
        entries = TokenFile.model_validate(toml_of(value)).token
    except ValidationError as error:
        raise ValueError(explain(error)) from None
    if len({entry.sha256 for entry in entries}) < len(entries):
        raise ValueError("contains a token twice")
    return entries


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def new_token() -> str:
    return PREFIX + secrets.token_urlsafe(RANDOM_BYTES)


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """Return the bearer token of a request, or None. `headers` must ignore the case of names."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return (token.strip() or None) if scheme.lower() == "bearer" else None


BEARER = HTTPBearer(
    auto_error=False,
    description="A token from the file that MEMSTREAM_TOKENS names, or an access token of the identity provider.",
)


def caller_with(credentials: Credentials, *scopes: Scope) -> Callable[..., Caller]:
    """Return a route dependency that provides the caller and requires these scopes."""

    async def caller(
        request: Request, described: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]
    ) -> Caller:
        found = await credentials.caller_of(request.scope)
        found = replace(found, action=f"{request.method} {getattr(request.scope.get('route'), 'path', '')}")
        for scope in scopes:
            found.require(scope)
        return found

    return caller  # type: ignore[return-value]
