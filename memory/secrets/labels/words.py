"""The shape of one language's labels: what names a secret, what leads to its value, and what is said about secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...policies.privacy import SecretKind

SHARED_STEMS: Final = ("pass", "pin", "cvv", "cvc", "otp", "token", "api")
SHARED: Final[Mapping[SecretKind, str]] = {
    "pin": "pin(?:[ -]?code)?|cvv2?|cvc2?|otp",
    "password": "passwords?|passcodes?",
    "api_key": "api[ -]?keys?",
    "token": "tokens?",
}
"""Labels that people type in every language."""

TOPICS: Final = (
    r"manager|policy|policies|politica|polityka|beleid|richtlinie|length|lunghezza|longitud|longueur"
    r"|lange|lengte|comprimento"
    r"|reset|generator|generador|generatore|generateur|field|campo|champ|feld|veld|pole|hash|hint"
    r"|rules?|path|page|prompt"
    r"|attempts?|length|format|expiry|expiration|strength|check|storage"
)
"""Words right behind a label that make it the name of something else: a password manager, a password policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretLabels:
    """The labels of one language. Patterns are regular expressions in small letters; accents are optional in a text."""

    language: str
    stems: tuple[str, ...]
    """Pieces of the labels, without accents. A text without any of them has no label of this language."""
    labels: Mapping[SecretKind, str]
    """Names of secrets, by kind. The first kind that fits at a place counts."""
    credentials: str = ""
    """Labels behind which a user's name and a password stand."""
    spelled: tuple[str, ...] = ()
    """Names of a password that people write letter by letter, to hide them."""
    copulas: str
    """Words between a label and its value."""
    sure_copulas: str = ""
    """Those of them after which a word that is the clause's whole object counts as a value."""
    changes: str = ""
    """Words between a label and a value that replaced another one."""
    change_verbs: str = ""
    """Beginnings of the verbs that `changes` need before them."""
    marks: str
    """Words or letters that show the language, in small letters with their accents. In such a text, the copulas also
    lead from the shared labels: `told_passwords` reads those in English, German, Spanish and French."""
    about: str
    """Beginnings of words that say something about a secret, and words of grammar: they are no value."""
    units: str = ""
    """Beginnings of what is counted: a number before one of them is no value."""
    joints: str
    """Words between two values."""
    spaced: bool = True
    """Whether spaces separate words."""
