"""Frequent words of Danish."""

from __future__ import annotations

from typing import Final

from ..common_words import CommonWords

DANISH_WORDS: Final = CommonWords(
    tag="da",
    function="""
    jeg mig min mit mine vi os vores du dig din han ham hans hun hende hendes det den en et og eller men at af i
    på til fra med for er var har havde kan skal vil ikke ingen ja nej også meget bor arbejder hedder
    """,
)
