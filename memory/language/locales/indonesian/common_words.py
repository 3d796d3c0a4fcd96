"""Frequent words of Indonesian."""

from __future__ import annotations

from typing import Final

from ..common_words import CommonWords

INDONESIAN_WORDS: Final = CommonWords(
    tag="id",
    function="""
    saya aku ku kami kita kamu dia ini itu yang dan atau tapi di ke dari dengan untuk adalah bukan tidak ada punya
    tinggal
    """,
)
