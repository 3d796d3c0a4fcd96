"""Adapter from an external entity recognizer to secrets: maps entity names to kinds of secret."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from ..language.locales.secret_labels import SecretKind
from .findings import KINDS, Finding

KIND_OF_ENTITY: Final[Mapping[str, SecretKind]] = {
    "CREDIT_CARD": "card",
    "IBAN_CODE": "iban",
    "EMAIL_ADDRESS": "email",
    "PHONE_NUMBER": "phone",
    "MEDICAL_LICENSE": "national_id",
    **{kind.upper(): kind for kind in KINDS},
}
"""Presidio's entity names, and the names of our kinds in capitals for an operator's own recognizers."""
_OF_A_COUNTRY: Final = re.compile(r"[A-Z]{2}_\w+")
_OF_A_BUSINESS: Final = re.compile(
    r"[A-Z]{2}_(?:ABN|ACN|UEN|GSTIN|BANK\w*|BUSINESS\w*|\w*VAT\w*|\w*VEHICLE\w*|\w*COMPANY\w*)"
)


class Entity(Protocol):
    """An entity that a recognizer found, with its position in the text. It is a Protocol because memory/ imports no
    adapter."""

    @property
    def name(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


class EntityRecognizer(Protocol):
    """An external recognizer of entities, implemented in adapters/presidio.py. It is a Protocol because memory/ imports
    no adapter."""

    def recognize(self, text: str) -> Sequence[Entity]: ...


class EntityDetector:
    """`SecretDetector` that calls an entity recognizer. Entities without a kind of secret are ignored: names, places,
    dates, addresses.

    An entity whose name begins with a country code, such as `US_SSN`, is a national id, unless it identifies a
    business.
    """

    def __init__(self, *, recognizer: EntityRecognizer, kinds: Mapping[str, SecretKind]) -> None:
        self._recognizer = recognizer
        self._kinds = {**KIND_OF_ENTITY, **kinds}

    def find(self, text: str) -> Sequence[Finding]:
        found = ((self._kind(each.name), each) for each in self._recognizer.recognize(text))
        return [Finding(kind, each.start, each.end) for kind, each in found if kind is not None]

    def _kind(self, entity: str) -> SecretKind | None:
        if entity in self._kinds:
            return self._kinds[entity]
        if _OF_A_COUNTRY.fullmatch(entity) and not _OF_A_BUSINESS.fullmatch(entity):
            return "national_id"
        return None
