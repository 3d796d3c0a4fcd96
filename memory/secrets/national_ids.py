"""National identity numbers. Some forms need a correct checksum, and some need their name before the number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from .checksums import (
    codice_fiscale,
    cpf,
    dni_letter,
    ean_13,
    eleven_test,
    german_pension,
    german_tax_id,
    luhn,
    nir,
    rijksregister,
)
from .findings import Finding
from .pattern_sizes import least_digits, most_digits_together
from .text_view import lowered

_STEM: Final = re.compile(r"\\b|.\?.*|[\[(].*")
"""The parts of a name's pattern that are not literal text."""
_SOLID: Final = re.compile(r"[^A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class _IdForm:
    shape: re.Pattern[str]
    check: Callable[[str], bool] | None = None
    """Check of the letters and digits, in upper case and without other characters."""
    name: re.Pattern[str] | None = None
    """The name that must come before the number."""
    stems: tuple[str, ...] = ()
    """Parts of the name. A lower-case text without any of them does not contain the name."""
    digits: int = 0
    """Minimum number of digits in the number."""


def _form(shape: str, check: Callable[[str], bool] | None = None, name: str | None = None) -> _IdForm:
    number = re.compile(rf"(?<![A-Za-z0-9.,$-])(?:{shape})(?![A-Za-z0-9]|[.,-]\d)", re.IGNORECASE | re.ASCII)
    return _IdForm(
        number,
        check,
        re.compile(rf"(?:{name})") if name else None,
        tuple(_STEM.sub("", each) for each in name.split("|")) if name else (),
        least_digits(number),
    )


_PERSON_WORDS: Final = (
    r"\bpassport|\bpasaporte|\bpasseport|\breisepass|\bpassnummer|ausweis|"
    r"\bdriver'?s[ -]?licen[cs]e|\bdriving[ -]?licen[cs]e|\bdriver licen[cs]e|"
    r"fuhrerschein|permiso de conducir|permis de conduire|carte d'identite|identity card|\bid card|national "
    r"id|documento de identidad|"
    r"\bcarnet de conducir|\bcni\b|resident(?:ial)? permit|aufenthaltstitel|green card|alien (?:registration )?number"
)
_FORMS: Final = (
    _form(r"(?!000|666|9\d\d)\d{3}-(?!00)\d\d-(?!0000)\d{4}"),
    _form(
        r"(?!000|666)\d{3}[ .]?(?!00)\d\d[ .]?(?!0000)\d{4}",
        None,
        r"\bssn\b|social security|\bsocial\b|\bitin\b|tax ?payer",
    ),
    _form(r"[1-9]\d ?\d{3} ?\d{3} ?\d{3}", german_tax_id),
    _form(r"\d{2} ?[0-3]\d[01]\d\d\d ?[A-Z] ?\d{3}", german_pension),
    _form(r"\d{8}[ -]?[A-HJ-NP-TV-Z]|\d{2}\.\d{3}\.\d{3}[ -]?[A-HJ-NP-TV-Z]", dni_letter),
    _form(r"[XYZ][ -]?\d{7}[ -]?[A-HJ-NP-TV-Z]", dni_letter),
    _form(r"[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d\d|2[AB]) ?\d{3} ?\d{3} ?\d\d", nir),
    _form(r"[A-Z]{6} ?[\dLMNPQRSTUV]{2}[A-EHLMPRST][\dLMNPQRSTUV]{2} ?[A-Z][\dLMNPQRSTUV]{3}[A-Z]", codice_fiscale),
    _form(r"(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]"),
    _form(r"[A-Z]{2} ?\d\d ?\d\d ?\d\d ?[A-D]?", None, r"\bnino\b|national insurance|\bni (?:number|no)\b"),
    _form(r"\d{3}[ .]?\d{3}[ .]?\d{3}|\d{4}[ .]\d{2}[ .]\d{3}", eleven_test, r"\bbsn\b|burgerservice|\bsofi"),
    _form(r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d", rijksregister),
    _form(r"\d{3}\.\d{3}\.\d{3}-\d\d", cpf),
    _form(r"756[. ]?\d{4}[. ]?\d{4}[. ]?\d\d", ean_13),
    _form(r"(?:19|20)?\d{6}[-+]\d{4}", lambda digits: luhn(digits[-10:]), r"personnummer|personal identity"),
    _form(r"\d{3}[ -]\d{3}[ -]\d{3}|\d{9}", luhn, r"\bsin\b|social insurance"),
    _form(r"\d{11}", None, r"\bpesel\b"),
    _form(r"\d{4} ?\d{4} ?\d{4}", None, r"\baadhaar\b|\baadhar\b"),
    _form(r"[A-Z]{5}\d{4}[A-Z]", None, r"\bpan\b"),
    _form(r"\d{3} ?\d{3} ?\d{3}", None, r"\bnif\b|contribuinte|\btfn\b|tax file number|medicare|nhs"),
    _form(r"\d{3} ?\d{3} ?\d{4}", None, r"\bnhs\b|medicare"),
    _form(r"(?=[A-Z0-9-]{0,6}\d)[A-Z0-9]{5,12}(?:-[A-Z0-9]{2,8}){0,3}", None, _PERSON_WORDS),
    _form(
        r"\d{6,12}[A-Z]?",
        None,
        r"\bdni\b|\bnie\b|steuer-?id|steuer(?:identifikations)?nummer|sozialversicherung|seguridad social",
    ),
)  # fmt: skip
_OTHER_NUMBER: Final = re.compile(
    r"(?:order|invoice|ticket|case|part|model|serial|tracking|item|sku|bestell\w*|rechnung\w*|pedido|"
    r"factura|commande|facture)"
    r"(?: ?(?:number|no\.?|nr\.?|#|id|nummer))?:? ?(?:is |ist |es |est )?#?$",
    re.IGNORECASE,
)
_NEAR: Final = 48
_CLAUSE: Final = re.compile(r"(?<!no)(?<!nr)(?<!num)[.;!?]\s|\n\n")


def national_ids(text: str) -> Iterator[Finding]:
    """Yield national identity numbers."""
    digits = most_digits_together(text)
    if not digits and (text.isascii() or not any(map(str.isdigit, text))):
        return
    small = lowered(text)
    for form in _FORMS:
        if form.digits > digits:
            continue
        if form.name is None:
            for match in form.shape.finditer(text):
                if _is_valid(form, match[0]) and not _OTHER_NUMBER.search(
                    text, max(0, match.start() - 32), match.start()
                ):
                    yield Finding("national_id", *match.span())
            continue
        if not any(map(small.__contains__, form.stems)):
            continue
        read = 0
        for name in form.name.finditer(small):
            if name.end() < read:
                continue
            match_after = form.shape.search(text, name.end(), min(len(text), name.end() + _NEAR + 24))
            if match_after is None or match_after.start() > name.end() + _NEAR:
                continue
            if _is_valid(form, match_after[0]) and not _CLAUSE.search(text, name.end(), match_after.start()):
                read = match_after.end()
                yield Finding("national_id", *match_after.span())


def _is_valid(form: _IdForm, text: str) -> bool:
    return form.check is None or form.check(_SOLID.sub("", text).upper())
