"""Cut of a long turn for the model: every message is shown, the longest messages only with their beginning and end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ...schemas.observations import TurnCut
from .speakers import ShownMessage

CHARACTERS_A_TOKEN: Final = 4
HEAD: Final = 2 / 3
"""Fraction of a cut message's shown characters that are at its beginning."""
Said = tuple[ShownMessage, ...]


def cut_to_size(said: Said, *, tokens: int) -> tuple[Said, TurnCut | None]:
    """Return the messages cut to this number of tokens in total. Also return the cut, or None when all messages fit.

    Short messages stay whole; all longer messages keep the same number of characters. The beginning and the end of a
    cut message are separate messages, so that no quote can span the cut.
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
    """Return the maximum characters per text at which all texts together have at most `characters`."""
    left = characters
    for place, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - place)
        if length > share:
            return share
        left -= length
    return max(lengths, default=0)
