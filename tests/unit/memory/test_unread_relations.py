"""Statements in languages without a pack, and statements in two languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.facts.relations import Relation
from memstream.memory.facts.similarity import jaccard
from memstream.memory.facts.unread_relations import relate_unread
from memstream.memory.language.plain_words import plain_words
from tests.support.conflict_corpus import NEW_TOLD, OLD_TOLD, Pair, Side, by_pipeline


def pair(old: str, new: str) -> Pair:
    def side(content: str, told: object) -> Side:
        return Side("user", content, "attribute", told, None, False)  # type: ignore[arg-type]

    return Pair("p", "languages", side(old, OLD_TOLD), side(new, NEW_TOLD), {}, "")


@pytest.mark.parametrize(
    ("old", "new", "relation"),
    [
        ("Le gusta el té.", "le gusta el té", Relation.SAME),
        ("Gana 1.500 euros", "Gana 1500 euros", Relation.SAME),
        ("Mide 1,80", "Mide 1.8", Relation.SAME),
        ("３４歳です", "34歳です", Relation.SAME),
        ("عمره ٣٤ سنة", "عمره 34 سنة", Relation.SAME),
        ("ｺｰﾋｰが好き", "コーヒーが好き", Relation.SAME),
        ("Tiene 34 años", "Tiene 35 años", Relation.VALUE),
        ("34歳です", "35歳です", Relation.VALUE),
        ("Viajó a Lima en 2019", "Viajó a Lima en 2021", Relation.NAME),
        ("Vive en Sevilla", "Vive en Las Palmas", Relation.NAME),
        ("Su hermana se llama Inés", "Su hermana se llama Eva", Relation.NAME),
        ("Живёт в Казани", "Живёт в Перми", Relation.NAME),
        ("Prefiere té a café", "Prefiere café a té", Relation.REORDERED),
        ("Le gusta el té", "Le gusta el café", Relation.DIFFERS),
        ("Come carne", "No come carne", Relation.DIFFERS),
        ("Vive en Sevilla", "Ya no vive en Sevilla", Relation.DIFFERS),
        ("Programa en C", "Programa en C++", Relation.DIFFERS),
        ("他吃肉", "他不吃肉", Relation.DIFFERS),
        ("वह दिन है", "वह दान है", Relation.DIFFERS),  # a vowel sign is part of its word
        ("Vive en Sevilla", "Vive en Sevilla y Bilbao", Relation.DIFFERS),
        ("Hace -5 grados", "Hace 5 grados", Relation.VALUE),
    ],
)
def test_what_words_alone_tell(old: str, new: str, relation: Relation) -> None:
    assert relate_unread(old, new).relation is relation


@given(st.text(max_size=60))
def test_any_text_is_split_and_equals_itself(text: str) -> None:
    assert all(word.text for word in plain_words(text))
    assert relate_unread(text, text).relation is Relation.SAME


def test_scripts_without_spaces_are_near_by_letters() -> None:
    assert jaccard("東京に住んでいます", "東京に住んでいました") > 0.6
    assert jaccard("東京に住んでいます", "大阪で働いている") < 0.3


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        ("Works at Google", "Arbeitet bei Bosch", "supersede"),
        ("Arbeitet bei Bosch", "Works at Bosch", "reinforce"),
        ("Lives in Oslo", "Ist nach Bergen gezogen", "supersede"),
        ("Speaks French", "Spricht Dänisch", "admit"),
        ("Drinks coffee", "Trinkt keinen Kaffee mehr", "pending"),  # words do not tell whether both mean coffee
        ("Vive en Sevilla", "Lives in Bilbao", "admit"),
    ],
)
def test_statements_in_two_languages(old: str, new: str, outcome: str) -> None:
    assert by_pipeline({"p": 0.2}, embedding="hashing", locale="en, de")(pair(old, new)) == outcome


def test_a_near_statement_without_a_pack_is_never_merged() -> None:
    decide = by_pipeline({"p": 0.99}, embedding="dense")
    assert decide(pair("Come carne", "No come carne")) == "pending"
    assert decide(pair("Fume", "Ne fume plus")) == "pending"
