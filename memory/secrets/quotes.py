"""Quotes without secrets: cuts a quote to the clause that supports its statement.

Example: two statements have the quote "My password is [password], and I prefer tea". The quote of the statement about
tea becomes "I prefer tea".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from ..language.text import folded
from .findings import PLACEHOLDER, placeholder
from .secret_filter import SecretFilter

HIDDEN: Final = "[secret]"
"""Replacement in a quote for words that only a secret record may contain."""
MASKED_SPAN: Final = re.compile(rf"{PLACEHOLDER.pattern}|{re.escape(HIDDEN)}")
"""The pattern of all replacements in a quote."""
_BREAK: Final = re.compile(
    r"[.!?;:,…](?=\s|$)|[。！？；，、]|[\r\n]+|\s[-–—]+\s"
    r"|\s(?=(?:and|but|so|because|und|aber|denn|weil|y|pero|porque|et|mais|car)\s)",
    re.IGNORECASE,
)
_JOINT: Final = re.compile(r"^(?:and|but|so|because|und|aber|denn|weil|y|pero|porque|et|mais|car)\s+", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W_]{3,}")
STEM: Final = 4
"""Number of letters at the beginning of a word that are compared. Two words that begin with the same letters count as
the same word."""


@dataclass(frozen=True, slots=True)
class _ToldQuote:
    """The folded quote of a secret statement, and its clauses."""

    text: str
    parts: tuple[str, ...]

    @classmethod
    def of(cls, quote: str) -> _ToldQuote:
        text = folded(quote)
        return cls(text, tuple(text[start:end] for start, end in _spans(text)))


@dataclass(frozen=True, slots=True)
class _Clause:
    start: int
    end: int
    tainted: bool
    shared: int
    """Number of words that the clause shares with the statement."""


def cut_quote(quote: str, statement: str, secrets: SecretFilter, *, told: Sequence[str] = ()) -> str:
    """Return the part of a quote that a record that is not secret may contain.

    A clause is secret in two cases: it contains a masked or labelled span, or it overlaps a quote in `told`, the quotes
    of secret statements. Every other clause is clean. A quote without secret clauses is returned unchanged. Otherwise
    the result is the run of consecutive clean clauses that shares most words with the statement. When only secret
    clauses share words with the statement, the result is the secret clause with most shared words, with its secrets
    replaced.
    """
    hidden = [_ToldQuote.of(each) for each in told]
    stems = {word[:STEM] for word in _WORD.findall(folded(statement))}
    clauses = [_clause(quote, span, stems, secrets, hidden) for span in _spans(quote)]
    if not any(each.tainted for each in clauses):
        return quote
    clean = _runs([each for each in clauses if not each.tainted], clauses)
    carrying = [run for run in clean if any(each.shared for each in run)]
    best_tainted = max((each.shared for each in clauses if each.tainted), default=0)
    if carrying or (clean and not best_tainted):
        run = max(carrying or clean, key=lambda each: (sum(one.shared for one in each), each[-1].end - each[0].start))
        return quote[run[0].start : run[-1].end]
    chosen = max((each for each in clauses if each.tainted), key=lambda each: each.shared)
    return _hide(quote[chosen.start : chosen.end], secrets, hidden)


def _spans(quote: str) -> list[tuple[int, int]]:
    """Return the spans of the clauses of a quote, without the words and punctuation that join them."""
    bounds = [0, *(at for found in _BREAK.finditer(quote) for at in (found.start(), found.end())), len(quote)]
    spans = []
    for start, end in zip(bounds[::2], bounds[1::2], strict=True):
        text = quote[start:end]
        start += len(text) - len(text.lstrip())
        end -= len(text) - len(text.rstrip())
        joint = _JOINT.match(quote[start:end])
        if joint is not None:
            start += joint.end()
        if start < end:
            spans.append((start, end))
    return spans


def _clause(
    quote: str, span: tuple[int, int], stems: Collection[str], secrets: SecretFilter, hidden: Sequence[_ToldQuote]
) -> _Clause:
    text = quote[span[0] : span[1]]
    protected = secrets.text(text)
    tainted = (
        PLACEHOLDER.search(text) is not None
        or HIDDEN in text
        or protected.text != text
        or protected.sensitivity == "secret"
        or _overlaps(text, hidden)
    )
    shared = sum(word[:STEM] in stems for word in _WORD.findall(folded(text)))
    return _Clause(span[0], span[1], tainted, shared)


def _overlaps(text: str, hidden: Sequence[_ToldQuote]) -> bool:
    """Return whether a clause overlaps the quote of a secret statement: the quote contains the clause, or the clause
    contains a part of the quote (two words or more, unless the part is the whole clause)."""
    clause = folded(text) if hidden else ""
    return bool(clause) and any(
        _stands_in(clause, told.text)
        or any(_stands_in(each, clause) for each in told.parts if each == clause or len(each.split()) > 1)
        for told in hidden
        if told.text
    )


def _stands_in(words: str, text: str) -> bool:
    at = text.find(words)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(words) : at + len(words) + 1]
        if not (before.isalnum() or after.isalnum()):
            return True
        at = text.find(words, at + 1)
    return False


def _runs(clean: Sequence[_Clause], clauses: Sequence[_Clause]) -> list[list[_Clause]]:
    """Group consecutive clauses of the quote."""
    runs: list[list[_Clause]] = []
    place_of = {each.start: place for place, each in enumerate(clauses)}
    for each in clean:
        if runs and place_of[runs[-1][-1].start] + 1 == place_of[each.start]:
            runs[-1].append(each)
        else:
            runs.append([each])
    return runs


def _hide(clause: str, secrets: SecretFilter, hidden: Sequence[_ToldQuote]) -> str:
    """Return a clause with its secrets replaced."""
    if _overlaps(clause, hidden):
        return HIDDEN
    parts: list[str] = []
    read = 0
    for finding in secrets.text(clause).findings:
        parts += [clause[read : finding.start], placeholder(finding.kind)]
        read = finding.end
    return "".join((*parts, clause[read:]))
