"""The conflict pipeline decides by slots and values when both statements have them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstream.memory.facts.conflict import Neighbours, carry_out, lookup_slots, resolve
from memstream.memory.facts.similarity import NearFact
from memstream.memory.facts.slot_predicates import typed_by_words
from memstream.memory.facts.slot_relations import compare_values
from memstream.memory.facts.statements import statement_from_observation
from memstream.memory.facts.transitions import READABLE, Stamp
from memstream.memory.language.locales import locale
from memstream.memory.language.locales.undetermined import UNDETERMINED
from memstream.memory.policies import MemoryPolicy
from memstream.schemas.facts import StoredFact
from memstream.schemas.slots import UNTYPED, TypedValue
from tests.support.conflict_cases import FOLDER, measure
from tests.support.record_builders import NOW, observation, observed

POLICY = MemoryPolicy()
POLICY = replace(POLICY, conflict=replace(POLICY.conflict, lexical=True))
ENGLISH = locale("en")


def tell(*said: tuple[str, TypedValue], begins: tuple[datetime | None, ...] = ()) -> dict[str, StoredFact]:
    """Tell statements, a day apart. Return the rows by id."""
    rows: dict[str, StoredFact] = {}
    for day, (content, typed) in enumerate(said):
        fields: dict[str, Any] = {**typed.fields(), "valid_from": begins[day] if begins else None}
        made = observation(content, turn=f"t{day}", **fields)
        told = NOW + timedelta(days=day)
        statement = statement_from_observation(observed(made, turn=f"t{day}", occurred_at=told), made, POLICY)
        live = [row for row in rows.values() if row.state in READABLE]
        equal = next((row for row in live if row.content_hash == statement.content_hash), None)
        stamp = Stamp(now=told, cause=f"c{day}", embedder="hashing")
        near = () if equal else tuple(NearFact(row) for row in live)
        found = resolve(statement, Neighbours(equal=equal, near=near), POLICY, now=told)
        rows |= {each.fact.fact_id: each.fact for each in carry_out(found, statement, stamp, POLICY)}
    return rows


def active(rows: dict[str, StoredFact]) -> set[str]:
    return {row.content for row in rows.values() if row.state == "active"}


def is_(slot: str, value: str, *, denied: bool = False, qualifier: str | None = None) -> TypedValue:
    return TypedValue(slot, value, denied, qualifier)


BOTH = (
    (("Likes tea", is_("likes", "tea")), ("Likes their job", is_("likes", "their job"))),
    (
        ("Works at Siemens", is_("employer", "Siemens")),
        ("No longer works weekends", is_("work_hours", "weekends", denied=True)),
    ),
    (
        ("Owns an iPhone 12", is_("possession", "iPhone 12")),
        ("Owns an iPhone 15 too", is_("possession", "iPhone 15")),
    ),
    (
        ("Drinks coffee", is_("habit", "coffee")),
        ("No longer drinks coffee after 5pm", is_("habit", "coffee", denied=True, qualifier="after 5pm")),
    ),
    (
        ("Likes hiking", is_("likes", "hiking")),
        ("Dislikes hiking in the rain", is_("dislikes", "hiking", qualifier="in the rain")),
    ),
    (("Works as a nurse", is_("job", "nurse")), ("Also works as a DJ", is_("job", "DJ"))),
    (
        ("Drinks coffee", is_("habit", "coffee")),
        ("Does not drink coffee at night", is_("habit", "coffee", denied=True)),
    ),
    (("Is a nurse", is_("job", "nurse")), ("Is a drummer", is_("hobby", "drummer"))),
    (("Speaks French", is_("language", "French")), ("Is learning French", is_("language", "French"))),
    (("Has a cat named Soot", is_("pet", "Soot (cat)")), ("Has a cat named Milo", is_("pet", "Milo (cat)"))),
    (("Has a cat named Soot", is_("pet", "Soot (cat)")), ("Has a dog named Soot", is_("pet", "Soot (dog)"))),
    (
        ("Has a dog named Soot", is_("pet", "Soot (dog)")),
        ("No longer has a cat named Soot", is_("pet", "Soot (cat)", denied=True)),
    ),
)
REPLACED = (
    (("Prefers dark mode", is_("prefers", "dark mode")), ("Prefers light mode now", is_("prefers", "light mode"))),
    (("Works at Siemens", is_("employer", "Siemens")), ("Works at Bosch", is_("employer", "Bosch"))),
    (("Likes jazz", is_("likes", "jazz")), ("Dislikes jazz", is_("dislikes", "jazz"))),
    (("Drinks black coffee", is_("habit", "black coffee")), ("Quit coffee", is_("habit", "coffee", denied=True))),
    (("Is married to Dave", is_("spouse", "Dave")), ("Got divorced", is_("marital_status", "divorced"))),
    (("Works at Siemens", is_("employer", "Siemens")), ("Quit their job", is_("job", "job", denied=True))),
    (("Prefers tea", is_("prefers", "tea")), ("Prefers coffee, not tea", is_("prefers", "coffee"))),
    (
        ("Has a grey cat named Soot", is_("pet", "Soot (grey cat)")),
        ("No longer has a cat", is_("pet", "cat", denied=True)),
    ),
    (
        ("Has a puppy named Rex", is_("pet", "Rex (puppy)")),
        ("No longer has a dog named Rex", is_("pet", "Rex (dog)", denied=True)),
    ),
)


@pytest.mark.parametrize(("known", "new"), BOTH)
def test_both_statements_hold(known: tuple[str, TypedValue], new: tuple[str, TypedValue]) -> None:
    assert active(tell(known, new)) == {known[0], new[0]}


@pytest.mark.parametrize(("known", "new"), REPLACED)
def test_the_new_statement_replaces_the_known_one(known: tuple[str, TypedValue], new: tuple[str, TypedValue]) -> None:
    assert active(tell(known, new)) == {new[0]}


@pytest.mark.parametrize(
    ("typed", "slots"),
    [
        (is_("employer", "Bosch"), ("employer",)),
        (is_("likes", "tea"), ()),
        (is_("likes", "tea", denied=True), ("likes", "dislikes")),
        (is_("unheard_of", "tea"), ()),
    ],
)
def test_facts_of_a_slot_are_looked_up_where_one_may_close(typed: TypedValue, slots: tuple[str, ...]) -> None:
    made = observation("Statement", turn="t1", **typed.fields())
    statement = statement_from_observation(observed(made, turn="t1", occurred_at=NOW), made, POLICY)
    assert lookup_slots(statement, POLICY) == slots


def test_a_change_without_a_fact_of_its_kind_waits() -> None:
    rows = tell(
        ("Prefers dark mode", is_("prefers", "dark mode")), ("Prefers oat milk now", is_("prefers", "oat milk"))
    )
    assert {row.content: row.state for row in rows.values()} == {
        "Prefers dark mode": "active",
        "Prefers oat milk now": "pending",
    }


def test_a_slot_is_compared_with_a_text_that_the_pack_reads_with_certainty() -> None:
    rows = tell(("Works at Google", UNTYPED), ("Signed on with Bosch", is_("employer", "Bosch")))
    assert active(rows) == {"Signed on with Bosch"}


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("Works at New York Times", is_("employer", "New York Times")),
        ("Doesn't like olives", is_("likes", "olives", denied=True)),
        ("Might move to Lisbon", UNTYPED),
        ("Left Google and now works at Stripe", UNTYPED),
        ("Collects stamps", UNTYPED),
    ],
)
def test_a_text_has_a_slot_only_when_it_is_certain(text: str, typed: TypedValue) -> None:
    assert typed_by_words(text, ENGLISH, POLICY.slot) == typed


@pytest.mark.parametrize(
    ("old", "new", "relation"),
    [
        ("The Hague", "the hague", "same"),
        ("two cats", "three cats", "count"),
        ("3 rooms", "three rooms", "same"),
        ("Stripe", "Stripe Inc.", "more"),
        ("paediatric nurse", "nurse", "less"),
        ("type A", "type B", "other"),
        ("C", "C#", "other"),
        ("coffee to tea", "tea to coffee", "reordered"),
        ("Soot (cat)", "Soot (dog)", "other"),
        ("Soot (cat)", "Milo (cat)", "other"),
        ("Soot", "Soot (cat)", "more"),
        ("cat", "Soot (cat)", "more"),
        ("Soot (cat)", "Soot (grey cat)", "more"),
        ("Rex (puppy)", "Rex (dog)", "less"),
        ("Mia (child)", "Mia (daughter)", "more"),
        ("tea, wine", "tea, alcohol", "other"),
    ],
)
def test_values_are_compared_without_case_articles_and_spelling_of_numbers(old: str, new: str, relation: str) -> None:
    assert compare_values(old, new, ENGLISH) == relation


def test_values_without_spaces_are_compared_by_characters() -> None:
    assert compare_values("ソニー", "ソニー株式会社", UNDETERMINED) == "more"
    assert compare_values("京都", "東京都", UNDETERMINED) == "other"


async def test_the_typed_cases_are_decided_right() -> None:
    report = await measure(FOLDER / "typed_cases.jsonl", "hashing")
    assert not report.lost
    assert report.right >= 0.95, report.lines()


# ------------------------------------------------------------------------------------------------- properties
VALUES = st.sampled_from(["Zarnex", "Quolit", "Brandor", "Vintamo"])
QUALIFIERS = st.sampled_from([None, "at night", "on Fridays", "at work"])
TYPED = st.builds(
    TypedValue, st.sampled_from(["employer", "habit", "likes", "dislikes"]), VALUES, st.booleans(), QUALIFIERS
)


def worded(number: int, typed: TypedValue) -> tuple[str, TypedValue]:
    """Return a statement whose text tells nothing that the locale pack knows."""
    return f"Statement zq{number} {typed.slot}", typed


@settings(max_examples=60, deadline=None)
@given(st.lists(TYPED, min_size=2, max_size=5))
def test_no_evidence_is_lost(said: list[TypedValue]) -> None:
    rows = tell(*(worded(number, each) for number, each in enumerate(said)))
    turns = {piece.turn_id for row in rows.values() for piece in row.evidence}
    assert turns == {f"t{day}" for day in range(len(said))}


@settings(max_examples=60, deadline=None)
@given(st.lists(TYPED, min_size=2, max_size=5))
def test_a_row_closes_only_for_a_reason_in_its_slot(said: list[TypedValue]) -> None:
    rows = tell(*(worded(number, each) for number, each in enumerate(said)))
    for row in rows.values():
        if row.state != "superseded":
            continue
        by = rows[row.superseded_by or ""]
        assert {row.slot, by.slot} in ({row.slot}, {"likes", "dislikes"})
        assert by.qualifier is None or by.qualifier == row.qualifier
        if row.slot != "employer":
            assert row.value == by.value
            assert row.slot != by.slot or row.denied != by.denied


@settings(max_examples=40, deadline=None)
@given(st.permutations(["Zarnex", "Quolit", "Brandor"]))
def test_told_times_decide_in_any_order(order: list[str]) -> None:
    begins = {
        name: NOW - timedelta(days=days)
        for name, days in zip(["Zarnex", "Quolit", "Brandor"], (900, 500, 90), strict=True)
    }
    rows = tell(
        *((f"Employer {name}", is_("employer", name)) for name in order), begins=tuple(begins[n] for n in order)
    )
    assert active(rows) == {"Employer Brandor"}


def test_a_denial_closes_exactly_the_rows_of_its_value() -> None:
    values = ["Zarnex", "Quolit", "Brandor"]
    known = [(f"Zq{value}", is_("habit", value)) for value in values]
    for value, other in itertools.permutations(values, 2):
        left = active(tell(*known, ("Zq over", is_("habit", value, denied=True))))
        assert f"Zq{value}" not in left
        assert f"Zq{other}" in left
