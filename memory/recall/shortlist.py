"""Shortlist of memories from which a model chooses the answer of the tool `recall`; pure (docs/design/recall.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from ...schemas.recall import Tier
from ..facts.similarity import words
from ..policies import RecallPolicy
from .ranking import overlap
from .selection import ScoredMemory, may_say_the_same, sort_by_score

SHORTLIST_TIERS: Final[tuple[Tier, ...]] = ("semantic", "episodic", "turns")
"""Tiers that a shortlist has. Working entries are left out: the context shows them."""
CUT: Final = "…"
_WORD: Final = re.compile(r"\w+")
_FIRST_WITHOUT_SPACES: Final = "\u2e80"
"""The first code point of the scripts that write no space between words."""


class ExactPhrase:
    """A cue as a phrase: its words in their order. Case, and the spaces and signs between the words, do not count. A
    cue without words stands in no text."""

    def __init__(self, cue: str) -> None:
        named = _WORD.findall(cue)
        self._pattern = None
        if named:
            body = r"\W+".join(map(re.escape, named))
            before, after = _boundary(named[0][0]), _boundary(named[-1][-1])
            self._pattern = re.compile(f"{before}{body}{after}", re.IGNORECASE)

    def find(self, text: str) -> tuple[int, int] | None:
        """Return the first place of the phrase, as (start, end)."""
        found = None if self._pattern is None else self._pattern.search(text)
        return None if found is None else found.span()


def _boundary(char: str) -> str:
    return r"\b" if char < _FIRST_WITHOUT_SPACES else ""


def shortlist(
    ordered: Sequence[ScoredMemory], *, phrase: ExactPhrase, item_characters: int, policy: RecallPolicy
) -> tuple[ScoredMemory, ...]:
    """Choose what the model is shown from candidates in the order of `sort_by_score`, and keep that order.

    These are facts, episodes, and messages that contain the phrase, at most as many of each as `policy.tool` says. An
    item that an item of a higher tier contains is left out, as in a ranked answer. When the texts, each cut to
    `item_characters`, are together longer than `policy.tool.characters`, those that rank lowest are left out.
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
    """Yield the memories of which no higher one about the same subject contains more than this share of the words."""
    for each in memories:
        its = words(each.content)
        contained = any(
            may_say_the_same(each, higher.memory) and overlap(its, higher.words) > more_than for higher in from_higher
        )
        if not contained:
            yield _Worded(each, its)


def excerpt(text: str, phrase: ExactPhrase, *, characters: int) -> str:
    """Return at most so many characters of a text: around the phrase, or from the beginning when it has none. `…`
    stands where something was cut."""
    if len(text) <= characters:
        return text
    start, end = phrase.find(text) or (0, 0)
    first = 0 if end < characters else max(0, min(start - 1, (start + end - characters) // 2))
    first = min(first, len(text) - characters)
    cut = text[first : first + characters]
    if first > 0:
        cut = CUT + cut[1:]
    return cut if first + characters == len(text) else cut[:-1] + CUT
