"""Frequent words of Romanian."""

from __future__ import annotations

from typing import Final

from ..common_words import CommonWords

ROMANIAN_WORDS: Final = CommonWords(
    tag="ro",
    function="""
    eu mă îmi meu mea noi tu el ea un o și sau dar că de la în pe cu din pentru sunt este am are nu da locuiesc
    lucrez
    """,
)
