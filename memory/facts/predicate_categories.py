"""Default category of a statement, by its predicate."""

from __future__ import annotations

from typing import Final

from ...schemas.observations import Category

_BY_PREDICATE: Final[dict[str, Category]] = {
    **dict.fromkeys(("name", "born_in", "hometown", "native_language"), "identity"),
    **dict.fromkeys(("works_at", "works_in", "works_as", "works_on", "works_hours", "teaches", "earns"), "profession"),
    **dict.fromkeys(("likes", "dislikes", "prefers", "interested_in", "supports", "listens_to"), "preference"),
    **dict.fromkeys(("believes",), "belief"),
    **dict.fromkeys(("children", "lives_with", "married_to", "partner"), "relationship"),
    **dict.fromkeys(("goes_to_bed_at", "commutes_by", "plays", "watches", "reads", "smokes", "drinks"), "pattern"),
}


def category_of(predicate: str | None) -> Category:
    """Return the predicate's category: `attribute` for a predicate outside the table, `knowledge` for None."""
    if predicate is None:
        return "knowledge"
    return _BY_PREDICATE.get(predicate, "attribute")
