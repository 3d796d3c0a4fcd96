"""Texts that a server can take: lone surrogates, which JSON may smuggle in, are no Unicode text."""

from __future__ import annotations


def well_formed(text: str) -> str:
    """`text` with lone surrogates replaced (U+FFFD): they have no UTF-8 form, so they could not be sent at all."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
