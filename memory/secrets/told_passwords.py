"""Passwords, PINs and keys that somebody tells: the word, then `is`, `:` or the like, then a value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ..policies.privacy import SecretKind
from .findings import Finding

_WORDS: Final[tuple[tuple[SecretKind, str], ...]] = (
    ("password", r"pass ?words?|pass ?codes?|pwd|passwd|passwort|kennwort|contrasena|clave|mot de passe|mdp"),
    ("pin", r"pin(?: (?:code|number))?|geheimzahl|code secret"),
    ("passphrase", r"pass ?phrase"),
)
_TOLD: Final = re.compile(
    r"(?<![\w-])(?:"
    + "|".join(f"(?P<{kind}>{words})" for kind, words in _WORDS)
    + r")(?: {0,2}[:=] {0,2}| (?:is|ist|lautet|es|est|was|to) )"
    r"(?:\"(?P<double>[^\"\n]{1,128})\"|'(?P<single>[^'\n]{1,128})'|(?P<bare>[^\s\"'\[]{1,128}))",
    re.IGNORECASE,
)
_SIGN: Final = re.compile(r"[\d@#$%^&*_+=~|\\/!-]")


def told_passwords(text: str) -> Iterator[Finding]:
    """Yield the values of passwords, PINs and passphrases that are told."""
    for match in _TOLD.finditer(text):
        kind: SecretKind = next(kind for kind, _ in _WORDS if match[kind])
        group = next(name for name in ("double", "single", "bare") if match[name])
        start, value = match.start(group), match[group].rstrip(".,;:!?") if group == "bare" else match[group]
        if value and (group != "bare" or _SIGN.search(value)):
            yield Finding(kind, start, start + len(value))
