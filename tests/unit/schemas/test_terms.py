"""The terms of a text in every script."""

from __future__ import annotations

import pytest
import qdrant_edge as edge
from hypothesis import given
from hypothesis import strategies as some

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.vectors.lexical import LexicalEncoder
from memstream.schemas.terms import added_terms, as_word, fold, is_spaceless_word, pieces


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Łódź", "lodz"),
        ("Huế", "HUE"),
        ("Győr", "gyor"),
        ("Straße", "STRASSE"),
        ("İstanbul", "istanbul"),
        ("ISPARTA", "ısparta"),
        ("Čeština", "cestina"),
        ("Ørsted", "orsted"),
        ("Королёв", "КОРОЛЕВ"),
        ("قِطّة", "قطه"),
        ("الإسكندرية", "اسكندرية"),
        ("שָׁלוֹם", "שלום"),
        ("ｶﾞｽ", "ガス"),
        ("Ａ１", "a1"),
    ],
)
def test_a_word_with_and_without_its_marks_is_one_word(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(("one", "other"), [("мой", "мои"), ("がき", "かき"), ("ที่", "ท"), ("हिन्दी", "हन्द")])
def test_marks_that_make_another_word_stay(one: str, other: str) -> None:
    assert fold(one) != fold(other)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("柏林", ["柏林", "柏", "林"]),
        ("猫", ["猫"]),
        ("ギター", ["ギタ", "ター"]),
        ("ที่อยู่", ["ที่อ", "อยู่"]),
        ("用iPhone15", ["用", "iphone15"]),
    ],
)
def test_a_script_without_spaces_has_pairs_of_letters(text: str, terms: list[str]) -> None:
    assert is_spaceless_word(text)
    assert list(pieces(fold(text))) == terms == added_terms(text)


def test_a_word_of_letters_with_vowel_signs_is_whole() -> None:
    assert added_terms("हिन्दी भाषा") == ["हिन्दी", "भाषा"]
    assert not is_spaceless_word("हिन्दी")


@given(some.text())
def test_any_text_has_terms_that_are_words(text: str) -> None:
    words = [as_word(term) for term in added_terms(text)]
    assert all(len(word.split()) == 1 for word in words)
    assert added_terms(text.encode("ascii", "ignore").decode()) == []


TEXTS = ("住在柏林", "Mieszka w Łodzi", "ทำงานเป็นครู", "हिन्दी पढ़ता है", "Works at Google", "يسكن في القاهرة")


@pytest.mark.parametrize("text", TEXTS)
async def test_the_words_of_earlier_records_stay(text: str) -> None:
    """A query contains the words that records had before there were added terms, with the same weights."""
    before, now = edge.Bm25().embed_query(text), LexicalEncoder().query(text)
    assert now is not None
    assert set(before.indices) <= set(now.indices)
    assert set(now.values) == {1.0}
    if text.isascii():
        assert set(before.indices) == set(now.indices)


@pytest.mark.parametrize(("cue", "text"), [("lodz", "Była w Łódź"), ("我住柏林", "住在柏林"), ("भाषा", "हिन्दी भाषा")])
async def test_both_searches_by_words_find_it(cue: str, text: str) -> None:
    asked, stored = LexicalEncoder().query(cue), LexicalEncoder().document(text)
    assert asked is not None
    assert stored is not None
    assert set(asked.indices) & set(stored.indices)
    one, other = await HashingEmbedder().embed([cue, text], tenant_id="acme")
    assert sum(a * b for a, b in zip(one, other, strict=True)) > 0.2
