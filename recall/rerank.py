"""The reranker's step: the best that were found are shown to it, and its order becomes their match.

An order is a ranked list, and a ranked list alone has the match k / (k + rank) (memory/recall/fusion.py): so an order
counts in the formulas as what a search found does. Those that it was not shown, or did not name, follow in the order
they had.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def reordered(items: Sequence[T], order: Sequence[int]) -> list[T]:
    """`items` with those at the places of `order` first. What is no place, or comes again, is passed over."""
    first = [place for place in dict.fromkeys(order) if 0 <= place < len(items)]
    named = frozenset(first)
    return [items[place] for place in (*first, *(place for place in range(len(items)) if place not in named))]


def match_at(rank: int, *, k: float) -> float:
    """Of the item at this place of an order, from 0."""
    return k / (k + rank)
