"""Public keys of an identity provider: fetched, cached, and refreshed when a token names an unknown key.

Known keys are used without a request, and refreshed in the background when they are older than FRESH_SECONDS. While the
provider does not answer, known keys are used for KEPT_SECONDS. So a provider that is away refuses only new keys.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import httpx
import structlog
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from ...client.errors import Misconfigured
from ...client.proxies import open_http
from ...schemas.errors import Transient
from .provider import why_elsewhere

log = structlog.get_logger(__name__)

COMPONENT: Final = "identity provider"
ALGORITHMS: Final[Mapping[str, tuple[str, ...]]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC P-256": ("ES256",),
    "EC P-384": ("ES384",),
    "EC P-521": ("ES512",),
    "OKP Ed25519": ("EdDSA",),
}
"""Accepted signature algorithms by type of key. All are asymmetric: a public key can never verify a token that anybody
else than the provider could sign."""
ACCEPTED: Final = frozenset(name for names in ALGORITHMS.values() for name in names)
PRIVATE_PARTS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
"""Members of a JWK that only a private or symmetric key has (RFC 7518)."""
FRESH_SECONDS: Final = 600.0
KEPT_SECONDS: Final = 86_400.0
AGAIN_SECONDS: Final = 10.0
"""Minimum time between two fetches, whatever tokens arrive."""
FETCH_SECONDS: Final = 5.0
"""Time limit of a fetch: both documents."""
BODY_MAX: Final = 512 * 1024
KEYS_MAX: Final = 100
DISCOVERY: Final = "/.well-known/openid-configuration"

Keys = Mapping[tuple[str, str], PyJWK]
"""Keys by key id and algorithm. A key without an id has the id ''."""
FetchKeys = Callable[[str], Awaitable[Keys]]


class UnknownKey(Exception):
    """The provider publishes no key with this id for this algorithm."""


class IssuerKeys:
    """Keys of one issuer. Only the event loop's thread may use the state. `clock` is monotonic."""

    def __init__(
        self, issuer: str, *, fetch: FetchKeys | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._issuer = issuer
        self._fetch = fetch_keys if fetch is None else fetch
        self._clock = clock
        self._keys: Keys = {}
        self._read_at: float | None = None
        self._tried_at: float | None = None
        self._failed: Transient | None = None
        self._fetching: asyncio.Task[None] | None = None

    async def key(self, key_id: str, algorithm: str) -> PyJWK:
        """Return a key. Raises UnknownKey, and Transient if the keys are needed and the provider does not answer."""
        found = self._known(key_id, algorithm)
        if found is None:
            await self.refresh()
            found = self._known(key_id, algorithm)
        elif self._age() > FRESH_SECONDS and self._may_try():
            self._begin()
        if found is not None:
            return found
        if self._failed is not None:
            raise self._failed
        raise UnknownKey

    def has(self, key_id: str) -> bool:
        """Return whether the provider still publishes a key with this id, as far as this process knows."""
        return self._age() <= KEPT_SECONDS and any(key_id == known for known, _ in self._keys)

    def age(self) -> float:
        """Return the seconds since the keys were read; 0 before the first attempt."""
        return 0.0 if self._tried_at is None else self._age()

    async def refresh(self) -> None:
        """Fetch the keys, unless they were fetched a moment ago. Concurrent calls share one fetch."""
        if self._fetching is None and self._may_try():
            self._begin()
        if self._fetching is not None:
            await asyncio.shield(self._fetching)

    def _known(self, key_id: str, algorithm: str) -> PyJWK | None:
        if self._age() > KEPT_SECONDS:
            return None
        if key_id:
            return self._keys.get((key_id, algorithm))
        fitting = [key for (_, name), key in self._keys.items() if name == algorithm]
        return fitting[0] if len(fitting) == 1 else None

    def _age(self) -> float:
        return float("inf") if self._read_at is None else self._clock() - self._read_at

    def _may_try(self) -> bool:
        return self._tried_at is None or self._clock() - self._tried_at >= AGAIN_SECONDS

    def _begin(self) -> None:
        if self._fetching is None:
            self._tried_at = self._clock()
            self._fetching = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            keys = await self._fetch(self._issuer)
        except Transient as failed:
            self._failed = failed
            log.warning("oidc_keys_not_read", issuer=self._issuer, why=str(failed), remedy=failed.remedy)
        else:
            if keys.keys() != self._keys.keys():
                ids = sorted({key_id for key_id, _ in keys})
                log.info("oidc_keys_read", issuer=self._issuer, key_ids=ids)
            self._keys, self._read_at, self._failed = keys, self._clock(), None
        finally:
            self._fetching = None


# ------------------------------------------------------------------------------------------------ fetching
async def fetch_keys(issuer: str) -> Keys:
    """Fetch the keys that the discovery document of an issuer names. Raises Transient with the cause."""
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            discovered = await _document(issuer.rstrip("/") + DISCOVERY)
            if discovered.get("issuer") != issuer:
                named = str(discovered.get("issuer"))[:200]
                raise _away(f"its discovery document names the issuer {named!r}: MEMSTREAM_OIDC_ISSUER must be equal")
            address = discovered.get("jwks_uri")
            if not isinstance(address, str):
                raise _away("its discovery document has no jwks_uri")
            why = await why_elsewhere(address, issuer=issuer)
            if why is not None:
                raise _away(f"the jwks_uri of its discovery document, {address[:200]!r}, {why}")
            found = await _document(address)
    except TimeoutError:
        raise _away(f"no answer within {FETCH_SECONDS:g} s") from None
    keys = usable_keys(found.get("keys"))
    if not keys:
        raise _away(f"{address} has no usable key: an RSA key of 2048 bits or more, EC or Ed25519, for signatures")
    return keys


async def _document(url: str) -> Mapping[str, Any]:
    try:
        async with open_http(httpx.URL(url), timeout=FETCH_SECONDS) as http, http.stream("GET", url) as answer:
            if answer.status_code != httpx.codes.OK:
                raise _away(f"{url} answers {answer.status_code}")
            body = bytearray()
            async for part in answer.aiter_bytes():
                body += part
                if len(body) > BODY_MAX:
                    raise _away(f"{url} has more than {BODY_MAX} bytes")
        document = json.loads(bytes(body))
    except (httpx.HTTPError, httpx.InvalidURL, Misconfigured) as error:
        raise _away(f"{url}: {str(error) or type(error).__name__}") from error
    except (ValueError, RecursionError):
        raise _away(f"{url} does not answer JSON") from None
    if not isinstance(document, dict):
        raise _away(f"{url} does not answer a JSON object")
    return document


def _away(why: str) -> Transient:
    return Transient(COMPONENT, why, remedy="check MEMSTREAM_OIDC_ISSUER with `memstream doctor`")


def usable_keys(listed: object) -> Keys:
    """Return the keys of a JWK set that may verify tokens. Symmetric keys, keys for encryption, weak keys, published
    private keys and unknown types are left out. So are different keys with the same id and algorithm."""
    made: dict[tuple[str, str], PyJWK] = {}
    different: dict[tuple[str, str], set[bytes]] = {}
    for each in listed[:KEYS_MAX] if isinstance(listed, list) else ():
        key_id = each.get("kid", "") if isinstance(each, dict) else None
        if not isinstance(key_id, str) or not _may_verify(each):
            continue
        for algorithm in _algorithms(each):
            try:
                key = PyJWK(each, algorithm)
            except (PyJWTError, ValueError, TypeError, RecursionError):
                continue
            if not key.Algorithm.check_key_length(key.key):
                made[key_id, algorithm] = key
                encoded = key.key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
                different.setdefault((key_id, algorithm), set()).add(encoded)
    return {place: key for place, key in made.items() if len(different[place]) == 1}


def _may_verify(key: Mapping[str, Any]) -> bool:
    """Return whether a key is for signatures, and only its public half is published."""
    operations = key.get("key_ops", ["verify"])
    return (
        key.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
        and not key.keys() & PRIVATE_PARTS
    )


def _algorithms(key: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the algorithm that a key names, or else all algorithms of its type."""
    kind = key.get("kty")
    of_kind = ALGORITHMS.get(f"{kind}" if kind == "RSA" else f"{kind} {key.get('crv')}", ())
    named = key.get("alg")
    return of_kind if named is None else tuple(each for each in of_kind if each == named)
