"""Quotes that a model changed at their ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.language.text import folded
from memstream.memory.trust.said_text import SaidText
from memstream.memory.trust.verbatim_quote import verbatim_quote

SAID = (
    SaidText("user", 'I work at Fixpoint (ticket 7), "of course"! It is near Bern.'),
    SaidText("assistant", "Good for you."),
)


@pytest.mark.parametrize(
    ("quote", "words"),
    [
        ("I work at Fixpoint", "I work at Fixpoint"),
        ("i WORK at Fixpoint", "i WORK at Fixpoint"),
        ("I work at Fixpoint.", "I work at Fixpoint"),
        ("I work at Fixpoint!", "I work at Fixpoint"),
        ("It is near Bern", "It is near Bern"),
        ("It is near Bern.", "It is near Bern."),
        ("It is near Bern!", "It is near Bern"),
        ('"I work at Fixpoint"', "I work at Fixpoint"),
        ("“I work at Fixpoint.”", "I work at Fixpoint"),
        ("«It is near Bern»", "It is near Bern"),
        ("user: I work at Fixpoint", "I work at Fixpoint"),
        ("User: “I work at Fixpoint”.", "I work at Fixpoint"),
        ('"user: I work at Fixpoint"', "I work at Fixpoint"),
        ("[t1] user: I work at Fixpoint", "I work at Fixpoint"),
        ("user (Alice): I work at Fixpoint", "I work at Fixpoint"),
        ("[t1] user (Alice, 22:10): I work at Fixpoint.", "I work at Fixpoint"),
        ("Alice: I work at Fixpoint", "I work at Fixpoint"),
        ("**user**: I work at Fixpoint", "I work at Fixpoint"),
        ("...I work at Fixpoint...", "I work at Fixpoint"),
        ("… I work at Fixpoint …", "I work at Fixpoint"),
        ("assistant: Good for you", "Good for you"),
        # as they are
        ("I work at Google.", "I work at Google."),
        ("I work … near Bern", "I work … near Bern"),
        ("I don't work at Fixpoint", "I don't work at Fixpoint"),
        ("", ""),
        ("...", "..."),
        ("user:", "user:"),
    ],
)
def test_ends_of_a_quote_are_put_right(quote: str, words: str) -> None:
    assert verbatim_quote(quote, SAID) == words


@given(st.text(max_size=40), st.text(max_size=40))
def test_words_of_the_turn_or_the_quote_as_it_is(quote: str, said: str) -> None:
    shown = (SaidText("user", said),)
    words = verbatim_quote(quote, shown)
    assert words in quote
    assert words == quote or folded(words) in shown[0].folded
