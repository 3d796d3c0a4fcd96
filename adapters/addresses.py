"""Server addresses without secrets, for logs and messages."""

from __future__ import annotations

import re
from typing import Final

_CREDENTIALS: Final = re.compile(r"(?<=//)[^/?#]*@")
_QUERY: Final = re.compile(r"\?[^#]*")


def without_credentials(address: str) -> str:
    """Return the address without user name, password and query values."""
    return _QUERY.sub("?…", _CREDENTIALS.sub("…@", address))
