"""Frequent words of Finnish."""

from __future__ import annotations

from typing import Final

from ..common_words import CommonWords

FINNISH_WORDS: Final = CommonWords(
    tag="fi",
    function="""
    minä minun minulla minua olen on oli ovat ja tai mutta että ei en se tämä hän kanssa asun työskentelen nimeni
    """,
)
