"""Frequent words of Czech."""

from __future__ import annotations

from typing import Final

from ..common_words import CommonWords

CZECH_WORDS: Final = CommonWords(
    tag="cs",
    function="""
    já mě mi můj moje my jsem jsi je jsme jsou byl byla mám má a nebo ale že v ve z ze na do od s se pro ne ano
    bydlím
    """,
    frequent="""
    v ve s se z na do od a i je jsou byl má není ne už pro po při bydlí žije pracuje jí pije mluví hraje studuje
    let
    """,
)
