"""Frequent words of Swedish."""

from __future__ import annotations

from typing import Final

from ..common_words import CommonWords

SWEDISH_WORDS: Final = CommonWords(
    tag="sv",
    function="""
    jag mig min mitt mina vi oss vår du dig din han honom hans hon henne hennes det den en ett och eller men om
    att av i på till från med för är var har hade kan måste vill inte ingen ja nej också mycket bor jobbar heter
    """,
    frequent="""
    en ett och i på av med för till från är var har inte ingen som den det hans hennes bor arbetar jobbar gillar
    äter dricker talar spelar heter år röker läser väger
    """,
    first_person="""
    jag min mitt
    """,
)
