"""The result of a secret detector, and the Protocol of all detectors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, get_args

from ..language.locales.secret_labels import SecretKind

KINDS: Final[tuple[SecretKind, ...]] = get_args(SecretKind)
PLACEHOLDER: Final = re.compile(rf"\[(?:{'|'.join(KINDS)})\]")
"""The pattern of the placeholders that replace masked secrets."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A secret in a text: its kind and its span, `text[start:end]`."""

    kind: SecretKind
    start: int
    end: int


class SecretDetector(Protocol):
    """Detector of secrets in a text. It is pure: the same text gives the same findings."""

    def find(self, text: str) -> Sequence[Finding]:
        """Return the secrets of a text, in any order. They may overlap."""
        ...


def placeholder(kind: SecretKind) -> str:
    """Return the placeholder for a masked secret of this kind."""
    return f"[{kind}]"
