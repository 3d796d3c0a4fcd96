"""Address under which this machine reaches its own health pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LOOPBACK: Final = "127.0.0.1"
EVERY_ADDRESS: Final[Mapping[str, str]] = {"0.0.0.0": LOOPBACK, "::": "::1"}
"""Wildcard addresses that a server listens on, with the loopback address that reaches the server."""


def origin_of(host: str, port: int) -> str:
    """Return the URL, without a path, of a server that listens on `host`."""
    reached = EVERY_ADDRESS.get(host, host)
    return f"http://{f'[{reached}]' if ':' in reached else reached}:{port}"
