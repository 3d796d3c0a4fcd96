"""What a detector of secrets returns, and the Protocol that every detector follows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, get_args

from ..policies.privacy import SecretKind

KINDS: Final[tuple[SecretKind, ...]] = get_args(SecretKind)
PLACEHOLDER: Final = re.compile(rf"\[(?:{'|'.join(KINDS)})\]")
"""What stands in a text in place of a masked secret."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A secret in a text: its kind and its place, `text[start:end]`."""

    kind: SecretKind
    start: int
    end: int


class SecretDetector(Protocol):
    """Finds secrets in a text. It is pure: the same text gives the same findings."""

    def find(self, text: str) -> Sequence[Finding]:
        """Return the secrets of a text, in any order; they may overlap."""
        ...


def placeholder(kind: SecretKind) -> str:
    """Return what stands in place of a masked secret of this kind."""
    return f"[{kind}]"
