"""Every rule that looks first whether a text can have what it looks for finds the same without that look."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from memstream.memory.secrets import contacts, detector, lexicon, national_ids, payment, told_passwords, vendor_keys
from memstream.memory.secrets.bank_accounts import bank_accounts
from memstream.memory.secrets.findings import Finding
from memstream.memory.secrets.label_stems import words_of_labels
from memstream.memory.secrets.labelled import LabelledText, labelled_secrets
from memstream.memory.secrets.laid_out import laid_out_secrets
from memstream.memory.secrets.pattern_sizes import least_digits, least_length, most_digits_together
from memstream.memory.secrets.text_view import TextView, lowered
from memstream.memory.secrets.wallet_words import wallet_words
from tests.support import secret_corpus
from tests.support.corpus_texts import changed_texts, corpus_texts

SECRET = [each.text for each in secret_corpus.texts()]
TEXTS = [TextView(text).text for text in (*corpus_texts(), *SECRET, *changed_texts(3_000, 3, of=SECRET))]
PARSE: Any = re._parser.parse  # type: ignore[attr-defined]
WHOLE_KEYS = [
    *(re.compile(re.escape(prefix) + body) for _, prefix, body in vendor_keys._PREFIXED),
    *(re.compile(whole) for _, _, whole in vendor_keys._INNER),
]
NUMBERS = [
    *(form.shape for form in national_ids._FORMS),
    *(payment._CARD, payment._IBAN),
    *(contacts._INTERNATIONAL, contacts._NORTH_AMERICAN, contacts._TRUNK, contacts._ANY, contacts._LONG_NUMBER),
]


def _without_filters(rule: Callable[[str], Iterable[Finding]], text: str) -> list[Finding]:
    """Return what a rule finds when its first look always finds something."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vendor_keys, "_long_runs", lambda text: [text])
        patch.setattr(vendor_keys, "_prefixes", lambda: re.compile(""))
        patch.setattr(payment, "_CHECK_DIGITS", re.compile(r"(?<=.)(?=[0-9])"))
        forms = [national_ids._IdForm(form.shape, form.check, form.name, ("",), 0) for form in national_ids._FORMS]
        patch.setattr(national_ids, "_FORMS", forms)
        return [*rule(text)]


def _as_detector(rule: Callable[[str], Iterable[Finding]], text: str) -> list[Finding]:
    """Return what the detector finds by a rule, which it leaves out in a text with too few digits."""
    return [*rule(text)] if dict(detector._NUMBERS).get(rule, 0) <= most_digits_together(text) else []


RULES = (vendor_keys.vendor_keys, contacts.phones, payment.cards, payment.ibans, national_ids.national_ids)


@pytest.mark.parametrize("rule", RULES)
def test_texts_of_the_corpora(rule: Callable[[str], Iterable[Finding]]) -> None:
    found = 0
    for text in TEXTS:
        findings = _as_detector(rule, text)
        assert findings == _without_filters(rule, text), text
        found += len(findings)
    assert found


def test_the_nouns_around_the_stems_are_all_nouns() -> None:
    found = 0
    for text in map(lowered, TEXTS):
        stems = sorted(place for stem in lexicon.STEMS for place in told_passwords._places(stem, text))
        nouns = [each.span() for each in told_passwords._nouns(text, stems)]
        assert nouns == [each.span() for each in told_passwords._NOUN.finditer(text)], text
        found += len(nouns)
    assert found


@settings(
    max_examples=150, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(data=st.data())
def test_nouns_made_from_their_words(data: st.DataObject) -> None:
    noun = data.draw(st.from_regex(told_passwords._NOUN, fullmatch=True))[: told_passwords._NOUN_MAX]
    text = lowered(f"my {noun} and the {noun}: x")
    stems = sorted(place for stem in lexicon.STEMS for place in told_passwords._places(stem, text))
    assert [each.span() for each in told_passwords._nouns(text, stems)] == [
        each.span() for each in told_passwords._NOUN.finditer(text)
    ]


def test_a_text_whose_words_have_no_label_has_no_labelled_secret() -> None:
    """The first look by words finds every text in which the labels themselves find something."""
    hits = 0
    for text in TEXTS:
        small = lowered(text)
        whole = LabelledText(TextView(text), small, small)
        found = [*labelled_secrets(whole), *laid_out_secrets(whole), *wallet_words(text), *bank_accounts(text)]
        if found or [*told_passwords.told_passwords(text)]:
            hits += 1
            assert words_of_labels(small), text
    assert hits > 500


@settings(
    max_examples=150, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(data=st.data())
def test_keys_made_from_their_shapes(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(WHOLE_KEYS))
    key = data.draw(st.from_regex(shape, fullmatch=True))[:300]
    place = data.draw(st.integers(0, len(key)))
    for text in (
        f"The key is {key}.",
        f"a_{key}",
        f"a{key}",
        f"é{key}",
        f"{key[:place]}\n {key[place:]}",
        f"{key[:place]} =\r\n> {key[place:]} x",
    ):
        assert [*vendor_keys.vendor_keys(text)] == _without_filters(vendor_keys.vendor_keys, text)


@settings(
    max_examples=150, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(data=st.data())
def test_numbers_made_from_their_forms(data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(NUMBERS))
    number = data.draw(st.from_regex(form, fullmatch=True))
    assert len(re.findall(r"\d", number, form.flags & re.ASCII)) >= least_digits(form)
    for rule in RULES[1:]:
        for text in (number, f"my phone is {number}, my passport {number}"):
            assert _as_detector(rule, text) == _without_filters(rule, text)


@settings(max_examples=500, deadline=None)
@given(text=st.text(alphabet="a= \t\r\n>|", max_size=30))
def test_line_breaks_are_taken_out(text: str) -> None:
    assert vendor_keys._without_line_breaks(text) == vendor_keys._LINE_BREAK.sub("", text)


def test_rows_of_spaces_take_linear_time() -> None:
    began = time.process_time()
    assert [*vendor_keys.vendor_keys("a\n" + " " * 1_000_000 + "b" * 20)] == []
    assert time.process_time() - began < 5  # a search from each of the spaces would take hours


def test_a_letter_that_only_looks_like_a_capital_one_is_none_of_a_number() -> None:
    assert [*national_ids.national_ids("12150680\u0131123")] == []
    assert [*national_ids.national_ids("12150680\u017f123")] == []


def test_no_key_holds_white_space() -> None:
    """A run of signs without white space has every key, but for the ends of lines."""
    for pattern in WHOLE_KEYS:
        assert not any(sign.isspace() for sign in _signs(PARSE(pattern.pattern))), pattern.pattern


def _signs(items: Iterable[tuple[Any, Any]]) -> Iterator[str]:
    """Yield the signs that a pattern names, and one for each end of a range."""
    for name, value in items:
        match str(name):
            case "LITERAL":
                yield chr(value)
            case "RANGE":
                assert not any(chr(code).isspace() for code in range(value[0], value[1] + 1))
            case "CATEGORY":
                assert str(value) == "CATEGORY_DIGIT"
            case "IN":
                yield from _signs(value)
            case "SUBPATTERN":
                yield from _signs(value[-1])
            case "MAX_REPEAT":
                yield from _signs(value[2])
            case "BRANCH":
                for each in value[1]:
                    yield from _signs(each)
            case "ASSERT_NOT":
                pass
            case other:
                raise AssertionError(f"unknown part of a pattern: {other}")


@pytest.mark.parametrize(
    ("pattern", "length", "digits"),
    [
        (r"\d{3}[ -]?\d", 4, 4),
        (r"(?:\d\d|1|x)", 1, 0),
        (r"(?:\d\d|1)", 1, 1),
        (r"(?:\d ?){2,}", 2, 2),
        (r"[0-9a]{4}", 4, 0),
        (r"[2-6][45]", 2, 2),
        (r"(?=\d)[A-Z0-9]", 1, 0),
        (r"\d*7", 1, 1),
        ("[^a]", 1, 0),
    ],
)
def test_sizes(pattern: str, length: int, digits: int) -> None:
    assert (least_length(pattern), least_digits(re.compile(pattern))) == (length, digits)
