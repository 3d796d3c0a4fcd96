"""Slots of the offline model's statements."""

from __future__ import annotations

import pytest

from memstream.adapters.completions.offline.attributes import attribute_of, typed
from memstream.memory.policies.slots import SLOTS
from memstream.schemas.slots import UNTYPED, TypedValue


@pytest.mark.parametrize(
    ("content", "slot"),
    [
        ("Name is The Edge", TypedValue("name", "The Edge")),
        ("Is 41 years old", TypedValue("age", "41")),
        ("Lives near the harbour in Split", TypedValue("residence", "harbour in Split")),
        ("Works at the Port Authority", TypedValue("employer", "Port Authority")),
        ("No longer works at Ikea", TypedValue("employer", "Ikea", denied=True)),
        ("Works as an optician", TypedValue("job", "optician")),
        ("Has a half-sister named Vera", UNTYPED),
        ("Has a sister named Vera", TypedValue("sibling", "Vera (sister)")),
        ("Has a grey cat named Soot", TypedValue("pet", "Soot (grey cat)")),
        ("Has a friend named Lou", TypedValue("friend", "Lou")),
        ("No longer has a cat named Soot", TypedValue("pet", "Soot (cat)", denied=True)),
        ("Has three goats", TypedValue("pet", "three goats")),
        ("Has a canoe", UNTYPED),
        ("Is married to Selma", TypedValue("spouse", "Selma")),
        ("Is divorced", TypedValue("marital_status", "divorced")),
        ("Is based in Ghent", TypedValue("residence", "Ghent")),
        ("Joined a running club", UNTYPED),
        ("Favourite colour is teal", TypedValue("favourite", "teal", qualifier="colour")),
        ("Is mildly allergic to wasps", TypedValue("allergy", "wasps")),
        ("Is not allergic to wasps", UNTYPED),
        ("Speaks Finnish natively", TypedValue("language", "Finnish")),
        ("Takes ramipril", TypedValue("medication", "ramipril")),
        ("Takes the tram", UNTYPED),
        ("Does not smoke", UNTYPED),
        (f"Likes {'x' * 300}", UNTYPED),
    ],
)
def test_the_slot_of_a_statement(content: str, slot: TypedValue) -> None:
    assert typed(content) == slot
    assert slot == UNTYPED or slot.slot in SLOTS


@pytest.mark.parametrize(
    ("content", "attribute", "value"),
    [
        ("Loves the sea", "taste sea", "likes"),
        ("Dislikes the sea", "taste sea", "dislikes"),
        ("Is married to Selma", "marital", "married"),
        ("Is single", "marital", "single"),
        ("Has a younger sister named Vera", "has a sister", "vera"),
        ("Has three kids", "has children", "three"),
        ("Is mildly allergic to wasps", "allergy", "wasps"),
        ("Joined Stripe", "employer", "stripe"),
    ],
)
def test_the_attribute_of_a_statement(content: str, attribute: str, value: str) -> None:
    found = attribute_of(content)
    assert found is not None
    assert (found.attribute, found.value) == (attribute, value)
