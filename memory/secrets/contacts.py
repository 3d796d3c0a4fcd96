"""Personal addresses: e-mail and phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .findings import Finding

_EMAIL: Final = re.compile(
    r"(?<![\w.%+/:-])[\w.%+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}(?![\w-])(?!\.\w)",
)


def emails(text: str) -> Iterator[Finding]:
    """Yield e-mail addresses."""
    for match in _EMAIL.finditer(text):
        yield Finding("email", *match.span())
