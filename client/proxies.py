"""HTTP clients under the proxies and certificates that the environment names."""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from ..schemas.hosts import is_loopback
from .errors import Misconfigured

VARIABLES = "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE"


def open_http(url: httpx.URL, *, timeout: float, headers: Mapping[str, str] | None = None) -> httpx.AsyncClient:
    """Return a client of one server. A server on this machine is reached directly: a proxy would look for a loopback
    address on its own machine. Raises Misconfigured for an environment that no client can use."""
    try:
        direct = httpx.AsyncHTTPTransport() if is_loopback(url.host) else None
        return httpx.AsyncClient(
            base_url=url, headers=headers, timeout=timeout, follow_redirects=False, transport=direct
        )
    except ImportError as error:
        raise Misconfigured(
            f"{url.host}: the environment names a SOCKS proxy (ALL_PROXY, HTTPS_PROXY or HTTP_PROXY), and SOCKS needs "
            f"another package: pip install 'httpx[socks]', or name {url.host} in NO_PROXY"
        ) from error
    except (ValueError, OSError, httpx.InvalidURL) as error:
        why = str(error) or type(error).__name__
        raise Misconfigured(f"{url.host}: the environment cannot be used ({VARIABLES}): {why}") from error
