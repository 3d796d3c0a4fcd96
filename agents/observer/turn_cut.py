"""What of a long turn the model sees: every message, and of the longest ones their beginning and their end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ...schemas.observations import TurnCut
from .speakers import ShownMessage

CHARACTERS_A_TOKEN: Final = 4
HEAD: Final = 2 / 3
"""The part of what is kept of a message that its beginning gets."""
Said = tuple[ShownMessage, ...]


def cut_to_size(said: Said, *, tokens: int) -> tuple[Said, TurnCut | None]:
    """Return the messages within so many tokens together, and what was left out; None where all fit.

    Short messages stay whole; all longer ones keep the same number of characters. Beginning and end of a message that
    is cut are messages of their own, so no quote can span what is left out.
    """
    characters = CHARACTERS_A_TOKEN * tokens
    if sum(len(each.text) for each in said) <= characters:
        return said, None
    most = _characters_each([len(each.text) for each in said], characters)
    kept: list[ShownMessage] = []
    messages = left_out = 0
    for each in said:
        text = each.text
        if len(text) <= most:
            kept.append(each)
            continue
        head = round(most * HEAD)
        parts = (text[:head], text[len(text) - (most - head) :])
        kept += [replace(each, text=part) for part in parts if part.strip()]
        messages += 1
        left_out += len(text) - most
    return tuple(kept), TurnCut(messages=messages, tokens=-(-left_out // CHARACTERS_A_TOKEN))


def _characters_each(lengths: Sequence[int], characters: int) -> int:
    """Return how many characters the longest texts may keep, so that all have at most `characters` together."""
    left = characters
    for place, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - place)
        if length > share:
            return share
        left -= length
    return max(lengths, default=0)
