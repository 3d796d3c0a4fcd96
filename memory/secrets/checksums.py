"""Checksums that distinguish identifiers from other numbers of the same form."""

from __future__ import annotations

_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def luhn(digits: str) -> bool:
    """Return whether the check digit is correct (ISO/IEC 7812-1, annex B)."""
    values = [int(each) for each in reversed(digits)]
    return sum(_DOUBLED[each] if place % 2 else each for place, each in enumerate(values)) % 10 == 0


def mod_97(text: str) -> bool:
    """Return whether the check digits of an IBAN are correct (ISO 13616, ISO/IEC 7064 MOD 97-10)."""
    return int("".join(str(int(each, 36)) for each in text[4:] + text[:4])) % 97 == 1


def eleven_test(digits: str) -> bool:
    """Return whether a Dutch BSN passes the eleven test."""
    weights = (9, 8, 7, 6, 5, 4, 3, 2, -1)
    return len(digits) == 9 and sum(int(each) * weight for each, weight in zip(digits, weights, strict=True)) % 11 == 0


def german_tax_id(digits: str) -> bool:
    """Return whether a number is a German Steuer-ID.

    Of the first ten digits, exactly one occurs twice or three times, and no other digit repeats. The last digit is the
    check digit (ISO/IEC 7064 MOD 11,10).
    """
    counts = sorted(digits[:10].count(each) for each in set(digits[:10]))
    if len(digits) != 11 or counts[-1] not in (2, 3) or (len(counts) > 1 and counts[-2] != 1):
        return False
    product = 10
    for each in digits[:10]:
        product = 2 * ((int(each) + product) % 10 or 10) % 11
    return (11 - product) % 10 == int(digits[10])


def german_pension(text: str) -> bool:
    """Return whether the check digit of a German Versicherungsnummer is correct."""
    digits = f"{text[:8]}{ord(text[8]) - 64:02}{text[9:11]}"
    weights = (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1)
    total = sum(sum(divmod(int(each) * weight, 10)) for each, weight in zip(digits, weights, strict=True))
    return total % 10 == int(text[11])


def dni_letter(text: str) -> bool:
    """Return whether the letter of a Spanish DNI or NIE is correct."""
    number = text[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == text[-1]


def nir(text: str) -> bool:
    """Return whether the key of a French NIR is correct. Corsica's 2A and 2B count as 19 and 18."""
    number = text[:13].replace("2A", "19").replace("2B", "18")
    return 97 - int(number) % 97 == int(text[13:])


_ODD_SIGNS = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def codice_fiscale(text: str) -> bool:
    """Return whether the check letter of an Italian codice fiscale is correct."""
    values = [int(sign) if sign.isdigit() else ord(sign) - 65 for sign in text[:15]]
    total = sum(value if place % 2 else _ODD_SIGNS[value] for place, value in enumerate(values))
    return chr(65 + total % 26) == text[15]


def rijksregister(digits: str) -> bool:
    """Return whether the check digits of a Belgian national number are correct, for births before or after 2000."""
    return int(digits[9:]) in (97 - int(digits[:9]) % 97, 97 - int("2" + digits[:9]) % 97)


def cpf(digits: str) -> bool:
    """Return whether both check digits of a Brazilian CPF are correct."""
    for length in (9, 10):
        total = sum(int(each) * weight for each, weight in zip(digits[:length], range(length + 1, 1, -1), strict=True))
        if total * 10 % 11 % 10 != int(digits[length]):
            return False
    return len(set(digits)) > 1


def ean_13(digits: str) -> bool:
    """Return whether the check digit of an EAN-13 number, such as a Swiss AHV number, is correct."""
    return sum(int(each) * (3 if place % 2 else 1) for place, each in enumerate(digits)) % 10 == 0
