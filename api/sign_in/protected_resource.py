"""Metadata of the protected resource `/mcp` (RFC 9728), and the metric of the identity provider's keys."""

from __future__ import annotations

from fastapi import FastAPI
from mcp.server.auth.routes import create_protected_resource_routes
from prometheus_client import CollectorRegistry, Gauge
from pydantic import AnyHttpUrl

from ..scopes import SCOPES
from .access_tokens import ProvidedCredentials


def keys_age(registry: CollectorRegistry) -> Gauge:
    return Gauge("memstream_oidc_keys_age_seconds", "Since the identity provider's keys were read", registry=registry)


def install(app: FastAPI, credentials: ProvidedCredentials, registry: CollectorRegistry) -> None:
    """Add the route of the metadata, without which a hosted MCP client does not know where to sign in."""
    keys_age(registry).set_function(credentials.keys.age)
    provider = credentials.provider
    if provider.resource is None:
        return
    given = {scope for grant in provider.grants for scope in grant.scopes}
    app.router.routes.extend(
        create_protected_resource_routes(
            AnyHttpUrl(provider.resource),
            [AnyHttpUrl(provider.issuer)],
            scopes_supported=[scope for scope in SCOPES if scope in given],
            resource_name="memstream",
        )
    )
