"""Entities of a recognizer outside as secrets: which of its entities counts as which kind."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from ..policies.privacy import SecretKind
from .findings import KINDS, Finding

KIND_OF_ENTITY: Final[Mapping[str, SecretKind]] = {
    "CREDIT_CARD": "card",
    "IBAN_CODE": "iban",
    "EMAIL_ADDRESS": "email",
    "PHONE_NUMBER": "phone",
    "MEDICAL_LICENSE": "national_id",
    **{kind.upper(): kind for kind in KINDS},
}
"""Presidio's names, and our own in capitals for recognizers of the operator."""
_OF_A_COUNTRY: Final = re.compile(r"[A-Z]{2}_\w+")
_OF_A_BUSINESS: Final = re.compile(
    r"[A-Z]{2}_(?:ABN|ACN|UEN|GSTIN|BANK\w*|BUSINESS\w*|\w*VAT\w*|\w*VEHICLE\w*|\w*COMPANY\w*)"
)


class Entity(Protocol):
    """A place in a text that a recognizer found."""

    @property
    def name(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


class EntityRecognizer(Protocol):
    """A recognizer of entities outside, such as Presidio's analyzer."""

    def recognize(self, text: str) -> Sequence[Entity]: ...


class EntityDetector:
    """`SecretDetector` over a recognizer. Entities without a kind are passed over: names, places, dates, addresses.

    An entity of a country, such as `US_SSN`, is a national id, unless a business has it.
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
