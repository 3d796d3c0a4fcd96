"""Slots of the offline model's statements."""

from __future__ import annotations

import pytest

from memstream.adapters.completions.offline.slots import typed
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
        ("Has a sister named Vera", TypedValue("sibling", "Vera")),
        ("Has a grey cat named Soot", TypedValue("pet", "Soot")),
        ("Has three goats", TypedValue("pet", "three goats")),
        ("Has a canoe", UNTYPED),
        ("Is married to Selma", TypedValue("spouse", "Selma")),
        ("Is divorced", TypedValue("marital_status", "divorced")),
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
