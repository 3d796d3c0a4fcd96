"""HTTP clients with the proxies and certificates of the environment."""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from ..schemas.hosts import is_loopback
from .errors import Misconfigured

VARIABLES = "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE"


def open_http(url: httpx.URL, *, timeout: float, headers: Mapping[str, str] | None = None) -> httpx.AsyncClient:
    """Return a client for one server.

    A server on this machine is called directly, because a proxy would resolve a loopback address to its own machine.
    Raises Misconfigured for invalid proxy or certificate variables.
    """
    try:
        direct = httpx.AsyncHTTPTransport() if is_loopback(url.host) else None
        return httpx.AsyncClient(
            base_url=url, headers=headers, timeout=timeout, follow_redirects=False, transport=direct
        )
    except ImportError as error:
        raise Misconfigured(
            f"{url.host}: the environment names a SOCKS proxy (ALL_PROXY, HTTPS_PROXY or HTTP_PROXY), which needs "
            f"another package: pip install 'httpx[socks]', or add {url.host} to NO_PROXY"
        ) from error
    except (ValueError, OSError, httpx.InvalidURL) as error:
        why = str(error) or type(error).__name__
        raise Misconfigured(f"{url.host}: the environment cannot be used ({VARIABLES}): {why}") from error
