"""Texts as prompts show them and as quotes are compared."""

from __future__ import annotations

import re
import unicodedata

_LINE_MARKER = re.compile(r"(?m)^([ \t]*)(?=\[[twcefp]\d+\])")
_ESCAPED_MARKER = re.compile(r"\\(?=\[[twcefp]\d+\])")


def escape_markers(text: str) -> str:
    """Put a backslash before the bracket of lines that look like our own markers (`[t1]`, `[w2]` …), so that a turn
    cannot imitate a heading of the prompt."""
    return _LINE_MARKER.sub(r"\1\\", text)


def unescape_markers(text: str) -> str:
    return _ESCAPED_MARKER.sub("", text)


def own_statement(content: str, subject: str) -> str:
    """Return a statement without the name of its own subject: `Elena lives in Lecce`, said of elena."""
    named = [re.escape(each) for each in dict.fromkeys((subject.replace("-", " "), subject.partition("-")[0])) if each]
    begins = re.match(rf"\s*(?:{'|'.join(named)})(?:'s|’s)?\s+(?=\S)", content, re.IGNORECASE) if named else None
    return content if begins is None else content[begins.end() :]


def one_line(text: str) -> str:
    """Replace line breaks and runs of white space with single spaces: an item of a prompt takes one line."""
    return " ".join(text.split())


def folded(text: str) -> str:
    """Return the form in which quotes are compared: NFC, folded case and space, without the backslashes of prompts."""
    plain = unescape_markers(unicodedata.normalize("NFC", text))
    return " ".join(unicodedata.normalize("NFC", plain.casefold()).split())


def quote_found(quote: str, text: str) -> bool:
    """Whether the quote stands in the text, after folding. An empty quote proves nothing."""
    return quote_in_folded(quote, folded(text))


def quote_in_folded(quote: str, text: str) -> bool:
    """Do the same as `quote_found` for a folded text: many quotes are compared with one text."""
    wanted = folded(quote)
    return bool(wanted) and wanted in text
