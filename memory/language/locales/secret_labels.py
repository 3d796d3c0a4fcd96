"""Kinds of secrets, and the data model of a language's labels: names of secrets, words before a value, and words that
describe a secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

SecretKind = Literal[
    "password",
    "pin",
    "passphrase",
    "api_key",
    "token",
    "jwt",
    "private_key",
    "connection_string",
    "card",
    "iban",
    "email",
    "phone",
    "national_id",
]
SHARED_STEMS: Final = ("pass", "pin", "cvv", "cvc", "otp", "token", "api")
SHARED: Final[Mapping[SecretKind, str]] = {
    "pin": "pin(?:[ -]?code)?|cvv2?|cvc2?|otp",
    "password": "passwords?|passcodes?",
    "api_key": "api[ -]?keys?",
    "token": "tokens?",
}
"""Labels that people use in every language."""

TOPICS: Final = (
    r"manager|policy|policies|politica|polityka|beleid|richtlinie|length|lunghezza|longitud|longueur"
    r"|lange|lengte|comprimento"
    r"|reset|generator|generador|generatore|generateur|field|campo|champ|feld|veld|pole|hash|hint"
    r"|rules?|path|page|prompt"
    r"|attempts?|length|format|expiry|expiration|strength|check|storage"
)
"""Words directly after a label that change its meaning: a password manager, a password policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretLabels:
    """The labels of one language: regular expressions in lower case. Accents are optional in the text."""

    language: str
    stems: tuple[str, ...]
    """Parts of the labels, without accents. A text without any of them contains no label of this language."""
    labels: Mapping[SecretKind, str]
    """Names of secrets, by kind. The first kind that matches at a position wins."""
    credentials: str = ""
    """Labels before a user name and a password."""
    spelled: tuple[str, ...] = ()
    """Names of a password that people spell letter by letter to hide them."""
    copulas: str
    """Words between a label and its value."""
    sure_copulas: str = ""
    """Copulas after which a single word counts as a value, when the word is the whole object of the clause."""
    changes: str = ""
    """Words between a label and a new value that replaces an old one."""
    change_verbs: str = ""
    """Beginnings of the verbs that must come before `changes`."""
    marks: str
    """Words or letters that identify the language, in lower case with accents. In a text with one of these marks, the
    copulas also connect shared labels to values. `told_passwords` reads shared labels in English, German, Spanish and
    French."""
    about: str
    """Beginnings of words that describe a secret, and function words. They are not values."""
    units: str = ""
    """Beginnings of counted things. A number before one of them is not a value."""
    joints: str
    """Words between two values."""
    spaced: bool = True
    """True when spaces separate words."""
