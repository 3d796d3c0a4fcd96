"""Stored text in the console: characters that deceive the eye are shown, quotes are marked in their message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.api.console.shown_text import pieces_with, shown
from memstream.memory.language.clean_text import clean_text


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a < b & c", "<bdi>a &lt; b &amp; c</bdi>"),
        ("gpj\u202eexe", '<bdi>gpj<span class="unseen" title="right-to-left override">U+202E</span>exe</bdi>'),
        ("a\u200bb", '<bdi>a<span class="unseen" title="zero width space">U+200B</span>b</bdi>'),
        ("\U000e0041", '<bdi><span class="unseen" title="tag latin capital letter a">U+E0041</span></bdi>'),
        ("\x00", '<bdi><span class="unseen" title="invisible character">U+0000</span></bdi>'),
        ("\ud800", '<bdi><span class="unseen" title="invisible character">U+D800</span></bdi>'),
        ("line\n\tnext", "<bdi>line\n\tnext</bdi>"),
        ("שלום", "<bdi>שלום</bdi>"),
    ],
)
def test_invisible_characters_are_shown(text: str, html: str) -> None:
    assert shown(text) == html


@pytest.mark.parametrize(
    "text",
    [
        "👩‍🔬",
        "❤️",
        "1️⃣",
        "می‌خواهم",
        "👨‍👩‍👧‍👦",
        "🏳️‍🌈",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "ไป\u200bมา",
    ],
)
def test_characters_that_a_script_or_an_emoji_needs_stay(text: str) -> None:
    assert shown(text) == f"<bdi>{text}</bdi>"


@pytest.mark.parametrize("text", ["a\u200db", "👩\u200d\u200d🔬", "x\ufe0f", "\u200d", "❤\ufe0f\ufe0f"])
def test_joiners_without_use_are_shown(text: str) -> None:
    assert 'class="unseen"' in shown(text)


_SIGNS = (
    "ab1 \u00ad\u200b\u200c\u200d\u202e\u2066\ufe0e\ufe0f\u20e3❤👩🔬🏴ไมमम\u061c\u180b"
    "\U000e0067\U000e0062\U000e007f\x00\x1b"
)


@given(st.text(_SIGNS, max_size=12))
def test_the_page_marks_what_recalls_and_contexts_leave_out(text: str) -> None:
    assert ("unseen" in shown(text)) == (clean_text(text) != text)
    assert "unseen" not in shown(clean_text(text))


@pytest.mark.parametrize(
    ("text", "quotes", "marked"),
    [
        ("I left Google. I now work at Stripe.", ["I now work at Stripe."], ["I now work at Stripe."]),
        ("I  NOW\nwork at stripe", ["i now work"], ["I  NOW\nwork"]),
        ("tea, tea and tea", ["tea"], ["tea", "tea", "tea"]),
        ("abcdef", ["abc", "bcd"], ["abcd"]),
        ("abcdef", ["abcdef", "cd"], ["abcdef"]),
        ("nothing here", ["something", "", "  "], []),
        ("İstanbul is big", ["istanbul"], []),
        ("", ["x"], []),
    ],
)
def test_quotes_are_marked(text: str, quotes: list[str], marked: list[str]) -> None:
    pieces = pieces_with(text, quotes)
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.text for piece in pieces if piece.quoted] == marked
