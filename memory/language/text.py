"""Texts as prompts show them and as they are compared."""

from __future__ import annotations

import re
import unicodedata

_LINE_MARKER = re.compile(r"(?m)^([ \t]*)(?=\[[twcefp]\d+\])")
_ESCAPED_MARKER = re.compile(r"\\(?=\[[twcefp]\d+\])")


def escape_markers(text: str) -> str:
    """A line that looks like one of our own markers (`[t1]`, `[w2]` …) gets a backslash before the bracket, so that a
    turn cannot pretend to be a heading of the prompt."""
    return _LINE_MARKER.sub(r"\1\\", text)


def unescape_markers(text: str) -> str:
    return _ESCAPED_MARKER.sub("", text)


def one_line(text: str) -> str:
    """Line breaks and runs of white space as single spaces: one item, one line of the prompt."""
    return " ".join(text.split())


def folded(text: str) -> str:
    """NFC, case and space folded, without the backslashes that prompts add: what quotes are compared by."""
    plain = unescape_markers(unicodedata.normalize("NFC", text))
    return " ".join(unicodedata.normalize("NFC", plain.casefold()).split())


def quote_found(quote: str, text: str) -> bool:
    """Whether the quote stands in the text, after folding (see text.folded). An empty quote proves nothing."""
    return quote_in_folded(quote, folded(text))


def quote_in_folded(quote: str, text: str) -> bool:
    """The same for a text that is folded already: many quotes, one text."""
    wanted = folded(quote)
    return bool(wanted) and wanted in text
