"""Settings of the identity provider."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

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


_PORTS: Final = {"https": 443, "http": 80}
_TRANSLATED: Final = ipaddress.ip_network("64:ff9b::/96")
"""Addresses that a gateway translates to IPv4 (RFC 6052): also to private ones."""


async def why_elsewhere(url: str, *, issuer: str) -> str | None:
    """Return why keys must not be fetched from a URL that the issuer's own document names, or None.

    The URL may be on the issuer's origin, or on another public host with TLS. So a document that is not from the
    provider cannot make this server call services of its own network.
    """
    unsafe = why_unsafe(url)
    if unsafe is not None:
        return unsafe
    parts = urlsplit(url)
    if _origin(parts) == _origin(urlsplit(issuer)):
        return None
    if parts.scheme != "https":
        return "is neither on the issuer's origin nor https"
    host = parts.hostname or ""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, parts.port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None  # only a proxy can resolve the name; without a proxy the fetch fails, too
    addresses = [str(each[4][0]) for each in found]
    private = [address for address in addresses if not _is_public(address)]
    return f"is on another host than the issuer, at the private address {private[0]}" if private else None


def _origin(parts: SplitResult) -> tuple[str, str, int]:
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)


def _is_public(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    return found.is_global and not found.is_multicast and found not in _TRANSLATED
