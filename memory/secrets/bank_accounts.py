"""Bank accounts without an IBAN: a bank number and an account number, each after its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .findings import Finding
from .text_view import lowered

STEMS: Final = ("sort", "s/c", "blz", "bankleitzahl", "routing", "aba ", "bsb")
_BETWEEN: Final = r"(?:[ \t]*+(?:numbers?|no\.?|nr\.?|num|is|ist|lautet|lauten|:|=|#|-)){0,3}+[ \t]*+"
_BANK: Final = re.compile(
    r"(?<![^\W_])(?:"
    rf"(?:sort[ -]?codes?|s/c){_BETWEEN}(?P<sort>\d\d[ -]?\d\d[ -]?\d\d)"
    rf"|bsb{_BETWEEN}(?P<branch>\d{{3}}[ -]?\d{{3}})"
    rf"|(?:blz|bankleitzahl){_BETWEEN}(?P<german>\d{{3}} ?\d{{3}} ?\d\d)"
    rf"|(?:routing|aba){_BETWEEN}(?P<routing>\d{{9}})"
    r")(?!\d)"
)
_ACCOUNT: Final = re.compile(
    r"(?<![^\W_])(?:bank )?(?:acc(?:oun)?t|acc|a/c|konto(?:nummer|nr\.?)?|kto\.?(?:nr\.?)?)"
    rf"{_BETWEEN}(?P<number>\d{{4}}[ -]\d{{4}}|\d{{6,17}})(?!\d)"
)
_NEXT_TO: Final = re.compile(r"[ \t,;/]{1,3}+(?P<number>\d{8})(?!\d)")
"""A British account number directly after its sort code."""
_NEAR: Final = 96


def bank_accounts(text: str) -> Iterator[Finding]:
    """Yield the bank numbers and account numbers that are close to each other."""
    small = lowered(text)
    if not any(map(small.__contains__, STEMS)):
        return
    for bank in _BANK.finditer(small):
        near = max(0, bank.start() - _NEAR), min(len(small), bank.end() + _NEAR)
        found = [*_ACCOUNT.finditer(small, *near)]
        if bank.lastgroup == "sort" and (after := _NEXT_TO.match(small, bank.end())):
            found.append(after)
        if found:
            yield Finding("iban", *bank.span(bank.lastgroup or 0))
            yield from (Finding("iban", *each.span("number")) for each in found)
