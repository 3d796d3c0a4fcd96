"""Access tokens of one identity provider: a signed JWT becomes a caller, by the table of grants."""

from __future__ import annotations

import json
import math
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import jwt

from ...schemas.errors import StageError
from ..credentials import PREFIX, PROVIDED, Caller, Credentials, Signed, TokenEntry, digest, utc_now
from ..problems import CHALLENGE, Problem, forbidden, of_port, unauthorized
from .grants import NoGrant, rights_of
from .issuer_keys import ACCEPTED, IssuerKeys, UnknownKey
from .provider import Provider

TOKEN_MAX: Final = 16 * 1024
"""Characters of a token. A longer token is refused before anything of it is read."""
LEEWAY: Final = 30.0
"""Seconds by which the clocks of provider and server may differ."""
TYPES: Final = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})
KEY_ID_MAX: Final = 256
NAME_MAX: Final = 128
RETRY_AFTER: Final = 10
"""Seconds in Retry-After while the provider does not answer: the time until the next fetch."""


class WrongToken(Exception):
    """The token is not accepted."""


class ProvidedCredentials(Credentials):
    """Tokens of the file, and access tokens of an identity provider.

    A token with the prefix `mst_` belongs to the file. Any other token is an access token.
    """

    def __init__(
        self,
        file: Credentials,
        provider: Provider,
        *,
        keys: IssuerKeys | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__(file.entries or (), now=now)
        self._file = file
        self.provider = provider
        self.keys = keys or IssuerKeys(provider.issuer)
        metadata = provider.metadata_url
        self.challenge = CHALLENGE if metadata is None else f'{CHALLENGE}, resource_metadata="{metadata}"'

    @property
    def entries(self) -> Sequence[TokenEntry]:
        return self._file.entries or ()

    async def prepare(self) -> None:
        await self.keys.refresh()

    async def admit(self, token: str | None) -> Caller:
        """Return the caller of a request. Raises Problem: 401 for a token that is not accepted, 403 for a token without
        a grant, 503 if its key is unknown and the provider does not answer."""
        if token is None or token.startswith(PREFIX):
            return self.caller(token)
        try:
            claims, signed = await self._verified(token)
        except WrongToken as wrong:
            raise unauthorized(str(wrong), challenge=f'{self.challenge}, error="invalid_token"') from None
        except StageError as away:
            raise of_port(away, retry_after=RETRY_AFTER) from None
        name = _name(claims)
        try:
            rights = rights_of(self.provider.grants, claims)
        except NoGrant as none:
            raise _denied(f"{none} (subject {name.removeprefix(PROVIDED)!r})", who=name) from None
        return Caller(name, rights.scopes, rights.tenants, rights.users, digest(token), signed)

    def holds(self, caller: Caller) -> bool:
        """Return whether a caller's token is still valid: not expired, and its key is not withdrawn."""
        if caller.signed is None:
            return super().holds(caller)
        return self._now().timestamp() < caller.signed.until and self.keys.has(caller.signed.key_id)

    async def _verified(self, token: str) -> tuple[Mapping[str, Any], Signed]:
        """Return the claims of a token, once. Raises WrongToken and Transient."""
        header = _header(token)
        algorithm, key_id = header.get("alg"), header.get("kid", "")
        if not isinstance(algorithm, str) or algorithm not in ACCEPTED:
            accepted = ", ".join(sorted(ACCEPTED))
            raise WrongToken(f"the token's algorithm is not accepted; accepted are {accepted}")
        if str(header.get("typ", "")).lower() not in TYPES or "crit" in header:
            raise WrongToken("the token is not an access token: its header has another typ, or crit")
        if not isinstance(key_id, str) or len(key_id) > KEY_ID_MAX:
            raise WrongToken("the token's kid is not a text of at most 256 characters")
        try:
            key = await self.keys.key(key_id, algorithm)
        except UnknownKey:
            raise WrongToken("the token's key (kid) is not among the identity provider's keys") from None
        claims = self._claims(token, key, algorithm)
        return claims, Signed(self._until(claims), str(key.key_id or ""))

    def _claims(self, token: str, key: jwt.PyJWK, algorithm: str) -> Mapping[str, Any]:
        expected = self.provider
        try:
            return jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=expected.audiences,
                issuer=expected.issuer,
                options={
                    "require": ["iss", "aud", "exp"],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.InvalidSignatureError:
            raise WrongToken("the token's signature is wrong") from None
        except jwt.InvalidIssuerError:
            raise WrongToken(f"the token is from another issuer than {expected.issuer}") from None
        except jwt.InvalidAudienceError:
            audiences = " or ".join(expected.audiences)
            raise WrongToken(f"the token is for another audience (aud) than {audiences}") from None
        except jwt.MissingRequiredClaimError as missing:
            raise WrongToken(f"the token has no claim {missing.claim!r}") from None
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError, OverflowError):
            raise WrongToken(MALFORMED) from None

    def _until(self, claims: Mapping[str, Any]) -> float:
        """Return the time from which the token is refused. Raises WrongToken if that time has passed, or if the token
        is not valid yet."""
        now = self._now().timestamp()
        until = _time(claims, "exp") + LEEWAY
        if until <= now:
            raise WrongToken("the token has expired: the caller must get a new one from the identity provider")
        for name in ("nbf", "iat"):
            if name in claims and _time(claims, name) - LEEWAY > now:
                raise WrongToken(f"the token is not valid yet ({name}): compare the clocks of provider and server")
        return until


MALFORMED: Final = (
    "the token is neither one of memstream (mst_…) nor a signed JWT: ask the identity provider for an access token for "
    "memstream's audience"
)


def _header(token: str) -> Mapping[str, Any]:
    """Return the header of a token. Raises WrongToken if it cannot be a signed JWT."""
    if len(token) > TOKEN_MAX:
        raise WrongToken(f"the token has more than {TOKEN_MAX} characters: let the provider put fewer claims into it")
    parts = token.split(".")
    if not token.isascii() or len(parts) != 3 or not all(parts):
        raise WrongToken(MALFORMED)
    try:
        header = json.loads(urlsafe_b64decode(parts[0] + "=" * (-len(parts[0]) % 4)))
    except (ValueError, RecursionError):
        raise WrongToken(MALFORMED) from None
    if not isinstance(header, dict):
        raise WrongToken(MALFORMED)
    return header


def _time(claims: Mapping[str, Any], name: str) -> float:
    value = claims[name]
    try:
        moment = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:
        moment = math.nan
    if not math.isfinite(moment):
        raise WrongToken(f"the token's claim {name!r} is not a time in seconds")
    return moment


def _name(claims: Mapping[str, Any]) -> str:
    """Return the name of a token's caller, from its subject or its client. It begins with `oidc:`, so it is never the
    name of a token in the file. A long subject is named by its SHA-256."""
    named = (claims.get(each) for each in ("sub", "client_id", "azp", "appid"))
    subject = next((each for each in named if isinstance(each, str) and each), "unknown")
    name = PROVIDED + subject
    return name if len(name) <= NAME_MAX and name.isprintable() else PROVIDED + digest(subject)


def _denied(detail: str, *, who: str) -> Problem:
    problem = forbidden(detail)
    problem.who = who
    return problem
