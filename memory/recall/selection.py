"""Selection of an answer from scored memories: the best of all tiers, without duplicates (docs/design/recall.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from ...schemas.recall import TIERS, Tier
from ..facts.similarity import overlap, words
from ..policies import RecallPolicy
from .ranking import Score

Key = tuple[Tier, str]
OmissionReason = Literal["min_score", "no_word", "not_believed", "duplicate", "tier_share", "limit"]
"""Reason why a candidate is not in the answer. `min_score`: its score is too low. `no_word`: it shares no word with the
cue. `not_believed`: its fact is not believed. `duplicate`: an item of a higher tier says the same. `tier_share`: its
tier has its share of the answer. `limit`: the answer is full."""
_RANKS = {tier: rank for rank, tier in enumerate(TIERS)}


class ScoredMemory(NamedTuple):
    """A candidate, with its text for the duplicate check. `subject` is None for a message, which may be about
    anybody."""

    tier: Tier
    id: str
    content: str
    score: Score
    subject: str | None = None


def share(limit: int, *, tiers: int) -> int:
    """Return the maximum number of items of one tier in an answer of `limit` items: half of them, but at least one.

    `tiers` is the number of tiers in the request. With one tier there is no such maximum.
    """
    return limit if tiers == 1 else max(1, limit // 2)


def sort_by_score(candidates: Iterable[ScoredMemory]) -> list[ScoredMemory]:
    """Sort candidates by score, then tier, then id."""
    return sorted(candidates, key=lambda each: (-each.score.total, _RANKS[each.tier], each.id))


def choose(
    ordered: Sequence[ScoredMemory], *, limit: int, tiers: int, policy: RecallPolicy
) -> tuple[ScoredMemory, ...]:
    """Choose the items of the answer. `ordered` are the candidates in the order of `sort_by_score`. The answer has the
    same order.

    An item is a duplicate when another item of the answer contains its text, has a higher tier and is about the same
    subject. The next candidate replaces a duplicate. Only items of the answer make other items duplicates, so a text is
    never left out entirely. When several tiers have the same text about a subject, the answer has the item of the
    highest tier with room, even if the score of that item alone is too low.
    """
    left, most = ordered, share(limit, tiers=tiers)
    seen: dict[str, frozenset[str]] = {}
    others = ordered if len(ordered) > limit else ()
    replaced: dict[Key, Tier] = {}
    while True:
        picked = _best(left, limit=limit, most=most, replaced=replaced)
        if others and (instead := _find_replacements(picked, others, most=most)):
            left = _replaced(left, instead)
            replaced |= {_key(higher): tier for (tier, _), higher in instead.items()}
            continue
        for each in picked:
            if each.content not in seen:
                seen[each.content] = words(each.content)
        duplicates = _find_duplicates(picked, seen, more_than=policy.duplicate_overlap)
        if not duplicates:
            return tuple(sort_by_score(picked))
        left = [each for each in left if _key(each) not in duplicates]


def why_left_out(
    left: Sequence[ScoredMemory], chosen: Sequence[ScoredMemory], *, limit: int, tiers: int, policy: RecallPolicy
) -> Iterator[tuple[ScoredMemory, OmissionReason, ScoredMemory | None]]:
    """Yield each candidate that `choose` did not choose, with the reason, and for a duplicate the item of the answer
    that says the same."""
    most, taken = share(limit, tiers=tiers), Counter(each.tier for each in chosen)
    there = {_key(each) for each in chosen}
    lowest = min((each.score.total for each in chosen), default=0.0)
    said = [(each, words(each.content)) for each in chosen]
    for each in left:
        if _key(each) in there:
            continue
        its = words(each.content)
        same = next(
            (
                higher
                for higher, theirs in said
                if _rank(higher) < _rank(each)
                and may_say_the_same(each, higher)
                and overlap(its, theirs) > policy.duplicate_overlap
            ),
            None,
        )
        if same is not None:
            yield each, "duplicate", same
        elif taken[each.tier] >= most and (len(chosen) < limit or each.score.total > lowest):
            yield each, "tier_share", None
        else:
            yield each, "limit", None


def _find_replacements(
    picked: Sequence[ScoredMemory], ordered: Sequence[ScoredMemory], *, most: int
) -> dict[Key, ScoredMemory]:
    """Return the replacements for picked items: by key of the item, a candidate of a higher tier with the same text.

    A literal comparison of the texts is enough, because an observation has the same text in each of its tiers. It is
    also fast; a read compares hundreds of candidates.
    """
    texts = {each.content for each in picked}
    same: dict[str, list[ScoredMemory]] = {text: [] for text in texts}
    for each in ordered:
        if each.content in texts:
            same[each.content].append(each)
    taken = Counter(each.tier for each in picked)
    there = {_key(each) for each in picked}
    instead: dict[Key, ScoredMemory] = {}
    for each in picked:
        higher = _highest(each, same[each.content])
        if _rank(higher) < _rank(each) and _key(higher) not in there and taken[higher.tier] < most:
            instead[_key(each)] = higher
            there.add(_key(higher))
            taken[higher.tier] += 1
    return instead


def _highest(picked: ScoredMemory, same: Sequence[ScoredMemory]) -> ScoredMemory:
    """Return the candidate of the highest tier among `same`, the candidates with the text of the picked item.

    The candidate must have the subject of the picked item. If the picked item has no subject, any subject is allowed.
    """
    return min((each for each in same if picked.subject in (None, each.subject)), key=_rank)


def _replaced(left: Sequence[ScoredMemory], instead: Mapping[Key, ScoredMemory]) -> list[ScoredMemory]:
    moved = {_key(each) for each in instead.values()}
    return [instead.get(key, each) for each in left if (key := (each.tier, each.id)) not in moved]


def _find_duplicates(
    picked: Sequence[ScoredMemory], words_of: Mapping[str, frozenset[str]], *, more_than: float
) -> set[Key]:
    """Return the keys of the duplicates among the picked items.

    An item is a duplicate when a kept item of a higher tier may have the same subject and contains more than the share
    `more_than` of its words.
    """
    staying: list[tuple[ScoredMemory, frozenset[str]]] = []
    duplicates: set[Key] = set()
    for each in sorted(picked, key=_rank):
        its = words_of[each.content]
        if any(
            _rank(higher) < _rank(each) and may_say_the_same(each, higher) and overlap(its, theirs) > more_than
            for higher, theirs in staying
        ):
            duplicates.add(_key(each))
        else:
            staying.append((each, its))
    return duplicates


def may_say_the_same(one: ScoredMemory, other: ScoredMemory) -> bool:
    """Return whether two memories are about the same subject, or one of them is a message."""
    return one.subject == other.subject or None in (one.subject, other.subject)


def _key(item: ScoredMemory) -> Key:
    return item.tier, item.id


def _rank(item: ScoredMemory) -> int:
    """Return the rank of the item's tier. A lower rank is a higher tier; `semantic` has rank 0."""
    return _RANKS[item.tier]


def _best(
    ordered: Sequence[ScoredMemory], *, limit: int, most: int, replaced: Mapping[Key, Tier]
) -> list[ScoredMemory]:
    """Return the first `limit` candidates, at most `most` of each tier.

    `replaced` has, by key of a replacement, the tier of the item that it replaced. The replacement counts for both
    tiers; otherwise another item of the replaced item's tier would get into the answer.
    """
    picked: list[ScoredMemory] = []
    taken = dict.fromkeys(TIERS, 0)
    for each in ordered:
        if len(picked) == limit:
            break
        if taken[each.tier] < most:
            taken[each.tier] += 1
            if (instead_of := replaced.get(_key(each))) is not None:
                taken[instead_of] += 1
            picked.append(each)
    return picked
