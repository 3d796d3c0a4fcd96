"""An identity provider for tests: keys, signed tokens, and its two documents over HTTP."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from memstream.api.sign_in.issuer_keys import Keys, usable_keys
from memstream.schemas.errors import Transient

AUDIENCE = "memstream"


@cache
def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return the key of this name. Making one takes a tenth of a second."""
    return rsa.generate_private_key(65537, bits)


@cache
def ec_key(name: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def ed_key(name: str) -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def public(key: Any, **more: Any) -> dict[str, Any]:
    """Return the JSON Web Key of the public half."""
    kinds = ((rsa.RSAPrivateKey, RSAAlgorithm), (ec.EllipticCurvePrivateKey, ECAlgorithm))
    algorithm: Any = next((each for kind, each in kinds if isinstance(key, kind)), OKPAlgorithm)
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), **more}


def segment(value: object) -> str:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


class IdentityProvider:
    """An issuer with the keys in `published`. `away` is the error of a fetch; `fetches` counts fetches."""

    def __init__(self, issuer: str = "https://id.example.com/realms/main") -> None:
        self.issuer = issuer
        self.published: list[dict[str, Any]] = [public(rsa_key("first"), kid="first")]
        self.away: Transient | None = None
        self.fetches = 0
        self.jwks_uri: str | None = None
        """Address in the discovery document; None: the address of `keys`."""

    def claims(self, **more: Any) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": AUDIENCE, "sub": "ana", "iat": now, "exp": now + 300}
        return {name: value for name, value in {**claims, **more}.items() if value is not None}

    def token(
        self,
        *,
        key: Any = None,
        kid: str | None = "first",
        alg: str = "RS256",
        header: Mapping[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """Return a signed token. A claim that is None is left out."""
        headers = {**({} if kid is None else {"kid": kid}), **(header or {})}
        return jwt.encode(self.claims(**claims), key or rsa_key("first"), alg, headers=headers)

    async def fetch(self, issuer: str) -> Keys:
        assert issuer == self.issuer
        self.fetches += 1
        if self.away is not None:
            raise self.away
        return usable_keys(self.published)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[IdentityProvider]:
        """Serve the documents on a free port, whose address becomes the issuer."""
        discovery: dict[str, Any] = {}

        async def configuration(_: web.Request) -> web.Response:
            return web.json_response(discovery | ({} if self.jwks_uri is None else {"jwks_uri": self.jwks_uri}))

        async def keys(_: web.Request) -> web.Response:
            self.fetches += 1
            return web.json_response({"keys": self.published}) if self.away is None else web.Response(status=500)

        app = web.Application()
        app.router.add_get("/realms/main/.well-known/openid-configuration", configuration)
        app.router.add_get("/realms/main/keys", keys)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            port = runner.addresses[0][1]
            self.issuer = f"http://127.0.0.1:{port}/realms/main"
            discovery |= {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}
            yield self
        finally:
            await runner.cleanup()
