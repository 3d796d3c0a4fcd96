"""Shortlist of memories for the tool `recall`: a model chooses the answer from it; pure (docs/design/recall.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from ...schemas.recall import Tier
from ..facts.similarity import overlap, words
from ..policies import RecallPolicy
from .selection import ScoredMemory, may_say_the_same, sort_by_score

SHORTLIST_TIERS: Final[tuple[Tier, ...]] = ("semantic", "episodic", "turns")
"""Tiers of a shortlist. The working tier is left out, because the context already shows its entries."""
CUT: Final = "…"
_WORD: Final = re.compile(r"\w+")
_FIRST_WITHOUT_SPACES: Final = "\u2e80"
"""The first code point of the scripts that have no spaces between words."""


class ExactPhrase:
    """A cue that is searched for as a phrase: its words in their order.

    The case is ignored, and so are spaces and signs between the words. A cue without words occurs in no text.
    """

    def __init__(self, cue: str) -> None:
        named = _WORD.findall(cue)
        self._pattern = None
        if named:
            body = r"\W+".join(map(re.escape, named))
            before, after = _boundary(named[0][0]), _boundary(named[-1][-1])
            self._pattern = re.compile(f"{before}{body}{after}", re.IGNORECASE)

    def find(self, text: str) -> tuple[int, int] | None:
        """Return the first occurrence of the phrase as (start, end), or None."""
        found = None if self._pattern is None else self._pattern.search(text)
        return None if found is None else found.span()


def _boundary(char: str) -> str:
    return r"\b" if char < _FIRST_WITHOUT_SPACES else ""


def shortlist(
    ordered: Sequence[ScoredMemory], *, phrase: ExactPhrase, item_characters: int, policy: RecallPolicy
) -> tuple[ScoredMemory, ...]:
    """Choose the memories that are shown to the model.

    `ordered` are the candidates in the order of `sort_by_score`; the shortlist has the same order. It has facts,
    episodes, and messages that contain the phrase; `policy.tool` limits the number of each. An item is left out when an
    item of a higher tier contains its text. Each text counts with at most `item_characters` characters. When the sum
    exceeds `policy.tool.characters`, the items with the lowest scores are left out.
    """
    tool = policy.tool
    facts = [each for each in ordered if each.tier == "semantic"][: tool.facts]
    episodes = (each for each in ordered if each.tier == "episodic")
    messages = (each for each in ordered if each.tier == "turns" and phrase.find(each.content) is not None)
    chosen = [_Worded(each, words(each.content)) for each in facts]
    for others, most in ((episodes, tool.episodes), (messages, tool.messages)):
        distinct = _distinct(others, from_higher=tuple(chosen), more_than=policy.duplicate_overlap)
        chosen += islice(distinct, most)
    shown: list[ScoredMemory] = []
    left = tool.characters
    for each in sort_by_score(each.memory for each in chosen):
        left -= min(len(each.content), item_characters)
        if left < 0:
            break
        shown.append(each)
    return tuple(shown)


class _Worded(NamedTuple):
    memory: ScoredMemory
    words: frozenset[str]


def _distinct(
    memories: Iterable[ScoredMemory], *, from_higher: Sequence[_Worded], more_than: float
) -> Iterator[_Worded]:
    """Yield the memories that no memory of `from_higher` about the same subject contains.

    A memory contains another memory when it has more than the share `more_than` of the words of that memory.
    """
    for each in memories:
        its = words(each.content)
        contained = any(
            may_say_the_same(each, higher.memory) and overlap(its, higher.words) > more_than for higher in from_higher
        )
        if not contained:
            yield _Worded(each, its)


def excerpt(text: str, phrase: ExactPhrase, *, characters: int) -> str:
    """Return at most `characters` characters of a text. `…` marks where the text was cut.

    The excerpt contains the first occurrence of the phrase. If the phrase does not occur, the excerpt is the beginning
    of the text.
    """
    if len(text) <= characters:
        return text
    start, end = phrase.find(text) or (0, 0)
    first = 0 if end < characters else max(0, min(start - 1, (start + end - characters) // 2))
    first = min(first, len(text) - characters)
    cut = text[first : first + characters]
    if first > 0:
        cut = CUT + cut[1:]
    return cut if first + characters == len(text) else cut[:-1] + CUT
