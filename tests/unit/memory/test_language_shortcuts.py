"""Shortcuts for ordinary texts and indexes of words give what the plain way gives: every text of the corpora, changed
texts and texts of all signs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstream.memory.language import markers, text, tokenizer
from memstream.memory.language.common_words import FREQUENT_WORDS, FUNCTION_WORDS
from memstream.memory.language.literal_index import needed_literals
from memstream.memory.language.locales import Locale, locale, locales
from memstream.memory.language.phrase_index import Phrase, Shelf, index_phrases
from memstream.memory.trust import instructions, own_words, statement_words
from tests.support.corpus_texts import all_texts

ANY_TEXT = st.text(max_size=40)
PACKS = locales("en, de")


def _visible(shown: str) -> str:
    for _ in range(2):
        shown = text.html.unescape(shown)
    plain = unicodedata.normalize("NFKC", text._LINE_ENDS.sub("\n", shown.translate(text._TAGS)))
    return text._CONTROLS.sub("", text.INVISIBLE.sub("", plain)).translate(text._PUNCTUATION)


def _folded(shown: str) -> str:
    plain = (
        text.INVISIBLE.sub("", unicodedata.normalize("NFKC", shown))
        .translate(text._PUNCTUATION)
        .translate(text._DASHES)
    )
    plain = text._LEADING_BACKSLASH.sub("", text.unescape_markers(plain))
    return " ".join(unicodedata.normalize("NFKC", plain.casefold()).split())


def _plain(shown: str) -> str:
    return "\n".join(line.strip() for line in re.sub(r"[^\S\n]", " ", _visible(shown)).split("\n"))


def _words(shown: str) -> list[str]:
    found = (unicodedata.normalize("NFD", word.casefold()) for word in statement_words._WORD.findall(shown))
    return ["".join(char for char in word if unicodedata.category(char) != "Mn") for word in found]


def _language(shown: str) -> str | None:
    words = _words(shown[: statement_words._SAMPLE])
    known = {
        tag: {
            statement_words._plain(each)
            for each in (*FUNCTION_WORDS.get(tag, "").split(), *FREQUENT_WORDS.get(tag, ()))
        }
        for tag in {*FUNCTION_WORDS, *FREQUENT_WORDS}
    }
    counts = {tag: sum(word in of for word in words) for tag, of in known.items()}
    best = [tag for tag, count in counts.items() if count == max(counts.values())]
    if not max(counts.values()):
        return None
    return best[0] if len(best) == 1 else ("en" if "en" in best else None)


def _count(shown: str) -> int:
    unspaced = len(own_words._UNSPACED.findall(shown))
    return len(own_words._WORD.findall(own_words._UNSPACED.sub(" ", shown))) + unspaced // 2


def _check(shown: str) -> None:
    assert text.visible(shown) == _visible(shown)
    assert text.folded(shown) == _folded(shown)
    assert instructions._plain(shown) == _plain(shown)
    assert [*statement_words.lowercase_words(shown)] == _words(shown)
    assert own_words.count_words(shown) == _count(shown)


def test_texts_of_the_corpora() -> None:
    for shown in all_texts(2):
        _check(shown)


@settings(max_examples=500, deadline=None)
@given(shown=ANY_TEXT)
def test_any_text(shown: str) -> None:
    _check(shown)


def test_the_language_of_a_text() -> None:
    for shown in all_texts(2)[::40]:
        assert statement_words.language_of(shown) == _language(shown), shown


@pytest.mark.parametrize("packs", [PACKS, ()])
def test_words_that_are_alike(packs: tuple[Locale, ...]) -> None:
    """Pair by pair, as a set of words is looked up."""
    for one, other in [*zip(all_texts(2)[::7], all_texts(2)[3::7], strict=False), ("Berna", "Bern"), ("Oslo", "Oslos")]:
        words = statement_words.content_words(other, "en")
        found = statement_words._WordSet(words, packs)
        for word in statement_words.content_words(one, "en"):
            alike = any(
                word == each
                or statement_words._alike(word, each)
                or bool(statement_words._forms(word, packs) & statement_words._forms(each, packs))
                for each in words
            )
            assert found.has(word) == alike, (word, other)


@pytest.mark.parametrize(
    ("pattern", "marks"),
    [
        *((pattern, {":"}) for pattern in (own_words._ROLE, own_words._HEADER, own_words._HEADER_INLINE)),
        *((pattern, {":"}) for pattern in (own_words._ATTRIBUTION, own_words._REPORTED)),
        *((pattern, set(marks)) for marks, pattern in own_words._ENCLOSED),
        (own_words._TAG, {"<", "["}),
        (own_words._JSON, {"{", "["}),
    ],
)
def test_no_quotation_without_its_marks(pattern: re.Pattern[str], marks: set[str]) -> None:
    """What is looked for first stands in every match."""
    assert any(
        all(any(mark in literal for mark in marks) for literal in clause) for clause in needed_literals(pattern.pattern)
    )


def test_a_printable_text_is_one_line() -> None:
    for shown in all_texts(2):
        lines = [found for found in own_words._LINE.finditer(shown) if found.group()]
        assert len(lines) <= 1 or not shown.isprintable()


# ------------------------------------------------------------------------------------------------ packs
@pytest.mark.parametrize("name", ["en", "de"])
def test_short_forms_are_written_out(name: str) -> None:
    pack = locale(name)
    for shown in all_texts(2):
        wanted = shown
        for short, long in pack.contractions.items():
            wanted = re.sub(rf"{re.escape(short)}(?!\w)", long, wanted, flags=re.IGNORECASE)
        assert tokenizer._written_out(shown, tokenizer._long_forms(pack)[0], ignores_case=True) == wanted
        for short, long in pack.aliases.items():
            wanted = re.sub(rf"(?<!\w){re.escape(short)}(?!\w)", long, wanted)
        written = tokenizer._written_out(shown, tokenizer._long_forms(pack)[0], ignores_case=True)
        assert tokenizer._written_out(written, tokenizer._long_forms(pack)[1], ignores_case=False) == wanted


@pytest.mark.parametrize("name", ["en", "de"])
def test_phrases_whose_words_are_said(name: str) -> None:
    pack = locale(name)
    index = index_phrases(pack)
    shelves = [getattr(index, field) for field in type(index).__slots__]
    for shown in all_texts(2)[::5]:
        found = tokenizer.tokens(shown, pack)
        said = {word for token in found for word in (token.base, token.text, token.word)}
        for shelf in shelves:
            for first in said & shelf.keys():
                ranked = shelf[first].that_may_match(said)
                assert [rank for rank, _ in ranked] == sorted(rank for rank, _ in ranked)
                assert [phrase for _, phrase in ranked] == [each for each in _all(shelf, first) if each.needs <= said]


def _all(shelf: Shelf, first: str) -> Sequence[Phrase]:
    phrases = [*shelf[first].alone, *(each for group in shelf[first].by_word.values() for each in group)]
    return [phrase for _, phrase in sorted(phrases, key=lambda each: each[0])]


@pytest.mark.parametrize("name", ["en", "de"])
def test_phrases_lie_by_length_and_then_as_in_the_pack(name: str) -> None:
    pack = locale(name)
    written = [phrase for rule in pack.rules for phrase in rule.phrases]
    shelf = index_phrases(pack).rules
    for first in shelf:
        begun = [tuple(each.split()) for each in written if each.split()[0] == first]
        assert [phrase.words for phrase in _all(shelf, first)] == sorted(begun, key=lambda words: -len(words))


def _take(found: list[tokenizer.Token], phrases: Sequence[list[str]], within: int) -> bool:
    """Remove the longest phrase that begins within the first words, as it was done without an index.

    `phrases` are their words, the longest first.
    """
    for words in phrases:
        for place in range(min(within, len(found))):
            part = found[place : place + len(words)]
            if len(part) == len(words) and all(
                word in (token.base, token.text) and not token.is_name for word, token in zip(words, part, strict=True)
            ):
                del found[place : place + len(words)]
                return True
    return False


@cache
def _tokens(name: str) -> list[list[tokenizer.Token]]:
    return [tokenizer.tokens(shown, locale(name)) for shown in all_texts(2)[::3]]


@pytest.mark.parametrize("name", ["en", "de"])
@pytest.mark.parametrize("kind", ["hedges", "endings", "never", "negations", "another", "additive"])
@pytest.mark.slow
@pytest.mark.long
def test_markers_are_taken(name: str, kind: str) -> None:
    pack: Locale = locale(name)
    shelf, phrases = getattr(markers.index_markers(pack), kind), getattr(pack.markers, kind)
    longest_first = sorted((each.split() for each in phrases), key=lambda words: -len(words))
    taken = 0
    for read in _tokens(name):
        for within in (2, 5, 40):
            clause = markers.MarkedClause([*read])
            wanted = [*clause.tokens]
            took = _take(wanted, longest_first, within)
            assert markers._take(clause, shelf, within=within) == took
            assert clause.tokens == wanted
            taken += took
    assert taken or not phrases
