"""The policy for secrets and personal data: the action for each kind of finding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from ..language.locales.secret_labels import SecretKind
from .checks import one_of, unit

SecretAction = Literal["mask", "label", "drop", "allow"]


@dataclass(frozen=True, slots=True)
class PresidioPolicy:
    """Presidio as an additional detector (`memstream[presidio]`)."""

    analyzer: str = ""
    """Path of the YAML file of a Presidio analyzer, or `default` for the configuration of Presidio itself, which needs
    a spaCy model. Empty: only the built-in rules."""
    score: float = 0.5
    """Minimum score of a Presidio finding."""
    kinds: Mapping[str, SecretKind] = field(default_factory=dict)
    """Kinds of additional Presidio entities, or other kinds of known ones: `{ PERSON = "national_id" }`."""

    def __post_init__(self) -> None:
        unit("privacy.presidio.score", self.score)
        for entity, kind in self.kinds.items():
            one_of(f"privacy.presidio.kinds.{entity}", kind, SecretKind)


@dataclass(frozen=True, slots=True)
class PrivacyPolicy:
    """The action for each kind of secret: `mask`, `label`, `drop` or `allow`.

    `mask` replaces the span with its kind in brackets, for example `[password]`. `label` keeps the text and makes the
    record `secret`. `drop` leaves out the whole message or statement. `allow` does nothing.
    """

    password: SecretAction = "mask"
    """A password in a sentence or a setting: `mask`, `label`, `drop` or `allow`. Every kind has these actions."""
    pin: SecretAction = "mask"
    """A PIN, a one-time code or a card's security code."""
    passphrase: SecretAction = "mask"
    """A passphrase, a recovery phrase or a secret answer."""
    api_key: SecretAction = "mask"
    """A key of a known vendor, or a value that is labelled as a key."""
    token: SecretAction = "mask"
    """An access token of a known vendor, or a value that is labelled as a token."""
    jwt: SecretAction = "mask"
    """A JSON Web Token."""
    private_key: SecretAction = "mask"
    """A private key block, also a truncated one."""
    connection_string: SecretAction = "mask"
    """An address or a connection string that contains a password."""
    card: SecretAction = "mask"
    """A payment card number."""
    iban: SecretAction = "mask"
    """An international bank account number."""
    email: SecretAction = "label"
    """An e-mail address."""
    phone: SecretAction = "label"
    """A phone number."""
    national_id: SecretAction = "label"
    """A national identity number: tax, insurance, identity card."""

    presidio: PresidioPolicy = field(default_factory=PresidioPolicy)

    def __post_init__(self) -> None:
        for kind in get_args(SecretKind):
            one_of(f"privacy.{kind}", getattr(self, kind), SecretAction)

    def action(self, kind: SecretKind) -> SecretAction:
        action: SecretAction = getattr(self, kind)
        return action
