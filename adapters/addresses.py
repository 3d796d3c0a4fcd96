"""Addresses of servers, as logs and messages may show them."""

from __future__ import annotations

import re
from typing import Final

_CREDENTIALS: Final = re.compile(r"(?<=//)[^/?#]*@")
_QUERY: Final = re.compile(r"\?[^#]*")


def without_credentials(address: str) -> str:
    """Return the address without user and password, and without the values of its query."""
    return _QUERY.sub("?…", _CREDENTIALS.sub("…@", address))
