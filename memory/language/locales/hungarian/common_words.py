"""Frequent words of Hungarian."""

from __future__ import annotations

from typing import Final

from ..common_words import CommonWords

HUNGARIAN_WORDS: Final = CommonWords(
    tag="hu",
    function="""
    én nekem az a egy és vagy de hogy nem igen van vagyok volt nagyon lakom dolgozom
    """,
)
