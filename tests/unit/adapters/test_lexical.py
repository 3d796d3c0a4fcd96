"""Sparse vectors of words: a text and the texts beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.adapters.vectors.lexical import NEARBY_LENGTH, REPEATED, LexicalEncoder

WORDS = LexicalEncoder()
TEXTS = st.text("abcdefg hij", min_size=1, max_size=400)


def weights(text: str, nearby: str = "") -> dict[int, float]:
    vector = WORDS.document(text, nearby)
    return {} if vector is None else dict(zip(vector.indices, vector.values, strict=True))


def test_of_a_short_text_the_words_beside_it_weigh_as_much_as_its_own() -> None:
    assert weights("tea", "cake") == weights("tea") | weights("cake")


def test_a_word_of_both_texts_gains_less() -> None:
    [(tea, own)] = weights("tea").items()
    assert weights("tea", "tea")[tea] == pytest.approx(own + own * (1 - REPEATED * own))


def test_the_longer_a_text_the_less_weigh_the_words_beside_it() -> None:
    [cake] = weights("cake")
    short, long = ("x" * NEARBY_LENGTH, "x" * 2 * NEARBY_LENGTH)
    assert weights(long, "cake")[cake] == pytest.approx(weights(short, "cake")[cake] / 4)


def test_a_text_without_indexed_words_is_found_by_the_words_beside_it() -> None:
    assert weights("the") == {}
    assert weights("the", "cake") == weights("cake")
    assert WORDS.document("the", "of") is None


@given(TEXTS, TEXTS)
def test_every_word_keeps_at_least_its_own_weight(text: str, nearby: str) -> None:
    both = weights(text, nearby)
    assert all(both[index] >= value for index, value in weights(text).items())
    assert both.keys() == weights(text).keys() | weights(nearby).keys()
