"""Was it said? A statement whose quote is not in its source turn was invented (memory-model §3)."""

from __future__ import annotations

from .text import folded


def quote_found(quote: str, text: str) -> bool:
    """Whether the quote stands in the text, after folding (see text.folded). An empty quote proves nothing."""
    return quote_in_folded(quote, folded(text))


def quote_in_folded(quote: str, text: str) -> bool:
    """The same for a text that is folded already: many quotes, one text."""
    wanted = folded(quote)
    return bool(wanted) and wanted in text
