"""Literals that a pattern needs, and that no filter of the rules for instructions changes what they answer."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstream.memory.language.literal_index import LiteralIndex, needed_literals, one_case
from memstream.memory.trust import instructions
from memstream.memory.trust.orders import ORDER_RULES
from tests.support.cases import for_each
from tests.support.corpus_texts import all_texts

FIXED = [pattern.pattern for pattern in instructions._FIXED]
ORDERS = [each.pattern for each in instructions._order_patterns()]
SOURCES = [*FIXED, *(each.source for each in ORDERS)]
SEARCHES: list[Callable[[str], bool]] = [
    *(lambda text, pattern=pattern: pattern.search(text.lower()) is not None for pattern in instructions._FIXED),
    *(each.is_in for each in ORDERS),
]


@pytest.mark.parametrize(
    ("pattern", "clauses"),
    [
        ("tea", [{"tea"}]),
        ("(?:tea|coffee) now", [{"tea now", "coffee now"}]),
        (r"tea\s+now", [{"tea"}, {"now"}]),
        ("TEA", [{"tea"}]),
        ("(?:green )?tea", [{"green tea", "tea"}]),
        ("(?:tea|.*)", []),
        (r"(?:tea|\w+\.)x", [{"tea", "."}, {"x"}]),
        ("[ab]c", [{"ac", "bc"}]),
        ("[^a]b", [{"b"}]),
        ("(?:a|b)*c", [{"c"}]),
        ("(?=.*tea)x", [{"tea"}, {"x"}]),
        ("(?!tea)x", [{"x"}]),
        (r"(?:\w+\.)+(?:com|net)", [{"."}, {".com", ".net"}]),
        (r"(?:\w+\.)*(?:com|net)", [{"com", "net"}]),
        (r"\bup\b", [{"up"}]),
        ("(?:tea){2,}", [{"teatea"}]),
        ("-{3,}x", [{"---"}, {"---x"}]),
        ("a-{3}", [{"a---"}]),
        ("[ab]{2}", [{"aa", "ab", "ba", "bb"}]),
        ("(?:xy){2}", [{"xyxy"}]),
        (r"(?:\w+x){2}y", [{"x"}, {"xy"}]),
        ("(?:(?=k)a){3}", [{"k"}, {"aaa"}]),
        ("(?:a?b?){3}", []),
        ("ß", [{"ss"}]),
    ],
)
def test_needed_literals(pattern: str, clauses: list[set[str]]) -> None:
    assert [set(each) for each in needed_literals(pattern)] == clauses


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("ssn", "ſſn"), ("kit", "\u212aıt"), ("kit", "KİT"), ("strasse", "STRAßE")],
)
def test_a_text_of_one_case_has_what_a_search_without_case_finds(pattern: str, text: str) -> None:
    assert LiteralIndex([pattern]).candidates(one_case(text)) == [0]


def test_a_pattern_without_a_literal_may_match_every_text() -> None:
    assert LiteralIndex([r"\d+", "tea"]).candidates("") == [0]


def test_a_word_of_a_literal_stands_where_the_literal_has_it() -> None:
    index = LiteralIndex(["say to", r"say\s\w+ed it"])
    assert index.candidates("say today") == [0]  # the words are looked up with the space between them
    assert index.candidates("essay together") == [0]
    assert index.candidates("say tomato") == [0]
    assert index.candidates("gainsay into") == []
    assert index.candidates("say named it") == [1]


def test_each_order_of_a_language_is_in_the_index() -> None:
    assert len(ORDERS) == sum(len(rules.orders) + len(rules.standing) for rules in ORDER_RULES)
    assert len(instructions._FIXED) == sum(
        map(len, (instructions._PROMPT_MARKS, instructions._URLS, instructions._TOOL_CALLS))
    )


@pytest.mark.long
@pytest.mark.slow
def test_what_a_pattern_matches_is_a_candidate() -> None:
    index, matched = instructions._index(), set()
    for text in all_texts(1):
        plain = instructions._plain(text)
        for shown in {plain, *instructions._spellings(plain)}:
            matches = {number for number, search in enumerate(SEARCHES) if search(shown)}
            matched |= matches
            assert matches <= {*index.candidates(one_case(shown))}, shown
    assert len(matched) > len(SOURCES) // 2, "the corpora match too few of the patterns"


@pytest.mark.long
@for_each("number", range(len(SOURCES)), ids=lambda number: SOURCES[number])
@pytest.mark.slow
def test_what_a_pattern_describes_is_a_candidate(number: int) -> None:
    """Texts are made from the pattern itself."""
    index, search = instructions._index(), SEARCHES[number]

    @settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(text=st.from_regex(re.compile(SOURCES[number], re.IGNORECASE)))
    def check(text: str) -> None:
        if search(text):
            assert number in index.candidates(one_case(text))

    check()


class _EveryPattern(LiteralIndex):
    def __init__(self) -> None:
        super().__init__([])

    def candidates(self, text: str) -> list[int]:
        return [*range(len(SOURCES))]


def _unfiltered_rule(text: str) -> str | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(instructions, "_index", _EveryPattern)
        patch.setattr(instructions, "_RUN", 0)
        patch.setattr(instructions, "_LEET_SIGN", re.compile(""))
        patch.setattr(instructions, "_SPACED_INNER", re.compile(""))
        return instructions.instruction_rule.__wrapped__(text)


def test_no_filter_changes_the_rule_of_a_text() -> None:
    for text in all_texts(1)[::3]:
        assert instructions.instruction_rule.__wrapped__(text) == _unfiltered_rule(text), text


@settings(max_examples=300, deadline=None)
@given(text=st.text(alphabet="asdkyoumti01357@$ .-_*Aİſ", max_size=30))
def test_spellings_do_not_depend_on_their_filters(text: str) -> None:
    plain = instructions._plain(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(instructions, "_LEET_SIGN", re.compile(""))
        patch.setattr(instructions, "_SPACED_INNER", re.compile(""))
        unfiltered = [*instructions._spellings(plain)]
    assert [*instructions._spellings(plain)] == unfiltered


def test_a_run_of_digits_is_at_least_as_long_as_the_filter_says() -> None:
    for pattern in instructions._ENCODED:
        least, _ = re._parser.parse(pattern.pattern).getwidth()  # type: ignore[attr-defined]
        assert least >= instructions._RUN
