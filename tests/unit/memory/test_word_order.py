"""Clauses whose verb stands second or last are read as if it stood first."""

from __future__ import annotations

import pytest

from memstream.memory.language.locales import locale
from memstream.memory.language.parsing import read

GERMAN = locale("de")


@pytest.mark.parametrize(
    ("text", "predicate", "said"),
    [
        ("Wohnt in Köln", "lives_in", ["koeln"]),
        ("Ist im Mai nach Köln gezogen", "lives_in", ["koeln", "mai"]),
        ("Ist nach Koeln umgezogen", "lives_in", ["koeln"]),
        ("Seit 2020 wohnt er in Köln", "lives_in", ["koeln", "2020"]),
        ("In Köln wohnt sie", "lives_in", ["koeln"]),
        ("Lebt in der Schweiz", "lives_in", ["schweiz"]),
        ("Lebt in Essen", "lives_in", ["essen"]),
        ("Wurde zur Teamleiterin befördert", "works_as", ["teamleit"]),
        ("Ist bei Bosch angestellt", "works_at", ["bosch"]),
        ("Ist mit Jonas verheiratet", "partner_is", ["marry", "jonas"]),
        ("Hat eine Mandelallergie", "allergic_to", ["mandel"]),
        ("Kann Französisch sprechen", "speaks", ["franzoesisch"]),
        ("Verdient 3.500,50 Euro", "earns", ["3500.5", "eur"]),
        ("Ist fünfundzwanzig Jahre alt", "age", ["25"]),
    ],
)
def test_a_statement_affirms(text: str, predicate: str, said: list[str]) -> None:
    (claim,) = read(text, GERMAN)
    assert (claim.predicate, list(claim.said)) == (predicate, said)
    assert not any((claim.denied, claim.hedged, claim.past))


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("Trinkt abends keinen Kaffee mehr", "drinks"),
        ("Isst in der Kantine mit Kollegen kein Fleisch", "eats"),
        ("Mag die Oliven aus dem Glas nicht", "likes"),
        ("Zieht nicht nach Köln um", "lives_in"),
        ("Raucht seit Mai nicht mehr", "smokes"),
        ("Hat mit dem Rauchen aufgehört", "smokes"),
        ("Hört auf zu rauchen", "smokes"),
        ("Hat aufgehört, zu rauchen", "smokes"),
    ],
)
def test_a_statement_ends(text: str, predicate: str) -> None:
    (claim,) = read(text, GERMAN)
    assert (claim.predicate, claim.denied) == (predicate, True)


@pytest.mark.parametrize(
    "text",
    [
        "Will nach Köln ziehen",
        "Plant, nach Köln zu ziehen",
        "Hat vor, nach Köln umzuziehen",
        "Wird nach Köln ziehen",
        "Wird in Köln wohnen",
        "Zieht im Mai nach Köln um",
        "Überlegt, ob er nach Köln zieht",
    ],
)
def test_a_plan_claims_nothing(text: str) -> None:
    assert all(claim.hedged for claim in read(text, GERMAN))


def test_the_past_is_past() -> None:
    (claim,) = read("Hat als Kind in Fürth gewohnt", GERMAN)
    assert claim.past


def test_two_participles_share_an_auxiliary() -> None:
    left, joined = read("Hat Google verlassen und bei Stripe angefangen", GERMAN)
    assert left.denied
    assert (joined.predicate, joined.said) == ("works_at", ("stripe",))
    assert not joined.past


def test_a_relative_clause_is_no_statement_of_its_own() -> None:
    (claim,) = read("Hat einen Sohn, der in Köln wohnt", GERMAN)
    assert (claim.about, claim.predicate) == ((), "has")


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("Ist mit der Familie nach Köln gezogen", "lives_in"),
        ("Zog 2021 nach Köln", "lives_in"),
        ("Wohnt mit der Familie in Köln", "lives_in"),
        ("Lebt in Frankfurt an der Oder", "lives_in"),
        ("Ist in einer Beziehung", "partner_is"),
        ("Hat sich scheiden lassen", "partner_is"),
    ],
)
def test_the_order_of_phrases_makes_no_difference(text: str, predicate: str) -> None:
    (claim,) = read(text, GERMAN)
    assert (claim.predicate, claim.denied, claim.past) == (predicate, False, False)


def test_names_keep_their_letters_and_nouns_lose_their_endings() -> None:
    andrea, andreas = (read(f"Kennt {name}", GERMAN)[0].said for name in ("Andrea", "Andreas"))
    hund, hunde = (read(f"Hat {thing}", GERMAN)[0].said for thing in ("einen Hund", "Hunde"))
    assert andrea != andreas
    assert hund == hunde


def test_an_action_may_be_a_noun_or_a_part_of_one() -> None:
    for text in ("Hat aufgehört, Klavier zu spielen", "Hat mit dem Klavierspielen aufgehört"):
        (claim,) = read(text, GERMAN)
        assert (claim.predicate, claim.said, claim.denied) == ("plays", ("klavi",), True)
