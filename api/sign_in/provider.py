"""Settings of the identity provider."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from ...schemas.hosts import is_loopback
from .grants import Grant


@dataclass(frozen=True, slots=True)
class Provider:
    """Settings of the identity provider.

    `resource` is the public URL of `/mcp`. It is shown to MCP clients together with the issuer.
    """

    issuer: str
    audiences: tuple[str, ...]
    grants: tuple[Grant, ...]
    resource: str | None = None

    @property
    def metadata_url(self) -> str | None:
        """URL of the protected resource's metadata (RFC 9728)."""
        if self.resource is None:
            return None
        scheme, _, rest = self.resource.partition("://")
        host, slash, path = rest.partition("/")
        return f"{scheme}://{host}/.well-known/oauth-protected-resource{slash}{path}".rstrip("/")


def why_unsafe(url: str) -> str | None:
    """Return why keys must not be fetched from a URL, or None. Without TLS anybody in between could replace keys."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("https", "http") or not host or parts.username is not None:
        return "expected a URL such as https://id.example.com/realms/main"
    if parts.scheme == "http" and not is_loopback(host):
        return "needs https, because whoever can change the answer could sign tokens"
    return None
