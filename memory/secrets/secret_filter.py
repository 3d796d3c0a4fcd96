"""A privacy policy with its detectors, for texts, JSON values and turns."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from ...schemas.turns import SENSITIVITIES, Sensitivity
from ..policies.privacy import PrivacyPolicy
from .findings import Finding, SecretDetector
from .protection import BUILT_IN, Protected, protect

NAMED_MAX: Final = 200
"""Maximum length of a value that is searched together with its name (`"pin": "4711"`), in characters."""
_ID: Final = re.compile(r"(?:.*_)?ids?")
_HASH: Final = re.compile(r"(?:content_hash|sha256|turn_sha256): [0-9a-f]{64}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)", re.ASCII)


_Seen = dict[str, Protected]
"""The texts of one JSON value after protection. Records repeat their field names, times and quotes."""


@dataclass(frozen=True, slots=True)
class ProtectedValue:
    """A JSON value after protection. `sensitivity`: the highest label of its texts; None when no text has a label."""

    value: JsonValue
    sensitivity: Sensitivity | None


@dataclass(frozen=True, slots=True)
class SecretFilter:
    """The secret filter of the stages. It is pure: the same text gives the same result."""

    policy: PrivacyPolicy = field(default_factory=PrivacyPolicy)
    detectors: Sequence[SecretDetector] = BUILT_IN

    def find(self, text: str) -> list[Finding]:
        """Return the findings of all detectors in a text."""
        return [each for detector in self.detectors for each in detector.find(text)]

    def text(self, text: str, known: Sequence[Finding] = ()) -> Protected:
        """Mask, label or drop the findings of the detectors and the known findings in a text."""
        return protect(text, self.policy, self.detectors, known)

    def mask(self, text: str) -> str:
        """Return the text with masked secrets; empty when the policy drops the text."""
        return self.text(text).text

    def label(self, *texts: str | None) -> Sensitivity | None:
        """Return the highest label of the texts; None when there is none."""
        return highest(*(self.text(each).sensitivity for each in texts if each))

    def value(self, value: JsonValue) -> ProtectedValue:
        """Protect every text inside a JSON value, including field names. Ids do not change, because they name
        records. Hashes and times are not searched: they are most texts of a record, and have no secret."""
        seen: _Seen = {}
        return ProtectedValue(self._value(value, seen), _label_of(seen))

    def named(self, name: str, value: JsonValue) -> ProtectedValue:
        """Protect the value of a field together with its name, which may identify a secret (`"pin": "4711"`)."""
        seen: _Seen = {}
        return ProtectedValue(self._named(name, value, seen), _label_of(seen))

    # ------------------------------------------------------------------------------------------------ helpers
    def _value(self, value: JsonValue, seen: _Seen) -> JsonValue:
        if isinstance(value, str):
            return self._json(value, seen) if value.lstrip()[:1] in ("{", "[") else self._text(value, seen).text
        if isinstance(value, int) and not isinstance(value, bool):
            shown = self._text(str(value), seen).text
            return value if shown == str(value) else shown
        if isinstance(value, list):
            return [self._value(each, seen) for each in value]
        if isinstance(value, dict):
            return {self._text(name, seen).text: self._named(name, each, seen) for name, each in value.items()}
        return value

    def _named(self, name: str, value: JsonValue, seen: _Seen) -> JsonValue:
        if _ID.fullmatch(name) or (isinstance(value, str) and _is_computed(name, value)):
            return value
        shown = self._value(value, seen)
        is_short = isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) <= NAMED_MAX
        if not is_short or shown != value or value == "":
            return shown
        prefix = f"{name}: "
        together = self._text(prefix + str(value), seen)
        if together.dropped:
            return ""
        return value if together.text == prefix + str(value) else together.text.removeprefix(prefix)

    def _json(self, text: str, seen: _Seen) -> str:
        """Protect a text that may be JSON itself, such as the arguments of a tool call."""
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            return self._text(text, seen).text
        shown = self._value(read, seen)
        return self._text(text if shown == read else json.dumps(shown, ensure_ascii=False), seen).text

    def _text(self, text: str, seen: _Seen) -> Protected:
        if (protected := seen.get(text)) is None:
            protected = seen[text] = self.text(text)
        return protected


def _is_computed(name: str, value: str) -> bool:
    return _TIME.fullmatch(value) is not None or _HASH.fullmatch(f"{name}: {value}") is not None


def _label_of(seen: _Seen) -> Sensitivity | None:
    return highest(*(each.sensitivity for each in seen.values()))


def highest(*sensitivities: Sensitivity | None) -> Sensitivity | None:
    """Return the most sensitive label; None when there is none."""
    return max((each for each in sensitivities if each is not None), key=SENSITIVITIES.index, default=None)


def at_least(sensitivity: Sensitivity, label: Sensitivity | None) -> Sensitivity:
    """Return the higher of a record's sensitivity and this label."""
    return highest(sensitivity, label) or sensitivity
