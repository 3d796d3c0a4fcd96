"""Queries by words: operators, phrases, prefixes, stems."""

from __future__ import annotations

import pytest

from memstream.memory.recall.word_query import WordQuery


def found(query: str, text: str) -> bool:
    return WordQuery(query, locale="en").matches(text)


@pytest.mark.parametrize(
    ("query", "text", "matches"),
    [
        ("tea", "Likes green tea", True),
        ("TEA", "Likes green tea", True),
        ("works", "Working at Stripe", True),
        ("coffee", "Likes green tea", False),
        ("green tea", "Likes tea from green pots", True),
        ('"green tea"', "Likes tea from green pots", False),
        ('"green tea"', "Likes Green  tea", True),
        ("tea OR coffee", "Drinks coffee", True),
        ("tea AND coffee", "Drinks coffee", False),
        ("drinks NOT coffee", "Drinks tea", True),
        ("drinks NOT coffee", "Drinks coffee", False),
        ("NOT (tea OR coffee)", "Drinks water", True),
        ("(tea OR coffee) green", "Likes green tea", True),
        ("str*", "Works at Stripe", True),
        ("str*", "Works at Google", False),
        ("tea OR coffee milk", "Drinks tea", True),
        ("über*", "Wohnt in Überlingen", True),
    ],
)
def test_a_query_matches(query: str, text: str, matches: bool) -> None:
    assert found(query, text) is matches


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("", "ends where a word is needed"),
        ("tea AND", "ends where a word is needed"),
        ("OR tea", "a word is needed before 'OR'"),
        ("(tea", "not closed"),
        ("tea)", "not opened"),
        ('""', "at least one word"),
        ("???", "no letters or digits"),
        ("NOT " * 40 + "tea", "at most 32"),
    ],
)
def test_a_query_that_cannot_be_read_says_why(query: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        WordQuery(query, locale="en")
