"""Relations of two statements, example by example, and properties of any texts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstream.memory.facts.neighbour_relations import TABLE
from memstream.memory.facts.relations import ClaimRelation, Relation, relate
from memstream.memory.facts.similarity import zone_of
from memstream.memory.language.locales import locale
from memstream.memory.language.parsing import predicate_of, read
from memstream.memory.policies import ConflictPolicy

PACK = locale("en")
SENTENCES = (
    "Works at Google",
    "No longer works at Google",
    "Might move to Lisbon",
    "Has two cats and a dog named Rex",
    "Sister lives in Oslo",
    "Blood type is A positive",
    "Switched from tea to coffee",
    "Also plays the cello",
)


def related(old: str, new: str) -> ClaimRelation:
    return relate(read(old, PACK), read(new, PACK), PACK)


@pytest.mark.parametrize(
    ("old", "new", "relation"),
    [
        ("Works at Google", "Lives in Google Street", Relation.APART),  # two known predicates
        ("Blood type is A positive", "Blood type is B positive", Relation.OTHER),  # X is V
        ("Works at Google", "Also works at Stripe", Relation.BESIDE),
        ("Works at Google", "Is employed by Google", Relation.SAME),
        ("Prefers tea over coffee", "Prefers coffee over tea", Relation.REORDERED),
        ("Runs 5 km a day", "Runs 8 km a day", Relation.VALUE),
        ("Runs five kilometres a day", "Runs 5 km a day", Relation.SAME),
        ("Has a dog", "Has a small dog named Rex", Relation.MORE),
        ("Has a small dog named Rex", "Has a dog", Relation.LESS),
        ("Likes tea", "Likes tea towels", Relation.BESIDE),
        ("Likes olives", "Doesn't like anchovies", Relation.APART),
        ("Dislikes mornings", "Loves jazz", Relation.APART),  # a time may be what is disliked
        ("Likes jazz", "Dislikes Mondays", Relation.APART),
        ("Loves mornings", "Dislikes mornings", Relation.DENIED),
        # times that come again
        ("Works at Siemens", "No longer works weekends", Relation.APART),
        ("Works at Siemens", "No longer works on Fridays", Relation.APART),
        ("Works at Siemens", "Stopped working nights", Relation.APART),
        ("Works night shifts", "No longer works nights", Relation.DENIED),
        ("Runs daily", "No longer runs at night", Relation.APART),
        ("No longer works nights", "Works as a nurse", Relation.APART),
        ("Works at Siemens", "Resigned on Friday evening", Relation.DENIED),
        ("Smokes", "Does not smoke at night", Relation.APART),
        # a stop word may be the thing
        ("Likes tea", "Likes their job", Relation.BESIDE),
        ("Dislikes jazz", "Dislikes their job", Relation.BESIDE),
        ("Likes their job", "No longer likes their job", Relation.DENIED),
        ("Is married to Dave", "Is not married to her job", Relation.APART),
        ("Is married to Dave", "Is no longer married to her husband", Relation.DENIED),
        ("Likes tea", "No longer likes tea", Relation.DENIED),
        ("No longer likes tea", "Likes tea", Relation.DENIED),
        ("Drinks black coffee", "No longer drinks coffee", Relation.DENIED),
        ("Drinks coffee", "No longer drinks black coffee", Relation.APART),
        ("Works at Stripe", "No longer works at Google", Relation.APART),
        ("Likes tea", "Sister no longer likes tea", Relation.APART),
        ("Lives in Rome", "Might move to Lisbon", Relation.GUESSED),
        ("Might move to Lisbon", "Moved to Lisbon", Relation.DENIED),
        ("Works at Google", "Worked at IBM as a student", Relation.APART),
        ("Lives in York", "Lives in New York", Relation.OTHER),
        ("Is a teacher", "Switched from teaching to carpentry", Relation.DENIED),
        ("Owns a car loan", "Sold the car", Relation.UNCLEAR),
        # jobs
        ("Works at Google", "Took a position at Stripe", Relation.OTHER),
        ("Works at Google", "Is now the CFO of Stripe", Relation.OTHER),
        ("Works at Google", "Became head of Sales", Relation.APART),  # a department employs nobody
        ("Works at Google", "Joined a choir", Relation.APART),
        ("Works in sales at Google", "Moved from Google to Stripe", Relation.DENIED),
        ("Was born in Rome", "Moved from Rome to Oslo", Relation.APART),
        ("Works at Google", "Resigned after ten years", Relation.DENIED),
        ("Works at Google", "Resigned from Stripe", Relation.APART),
        ("Works at Google", "Stopped working for Stripe", Relation.APART),
        ("Is a nurse at Bupa", "Works for Bupa as a nurse", Relation.SAME),
        ("Works as a nurse", "Works as a nurse at night", Relation.MORE),
        ("Is a nurse", "Is older than the sister", Relation.DIFFERS),  # what ends like an occupation
        ("Is a nurse", "Is a perfectionist", Relation.DIFFERS),
        ("Is a nurse", "Is a beekeeper", Relation.OTHER),
        ("Is deputy head of the school", "Is head of the school", Relation.OTHER),
        ("Sells insurance", "No longer sells insurance", Relation.DENIED),
        ("Sells honey", "Sold the honey", Relation.DENIED),
        # homes
        ("Lives in Rome", "Moved to another team", Relation.APART),
        ("Lives in Rome", "Moved the meeting to Friday", Relation.APART),
        ("Lives in Rome", "Moved to Oak Avenue", Relation.APART),
        ("Lives on Elm Street", "Moved to Oak Avenue", Relation.OTHER),
        ("Lives in a flat", "Moved into a house", Relation.OTHER),
        ("Lives in a flat", "Moved to Rome", Relation.APART),
        ("Lives in London", "Lives in Hackney, London", Relation.MORE),
        ("Lives in Rome", "Calls New York home now", Relation.OTHER),
        ("Lives in Rome", "Ended up moving to Oslo", Relation.OTHER),
        # ties
        ("Is married to Ada", "Got divorced last year", Relation.OTHER),
        ("Is married to Ada", "Divorced Ada", Relation.DENIED),
        ("Has a boyfriend named Ben", "Broke up with their boyfriend", Relation.DENIED),
        ("Is single", "Started dating Ben", Relation.OTHER),
        ("Is with Ben", "Is not with Ben anymore", Relation.DENIED),
        ("Has no pets", "Got a kitten", Relation.DENIED),  # a kitten is a pet
        ("Has a dog named Rex", "Dog is called Rex", Relation.SAME),
        ("Has a dog named Rex", "Dog's vet is Rex", Relation.APART),
        ("Has a dog", "Dog is brown", Relation.APART),
        ("Rent is 900 euros", "Rent went up from 900 to 950 euros", Relation.DENIED),
        ("Works at Google", "Stopped working at five today", Relation.APART),
        ("Works at Google", "Resigned after a quarrel", Relation.DENIED),
        ("Works at Google", "Works as a nurse at night", Relation.APART),
        ("Works at Google", "Formerly worked at Google", Relation.DENIED),
        ("Is a nurse", "Is clever", Relation.DIFFERS),
        ("Is a nurse", "Is a Nurse", Relation.SAME),
        ("Likes Rome", "Moved from Rome to Oslo", Relation.APART),
        ("Lives in Rome", "Is moving to Oslo", Relation.GUESSED),
        ("Lives in Rome", "Calls Cape Town home", Relation.OTHER),
        ("Is married to Ben", "Lost her husband", Relation.OTHER),
        ("Has a partner named Ben", "Is not together with Ben anymore", Relation.DENIED),
        # habits
        ("Attends pottery classes", "Quit pottery", Relation.DENIED),
        ("Runs daily", "Stopped going running", Relation.DENIED),
        ("Drinks with friends", "Quit drinking", Relation.DENIED),
        ("Is allergic to oat milk", "Switched to soy milk", Relation.DIFFERS),
        ("Eats no meat", "Started eating meat again", Relation.DENIED),
        ("Drinks wine", "Quit drinking", Relation.DENIED),  # alcohol
        ("Drinks coffee", "Quit drinking", Relation.APART),
        ("Runs daily", "Had to give up running because of the knee", Relation.DENIED),
        ("Runs daily", "Has to give up running", Relation.UNCLEAR),
        ("Goes to the gym", "Cancelled the gym membership", Relation.DENIED),
        ("Goes to the gym", "Cancelled the membership of the club", Relation.APART),
        ("Studies Dutch", "Dropped the Dutch course", Relation.DENIED),
        ("Speaks Dutch", "Dropped the Dutch course", Relation.UNCLEAR),  # what was learned stays
        ("Works night shifts", "Switched to day shifts", Relation.OTHER),
        ("Works night shifts", "Switched to night shifts", Relation.UNCLEAR),
        ("Likes tea", "Switched to decaf", Relation.DIFFERS),
        ("Eats sugar", "Cut sugar out of their diet", Relation.DENIED),
        ("Drinks coffee", "Finally stopped drinking coffee", Relation.DENIED),
    ],
)
def test_how_a_new_text_stands_to_a_known_one(old: str, new: str, relation: Relation) -> None:
    assert related(old, new).relation is relation


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("Works at Google", "works_at"),
        ("User joined Stripe last week", "works_at"),
        ("Favourite colour is blue", "favorite_color"),
        ("Sister lives in Oslo", "sister_lives_in"),
        ("No longer works at Google", None),
        ("Might move to Lisbon", None),
        ("Worked at IBM", None),
        ("Collects stamps", None),
        ("Moved to Friday", None),
        ("Started drink tastings", None),
        ("Is switching to day shifts", None),
    ],
)
def test_the_predicate_of_a_stored_fact(text: str, predicate: str | None) -> None:
    assert predicate_of(text, PACK) == predicate


def test_every_zone_knows_what_to_do_with_every_relation() -> None:
    for zone, row in TABLE.items():
        assert set(row) == set(Relation), zone


@pytest.mark.parametrize("similarity", [-1.0, 0.0, 0.5, 0.9, 1.0, None])
def test_the_same_words_in_another_order_are_to_be_checked_however_near(similarity: float | None) -> None:
    assert zone_of(similarity, ClaimRelation(Relation.REORDERED, True), ConflictPolicy()) == "CONFLICT-CHECK"


def test_the_same_predicate_is_to_be_checked_by_words_and_the_nearest_stay_hot() -> None:
    lexical = ConflictPolicy(lexical=True)
    assert zone_of(0.1, ClaimRelation(Relation.DIFFERS, True), lexical) == "CONFLICT-CHECK"
    assert zone_of(0.1, ClaimRelation(Relation.DIFFERS, False), lexical) == "COLD"
    assert zone_of(0.97, ClaimRelation(Relation.SAME, True), ConflictPolicy()) == "HOT"


def test_a_name_after_a_comma_may_begin_another_clause() -> None:
    (home,) = read("Lives in Hackney, London", PACK)
    assert home.object == (("hackney",), ("london",))
    assert len(read("Lives in Hackney, London is far", PACK)) == 2


def test_what_stands_within_a_phrase_is_its_object_first() -> None:
    (home,) = read("Calls Rome home with pride", PACK)
    assert home.object == (("rome",), ("prid",))


def test_what_is_still_to_come_closes_nothing() -> None:
    assert related("Works night shifts", "Is switching to day shifts").relation is not Relation.OTHER


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_what_is_nearer_is_in_no_colder_zone(one: float, other: float) -> None:
    order = ("COLD", "CONFLICT-CHECK", "NEAR-DUP", "HOT")
    low, high = sorted((one, other))
    unclear, policy = ClaimRelation(Relation.UNCLEAR, False), ConflictPolicy()
    assert order.index(zone_of(low, unclear, policy)) <= order.index(zone_of(high, unclear, policy))


@given(st.sampled_from(SENTENCES), st.sampled_from(("", " ", ".", "  ")))
def test_case_and_space_around_make_no_difference(text: str, end: str) -> None:
    assert related(text, f" User {text[0].lower()}{text[1:]}{end}").relation in (Relation.SAME, Relation.GUESSED)


_PARTS = ["not", "and", ",", "12", "7:30", "20", "¹0", "²", "five", "hundred", "k", "million", "é", "-"]


@settings(max_examples=200)
@given(st.lists(st.sampled_from([*" ".join(SENTENCES).split(), *_PARTS]), max_size=12))
def test_any_words_are_taken_apart_and_are_themselves(words: list[str]) -> None:
    text = " ".join(words)
    claims = read(text, PACK)
    assert claims
    assert relate(claims, read(text, PACK), PACK).relation not in (Relation.VALUE, Relation.OTHER)


@pytest.mark.parametrize("text", ["We meet at 7:30 five times a week", "I own ¹0 five cats", "It costs ² k"])
def test_only_decimal_numbers_are_joined_with_the_next_word(text: str) -> None:
    (claim,) = read(text, PACK)
    assert {each.strip("0") for each in claim.numbers} & {"7:3", "¹", "²"}


@given(st.text(max_size=80))
def test_any_text_is_taken_apart(text: str) -> None:
    claims = read(text, PACK)
    assert claims
    assert all(len(each.predicate or "") <= 64 for each in claims)
