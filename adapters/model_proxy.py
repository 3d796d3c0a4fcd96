"""Proxy between this process and a server of models, as the environment names it."""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from ..schemas.hosts import is_loopback

DEFAULT_HOST = "api.openai.com"
HTTP = ("http", "https")


def leaves_out_proxy(base_url: str | None) -> bool:
    """Tell whether calls leave out the proxy of the environment, because the server is on this machine: a proxy would
    look for a loopback address on its own. ValueError: the environment names a proxy that model calls cannot use."""
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
            f"the environment names a proxy of the kind {scheme}:// for {host} (HTTPS_PROXY, HTTP_PROXY or ALL_PROXY). "
            f"Model calls go through http:// and https:// proxies only: name such a proxy, or {host} in NO_PROXY"
        )
    return False
