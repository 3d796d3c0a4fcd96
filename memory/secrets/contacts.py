"""Contact data: e-mail addresses and phone numbers.

A number counts as a phone number only when it has a country code, has the fixed form of a country, or follows a word
for a phone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .findings import Finding
from .pattern_sizes import least_digits

_EMAIL: Final = re.compile(
    r"(?<![\w.%+/:@-])[\w.%+'-]{1,64}@(?:[\w-]{1,63}\.){1,8}(?P<top>[^\W\d_]{2,24}|"
    r"xn--[a-z0-9-]{2,59})(?![\w@-])(?!:[\w/~])",
)
_SPELLED: Final = re.compile(
    r"(?<![\w.])[\w.%+-]{1,64} ?[\[({] ?(?:at|@|arroba|arobase) ?[\])}] ?[\w-]{1,63}"
    r"(?: ?(?:[\[({] ?(?:dot|punkt|punto|point|\.) ?[\])}]|\.) ?[\w-]{2,63}){1,4}",
    re.IGNORECASE,
)
_FILE_ENDINGS: Final = frozenset(
    [
        "png",
        "jpg",
        "jpeg",
        "gif",
        "svg",
        "webp",
        "ico",
        "js",
        "ts",
        "css",
        "json",
        "md",
        "txt",
        "html",
        "xml",
        "yml",
        "yaml",
        "py",
        "mp3",
        "mp4",
        "local",
    ]
)
_NO_ADDRESS_BEFORE: Final = re.compile(r"(?:ssh|scp|sftp|rsync|git clone) (?:-\S+ )*$")

_SEP: Final = r"[ .\u00b7/-]{0,2}"
_INTERNATIONAL: Final = re.compile(
    rf"(?<![\w+.,/-])(?:\+|00 ?)[1-9]\d{{0,2}}(?:{_SEP}\(0\))?(?:{_SEP}\(?\d{{1,6}}\)?){{2,8}}(?![\w]|[.,]\d)"
)
_NORTH_AMERICAN: Final = re.compile(
    r"(?<![\w+.,/-])(?:1[ .-])?(?:\([2-9]\d\d\) ?\d{3}[ .-]\d{4}|[2-9]\d\d([.-])[2-9]\d\d\1\d{4}|[2-9]\d\d "
    r"[2-9]\d\d-\d{4})"
    r"(?:,? ?(?:x|ext\.?) ?\d{1,5})?(?![\w-]|\.\d)"
)
_TRUNK: Final = re.compile(
    r"(?<![\w+.,/-])(?:0[1-9](?:[ .-]\d\d){4}|07\d{3}[ -]?\d{3}[ -]?\d{3}|020 \d{4} \d{4}|01\d{2,3} \d{3} \d{4}|"
    r"01[567]\d{1,2}[ /-]\d{3,4}[ ]?\d{3,5})(?![\w-]|[.,]\d)"
)
"""Numbers with a trunk prefix in the forms of France, the United Kingdom and Germany (mobile)."""
_ANY: Final = re.compile(
    rf"(?<![\w+.,/$\u20ac\u00a3-])\(?\d{{2,6}}\)?(?:{_SEP}\d{{1,6}}){{0,7}}(?![\w]|[.,]\d|[ ]?[%\u20ac$\u00b0])"
)
_PHONE_WORD: Final = re.compile(
    r"\b(?:phone|telephone|tel|cell|cellphone|mobile|landline|whats-?app|signal|fax|hotline|call|calls|"
    r"called|ring|text|sms|dial|"
    r"(?:my|your|his|her|our|their|new|contact|emergency) (?:new |work |home |private |old )?numbers?|"
    r"reach (?:me|him|her|us|them)|contact|"
    r"telefon\w*|handy\w*|mobil\w*|festnetz\w*|ruf\w*|anruf\w*|(?:meine|deine|seine|ihre|unsere|neue) "
    r"(?:neue |private )?nummer|"
    r"telefono|movil|celular|fijo|llam\w+|(?:mi|tu|su|nuestro) (?:nuevo )?numero|numero de contacto|"
    r"portable|fixe|appel\w*|joindre|joignable|(?:mon|ton|son|notre|votre) (?:nouveau )?numero|"
    r"telefone|telemovel|cellulare)\b",
    re.IGNORECASE,
)
_OTHER_NUMBER: Final = re.compile(
    r"(?:order|invoice|ticket|case|isbn|tracking|parcel|room|flight|version|account|customer|client|serial|"
    r"reference|ref|code|zip|"
    r"booking|reservation|policy|member|student|employee|license|licence|part|model|article|item|bus|train|"
    r"id|pin|card|iban|vat|"
    r"bestell\w*|rechnung\w*|kunden\w*|auftrag\w*|vertrag\w*|sendung\w*|konto\w*|postleitzahl|plz|artikel\w*|"
    r"pedido|factura|cliente|seguimiento|cuenta|postal|reserva|billete|commande|facture|suivi|compte|dossier)\b",
    re.IGNORECASE,
)
_DATE: Final = re.compile(
    r"(?:19|20)\d\d[-/. ](?:0?[1-9]|1[0-2])[-/. ]\d{1,2}(?:\D|$)|\d{1,2}[-/.]\d{1,2}[-/.](?:19|20)?\d\d$|"
    r"(?:19|20)\d\d ?- ?(?:19|20)\d\d"
)
_LONG_NUMBER: Final = re.compile(r"\d(?:[ ()./\u00b7-]{0,3}\d){6}")
_NEAR: Final = 48
_DIGITS_MIN, _DIGITS_MAX = 7, 12
_INTERNATIONAL_MIN, _INTERNATIONAL_MAX = 8, 16
PHONE_DIGITS: Final = min(
    _INTERNATIONAL_MIN, _DIGITS_MIN, *(least_digits(form) for form in (_NORTH_AMERICAN, _TRUNK, _LONG_NUMBER))
)
"""Minimum number of digits in a phone number."""


def emails(text: str) -> Iterator[Finding]:
    """Yield e-mail addresses."""
    if "@" in text:
        for match in _EMAIL.finditer(text):
            if match["top"].lower() in _FILE_ENDINGS or _NO_ADDRESS_BEFORE.search(
                text, max(0, match.start() - 32), match.start()
            ):
                continue
            lead = len(match[0]) - len(match[0].lstrip("'.-"))
            yield Finding("email", match.start() + lead, match.end())
    if "(" in text or "[" in text or "{" in text:
        yield from (Finding("email", *match.span()) for match in _SPELLED.finditer(text))


def phones(text: str) -> Iterator[Finding]:
    """Yield phone numbers."""
    for match in _INTERNATIONAL.finditer(text):
        if _INTERNATIONAL_MIN <= _count(match[0]) <= _INTERNATIONAL_MAX:
            yield Finding("phone", *match.span())
    for form in (_NORTH_AMERICAN, _TRUNK):
        for match in form.finditer(text):
            if not _names_another_number(text, match.start()):
                yield Finding("phone", *match.span())
    if not _LONG_NUMBER.search(text):
        return
    near = 0
    for word in _PHONE_WORD.finditer(text):
        if word.end() < near:
            continue
        number = _ANY.search(text, word.end(), min(len(text), word.end() + _NEAR + 24))
        if number is None or number.start() > word.end() + _NEAR:
            continue
        between = text[word.end() : number.start()]
        if _OTHER_NUMBER.search(between) or "\n\n" in between or _names_another_number(text, word.start() + 1):
            continue
        near = number.end()
        if _DIGITS_MIN <= _count(number[0]) <= _DIGITS_MAX and not _DATE.match(number[0]):
            yield Finding("phone", *number.span())


def _count(number: str) -> int:
    return sum(map(str.isdigit, number))


def _names_another_number(text: str, place: int) -> bool:
    return _OTHER_NUMBER.search(text, max(0, place - 24), place) is not None
