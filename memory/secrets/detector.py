"""The built-in detector of secrets: rules over a view of the text, without a model and without other packages."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from .bank_accounts import bank_accounts
from .contacts import emails, phones
from .findings import Finding
from .label_stems import words_of_labels
from .labelled import LabelledText, labelled_secrets
from .laid_out import laid_out_secrets
from .national_ids import national_ids
from .payment import cards, ibans
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
_NUMBERS: Final[tuple[Callable[[str], Iterable[Finding]], ...]] = (cards, ibans, national_ids, phones)
_NAMED: Final[tuple[Callable[[str], Iterable[Finding]], ...]] = (told_passwords, wallet_words, bank_accounts)

CLEAN_KEPT: Final = 2_048
"""Texts without a finding that are remembered: a stage looks several times at what it keeps."""


class BuiltInDetector:
    """Finds every kind of secret by its form, its checksum and the words around it.

    It reads a text in linear time, in English, German, Spanish and French where words matter.
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
    if not text.isascii() or any(map(text.__contains__, string.digits)):
        for rule in _NUMBERS:
            yield from rule(text)
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
    """Raise `_Found` for a text with a secret, so that it is never among those that are remembered."""
    view = TextView(text)
    found = [Finding(each.kind, *view.span(each.start, each.end)) for each in _search(view)]
    if found:
        raise _Found(found)
