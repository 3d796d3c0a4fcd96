"""Proxy settings from the environment, for calls to a model server."""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from ..schemas.hosts import is_loopback

DEFAULT_HOST = "api.openai.com"
HTTP = ("http", "https")


def leaves_out_proxy(base_url: str | None) -> bool:
    """Return whether calls bypass the environment's proxy, because the server is on this machine. A proxy on another
    machine would connect a loopback address to that machine. Raise ValueError when the environment has a proxy that
    model calls cannot use."""
    url = urlsplit(base_url or f"https://{DEFAULT_HOST}")
    host, proxies = url.hostname or "", getproxies_environment()
    if not proxies:
        return False
    if is_loopback(host):
        return True
    proxy = proxies.get(url.scheme) or proxies.get("all") or ""
    scheme = urlsplit(proxy).scheme if "://" in proxy else ""
    if scheme and scheme not in HTTP and not proxy_bypass(host):
        raise ValueError(
            f"the environment sets a {scheme}:// proxy for {host} (HTTPS_PROXY, HTTP_PROXY or ALL_PROXY). "
            f"Model calls support http:// and https:// proxies only: set such a proxy, or add {host} to NO_PROXY"
        )
    return False
