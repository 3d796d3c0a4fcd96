"""Frequent words of Dutch."""

from __future__ import annotations

from typing import Final

from ..common_words import CommonWords

DUTCH_WORDS: Final = CommonWords(
    tag="nl",
    function="""
    ik me mij mijn wij we ons onze jij je jouw hij hem zijn zij haar het de een en of maar als dat van te in op
    aan met bij voor naar uit over ben bent is was heb hebt heeft had kan moet wil niet geen ja nee ook nog heel
    woon werk heet
    """,
    frequent="""
    de het een van en in op te met voor bij naar uit aan is zijn was heeft niet geen meer hij zij haar woont werkt
    houdt eet drinkt spreekt speelt heet jaar weegt rookt leest kookt
    """,
    first_person="""
    ik mijn ben heb
    """,
)
