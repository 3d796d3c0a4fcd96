"""Replacement of lone surrogates, which JSON can contain but which are not valid Unicode text."""

from __future__ import annotations


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD, because they have no UTF-8 form."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
