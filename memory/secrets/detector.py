"""The built-in detector of secrets. Its rules search a view of the text, and need no model and no other package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from .bank_accounts import bank_accounts
from .contacts import PHONE_DIGITS, emails, phones
from .findings import Finding
from .label_stems import words_of_labels
from .labelled import LabelledText, labelled_secrets
from .laid_out import laid_out_secrets
from .national_ids import national_ids
from .pattern_sizes import most_digits_together
from .payment import CARD_DIGITS, cards, ibans
from .text_view import TextView, lowered
from .tokens import connection_strings, json_web_tokens, private_keys
from .told_passwords import told_passwords
from .vendor_keys import vendor_keys
from .wallet_words import wallet_words

_RULES: Final[tuple[Callable[[str], Iterable[Finding]], ...]] = (
    private_keys,
    json_web_tokens,
    connection_strings,
    vendor_keys,
    emails,
)
_NUMBERS: Final[tuple[tuple[Callable[[str], Iterable[Finding]], int], ...]] = (
    (cards, CARD_DIGITS),
    (ibans, 1),
    (national_ids, 1),
    (phones, PHONE_DIGITS),
)
"""Rules for numbers, each with the minimum number of digits in a match."""
_NAMED: Final[tuple[Callable[[str], Iterable[Finding]], ...]] = (told_passwords, wallet_words, bank_accounts)

CLEAN_KEPT: Final = 2_048
"""Maximum number of texts in the cache of texts without a secret. The cache saves time because a stage checks a text
that it stores several times."""


class BuiltInDetector:
    """Detector of every kind of secret, by form, checksum and surrounding words.

    The time is linear in the length of the text. The rules that search for words cover the languages of `labels/`.
    """

    def find(self, text: str) -> Sequence[Finding]:
        try:
            _require_clean(text)
        except _Found as found:
            return found.findings
        return ()


def _search(view: TextView) -> Iterator[Finding]:
    text = view.text
    for rule in _RULES:
        yield from rule(text)
    digits = most_digits_together(text)
    for numbers, least in _NUMBERS:
        if least <= digits:
            yield from numbers(text)
    small = lowered(text)
    if words := words_of_labels(small):
        for rule in _NAMED:
            yield from rule(text)
        labelled = LabelledText(view, small, words)
        yield from labelled_secrets(labelled)
        yield from laid_out_secrets(labelled)


class _Found(Exception):
    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__()
        self.findings = findings


@lru_cache(CLEAN_KEPT)
def _require_clean(text: str) -> None:
    """Raise `_Found` when a text contains a secret. `lru_cache` does not store a call that raises, so the cache
    contains no text with a secret."""
    view = TextView(text)
    found = [Finding(each.kind, *view.span(each.start, each.end)) for each in _search(view)]
    if found:
        raise _Found(found)
