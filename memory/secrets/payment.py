"""Payment card numbers and IBANs, by their ranges, lengths and check digits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .checksums import luhn, mod_97
from .findings import Finding
from .pattern_sizes import least_digits

_SEPARATOR: Final = r"(?:[ \t]{1,2}|[ \t]?[-.\u00b7][ \t]?|\r?\n[ \t]?)"
_CARD: Final = re.compile(rf"(?<![\w.,$-])[2-6]\d{{3}}(?:{_SEPARATOR}?\d){{8,15}}(?!\w|[.,-]\d)", re.ASCII)
CARD_DIGITS: Final = least_digits(_CARD)
"""Minimum number of digits in a card number."""
_NOT_DIGIT: Final = re.compile(r"\D")
_GROUPS: Final = re.compile(r"\d+")
_CARD_LENGTHS: Final = (
    (r"4", (16, 19)),  # Visa
    (r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720", (16,)),  # Mastercard
    (r"3[47]", (15,)),  # American Express
    (r"3(?:0[0-5]|095|[689])", (14, 16, 19)),  # Diners Club
    (r"6(?:011|22|4[4-9]|5)", (16, 19)),  # Discover, RuPay
    (r"35(?:2[89]|[3-8])", (16, 17, 18, 19)),  # JCB
    (r"62|81", (16, 17, 18, 19)),  # UnionPay
    (r"220[0-4]", (16, 17, 18, 19)),  # Mir
    (r"5018|5020|5038|5893|6304|6759|676[1-3]", (16, 17, 18, 19)),  # Maestro
)
_CARD_RANGES: Final = tuple((re.compile(prefix), lengths) for prefix, lengths in _CARD_LENGTHS)
_IBAN_LENGTHS: Final = {
    country: int(length)
    for country, length in re.findall(
        r"([A-Z]{2}):(\d\d)",
        "AD:24 AE:23 AL:28 AT:20 AZ:28 BA:20 BE:16 BG:22 BH:22 BI:27 BR:29 BY:28 CH:21 CR:22 CY:28 CZ:24 DE:22 DJ:27 "
        "DK:18 DO:28 EE:20 EG:29 ES:24 FI:18 FK:18 FO:18 FR:27 GB:22 GE:22 GI:23 GL:18 GR:27 GT:28 HN:28 HR:21 HU:28 "
        "IE:22 IL:23 IQ:23 IS:26 IT:27 JO:30 KW:30 KZ:20 LB:28 LC:32 LI:21 LT:20 LU:20 LV:21 LY:25 MC:27 MD:24 ME:22 "
        "MK:19 MN:20 MR:27 MT:31 MU:30 NI:28 NL:18 NO:15 OM:23 PK:24 PL:28 PS:29 PT:25 QA:29 RO:24 RS:22 RU:33 SA:24 "
        "SC:31 SD:18 SE:24 SI:19 SK:24 SM:27 SO:23 ST:25 SV:28 TL:23 TN:24 TR:26 UA:29 VA:22 VG:24 XK:20 YE:30 ",
    )
}
"""Length of an IBAN by country (SWIFT IBAN registry)."""
_IBAN: Final = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z]{2}[ \t.-]?\d[ \t]?\d(?:[ \t.\u00b7-]{0,2}(?:\r?\n[ \t]?)?[A-Za-z0-9]){11,30}",
    re.ASCII,
)
_COUNTRY: Final = re.compile(r"[A-Za-z]{2}[ \t.-]?$", re.ASCII)
_CHECK_DIGITS: Final = re.compile(r"[0-9][ \t]?[0-9]")
"""The check digits of an IBAN. The search starts there, because most texts have few digits and many letters."""
_SOLID: Final = re.compile(r"[^A-Za-z0-9]")


def cards(text: str) -> Iterator[Finding]:
    """Yield payment card numbers with a valid issuer range, length and Luhn digit. Numbers that follow, such as a date,
    are not included."""
    place = 0
    while (match := _CARD.search(text, place)) is not None:
        end = _end_of_card(match)
        if end is not None:
            yield Finding("card", match.start(), end)
        place = end or match.start() + len(_GROUPS.match(text, match.start())[0])  # type: ignore[index]


def _end_of_card(match: re.Match[str]) -> int | None:
    """Return the end of the longest sequence of whole digit groups that is a card number; None when there is none."""
    ends = [group.end() for group in _GROUPS.finditer(match[0])]
    for end in reversed(ends):
        number = match[0][:end]
        if is_card(_NOT_DIGIT.sub("", number)) and _grouped_as_card(number):
            return match.start() + end
    return None


def is_card(digits: str) -> bool:
    in_range = any(prefix.match(digits) and len(digits) in lengths for prefix, lengths in _CARD_RANGES)
    return in_range and len(set(digits)) > 1 and luhn(digits)


def _grouped_as_card(text: str) -> bool:
    """Return whether the digit groups form one number: every group except the last has at least three digits, or every
    group has one digit."""
    groups = _GROUPS.findall(text)
    return all(len(each) >= 3 for each in groups[:-1]) or all(len(each) == 1 for each in groups)


def ibans(text: str) -> Iterator[Finding]:
    """Yield IBANs with a valid country, length and check digits. Words that follow are not included."""
    place = 0
    for digits in _CHECK_DIGITS.finditer(text):
        country = _COUNTRY.search(text, max(place, digits.start() - 3), digits.start())
        match = country and _IBAN.match(text, country.start())
        if match is None:
            continue
        end = _end_of_iban(match)
        if end is not None and not text[end : end + 1].isalnum():
            yield Finding("iban", match.start(), end)
        place = end or match.start() + 2


def _end_of_iban(match: re.Match[str]) -> int | None:
    length = _IBAN_LENGTHS.get(match[0][:2].upper())
    solid = _SOLID.sub("", match[0]).upper()
    if length is None or len(solid) < length or not mod_97(solid[:length]):
        return None
    return [place for place, sign in enumerate(match[0], match.start()) if sign.isalnum()][length - 1] + 1
