"""Checksums by which a number is told from a number that only looks like it."""

from __future__ import annotations

_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def luhn(digits: str) -> bool:
    """Return whether the last digit is right (ISO/IEC 7812-1, annex B)."""
    values = [int(each) for each in reversed(digits)]
    return sum(_DOUBLED[each] if place % 2 else each for place, each in enumerate(values)) % 10 == 0


def mod_97(text: str) -> bool:
    """Return whether an IBAN's check digits are right (ISO 13616, ISO/IEC 7064 MOD 97-10)."""
    return int("".join(str(int(each, 36)) for each in text[4:] + text[:4])) % 97 == 1
