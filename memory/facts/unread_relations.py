"""Relation of two statements by their words alone, when no locale pack can read one of them; pure.

Without a pack, the negations and the predicates of a text are unknown. Therefore two texts are one statement only when
their words are equal. Two different texts may both be true, so a difference does not close the known statement.
Exception: only a number differs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..language.plain_words import PlainWord, plain_words
from .relations import ClaimRelation, Relation

_YEAR: Final = re.compile(r"(19|20)\d\d")


def relate_unread(old: str, new: str) -> ClaimRelation:
    """Relate two texts by their words.

    - The words are equal: one statement.
    - Only numbers differ, and they are not years: the new text has another value.
    - Only a name or a year differs: a model judges whether the new text replaces the known text. Events in two years
      may both be true.
    - Only the order of the words differs: a model judges.
    - Any other difference: the similarity zone decides whether a model judges or the new fact is added.
    """
    mine, theirs = plain_words(old), plain_words(new)
    relation = _relation(mine, theirs)
    return ClaimRelation(
        relation,
        same_predicate=relation is not Relation.DIFFERS,
        shares=bool({each.text for each in mine} & {each.text for each in theirs}),
    )


def _relation(mine: Sequence[PlainWord], theirs: Sequence[PlainWord]) -> Relation:
    one, other = [each.text for each in mine], [each.text for each in theirs]
    if one == other:
        return Relation.SAME
    apart = [(old, new) for old, new in zip(mine, theirs, strict=False) if old.text != new.text]
    if len(one) == len(other) and all(old.is_number and new.is_number for old, new in apart):
        years = any(_YEAR.fullmatch(old.text) and _YEAR.fullmatch(new.text) for old, new in apart)
        return Relation.NAME if years else Relation.VALUE
    if sorted(one) == sorted(other):
        return Relation.REORDERED
    return Relation.NAME if _differ_in_a_name(mine, theirs) else Relation.DIFFERS


def _differ_in_a_name(mine: Sequence[PlainWord], theirs: Sequence[PlainWord]) -> bool:
    """Return whether two texts are equal except for one name, for example `Vive en Sevilla` and `Vive en Las
    Palmas`."""
    before = _common(mine, theirs)
    after = _common(mine[before:][::-1], theirs[before:][::-1])
    one, other = mine[before : len(mine) - after], theirs[before : len(theirs) - after]
    return bool(one) and bool(other) and all(each.is_name for each in (*one, *other))


def _common(mine: Sequence[PlainWord], theirs: Sequence[PlainWord]) -> int:
    """Return the number of words at the beginning that are equal in both texts."""
    return next(
        (place for place, (old, new) in enumerate(zip(mine, theirs, strict=False)) if old.text != new.text),
        min(len(mine), len(theirs)),
    )
