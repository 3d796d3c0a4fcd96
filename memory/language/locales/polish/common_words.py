"""Frequent words of Polish."""

from __future__ import annotations

from typing import Final

from ..common_words import CommonWords

POLISH_WORDS: Final = CommonWords(
    tag="pl",
    function="""
    ja mnie mi mój moja moje my nas ty twój on jego ona jej to ten ta te i lub ale że w we z ze na do od o po dla
    przy jest jestem są był była mam ma mieć nie tak co kto gdzie kiedy jak też już bardzo mieszkam pracuję lubię
    """,
    frequent="""
    w we z ze na do od o u i a oraz nie się jest są był była ma już dla po przy jej jego mieszka pracuje lubi je
    pije mówi gra studiuje nazywa woli lat zarabia waży pali czyta gotuje
    """,
    first_person="""
    ja moj moja jestem mam
    """,
)
