"""Policy of secrets and personal data: what happens to each kind that a detector finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from .checks import one_of, unit

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
SecretAction = Literal["mask", "label", "drop", "allow"]


@dataclass(frozen=True, slots=True)
class PresidioPolicy:
    """Presidio as a further detector (`memstream[presidio]`)."""

    analyzer: str = ""
    """Path of the YAML file of a Presidio analyzer, or `default` for Presidio's own configuration, which needs a spaCy
    model. Empty: the built-in rules alone."""
    score: float = 0.5
    """Presidio's score from which a finding counts."""
    kinds: Mapping[str, SecretKind] = field(default_factory=dict)
    """Kinds of further entities of Presidio, or other kinds of known ones: `{ PERSON = "national_id" }`."""

    def __post_init__(self) -> None:
        unit("privacy.presidio.score", self.score)
        for entity, kind in self.kinds.items():
            one_of(f"privacy.presidio.kinds.{entity}", kind, SecretKind)


@dataclass(frozen=True, slots=True)
class PrivacyPolicy:
    """What happens to each kind of secret: `mask`, `label`, `drop` or `allow`.

    `mask` replaces the span by the kind in brackets, for example `[password]`. `label` keeps the text and makes the
    record `secret`. `drop` leaves out the whole message or statement. `allow` does nothing.
    """

    password: SecretAction = "mask"
    """A password that is told in a sentence or a setting: `mask`, `label`, `drop` or `allow`. So for each kind."""
    pin: SecretAction = "mask"
    """A PIN, a one-time code or a card's security code that is told."""
    passphrase: SecretAction = "mask"
    """A passphrase, a recovery phrase or a secret answer that is told."""
    api_key: SecretAction = "mask"
    """A key of a known vendor, or a value that is named a key."""
    token: SecretAction = "mask"
    """An access token of a known vendor, or a value that is named a token."""
    jwt: SecretAction = "mask"
    """A JSON Web Token."""
    private_key: SecretAction = "mask"
    """A block of a private key, also one that is cut off."""
    connection_string: SecretAction = "mask"
    """An address or a connection string with a password in it."""
    card: SecretAction = "mask"
    """The number of a payment card."""
    iban: SecretAction = "mask"
    """An international bank account number."""
    email: SecretAction = "label"
    """An e-mail address."""
    phone: SecretAction = "label"
    """A phone number."""
    national_id: SecretAction = "label"
    """The number of a person at a state: tax, insurance, identity card."""

    presidio: PresidioPolicy = field(default_factory=PresidioPolicy)

    def __post_init__(self) -> None:
        for kind in get_args(SecretKind):
            one_of(f"privacy.{kind}", getattr(self, kind), SecretAction)

    def action(self, kind: SecretKind) -> SecretAction:
        action: SecretAction = getattr(self, kind)
        return action
