"""Gists and the archive, without I/O: words are never lost, and are given back unchanged or not at all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memstream.memory.language.locales import locale
from memstream.memory.policies import GistPolicy
from memstream.memory.upkeep.gist import (
    access_fields,
    archive_expiry,
    archive_row,
    extract_gist,
    is_faithful,
    is_whole,
    needs_gist,
)
from memstream.schemas import ids
from memstream.schemas.archive import ArchivedText
from memstream.schemas.episodes import StoredEpisode
from tests.support.record_builders import NOW, episode

POLICY = GistPolicy()
LONG = "Ran a marathon in Oslo with Jennifer. " * 10
TEXTS = st.text(min_size=1, max_size=2_000)


def old(content: str = LONG, **fields: Any) -> StoredEpisode:
    defaults: dict[str, Any] = {"occurred_at": NOW - timedelta(days=40), "consolidated_at": NOW - timedelta(days=39)}
    return episode(content, **(defaults | fields))


class TestWhich:
    def test_one_that_is_old_faded_long_and_looked_at(self) -> None:
        assert needs_gist(old(), now=NOW, policy=POLICY)

    @pytest.mark.parametrize(
        "fields",
        [
            {"content": "x" * 240},
            {"occurred_at": NOW - timedelta(days=29)},
            {"last_accessed_at": NOW - timedelta(days=1)},
            {"stability": 60.0},
            {"consolidated_at": None},
            {"archived_at": NOW - timedelta(days=1)},
            {"deleted_at": NOW - timedelta(days=1)},
            {"content_hash": "0" * 64},
        ],
        ids=lambda fields: next(iter(fields)),
    )
    def test_no_other(self, fields: dict[str, Any]) -> None:
        assert not needs_gist(old(**fields), now=NOW, policy=POLICY)

    def test_none_where_it_is_off(self) -> None:
        assert not needs_gist(old(), now=NOW, policy=GistPolicy(enabled=False))

    @given(st.text(min_size=41, max_size=2_000))
    def test_the_words_of_whatever_is_compressed_come_back(self, text: str) -> None:
        it = old(text)
        assert needs_gist(it, now=NOW, policy=GistPolicy(longer_than=40, chars=20))
        row = ArchivedText.read(archive_row(it, at=NOW).to_bytes())
        gist = it.model_copy(update={"content": extract_gist(text, chars=20), "archived_at": NOW})
        assert len(gist.content) < len(text)
        assert is_whole(row, gist)
        assert row.content == text


class TestWhole:
    @given(TEXTS, TEXTS)
    def test_other_words_are_not_it(self, text: str, other: str) -> None:
        assume(text != other)
        it = old(text)
        row = archive_row(it, at=NOW)
        assert not is_whole(row.model_copy(update={"content": other}), it)

    @pytest.mark.parametrize(
        "wrong", [{"content": LONG.upper()}, {"content": f" {LONG}"}, {"owner_key": "acme/user/u2"}]
    )
    def test_nor_what_only_looks_like_it(self, wrong: dict[str, str]) -> None:
        it = old()
        assert is_whole(archive_row(it, at=NOW), it)
        assert not is_whole(archive_row(it, at=NOW).model_copy(update=wrong), it)

    def test_nor_words_that_were_put_there_with_a_hash_of_their_own(self) -> None:
        it = old()
        other = LONG + "And more."
        row = archive_row(it, at=NOW).model_copy(update={"content": other, "sha256": ids.text_hash(other)})
        assert not is_whole(row, it)

    def test_nor_another_episodes(self) -> None:
        it, another = old(), old(LONG, turn="t9")
        assert not is_whole(archive_row(another, at=NOW), it)

    def test_an_access_keeps_them_their_time_anew_and_is_the_same_the_second_time(self) -> None:
        row = archive_row(old(), at=NOW)
        assert archive_expiry(row, POLICY) == NOW + timedelta(days=365)
        later = NOW + timedelta(days=300)
        fields = access_fields(row, at=later)
        after = ArchivedText.from_payload(row.to_payload() | fields)
        assert (after.access_count, archive_expiry(after, POLICY)) == (1, later + timedelta(days=365))
        assert access_fields(row, at=later) == fields
        assert access_fields(after, at=NOW)["accessed_at"] == fields["accessed_at"], "a late one takes nothing back"


class TestExtract:
    def test_whole_sentences_while_they_fit(self) -> None:
        assert extract_gist("Ran in Oslo. Swam in Bergen. Slept.", chars=30) == "Ran in Oslo. Swam in Bergen."

    def test_else_words_and_a_sign_that_there_is_more(self) -> None:
        assert extract_gist("Ran a marathon in Oslo with Jennifer", chars=20) == "Ran a marathon in …"
        assert extract_gist("x" * 50, chars=20) == "x" * 18 + " …"

    @given(TEXTS, st.integers(20, 300))
    def test_it_is_short_says_something_and_says_nothing_else(self, text: str, chars: int) -> None:
        gist = extract_gist(text, chars=chars)
        assert len(gist) <= chars
        assert gist or not text.split()
        assert " ".join(text.split()).startswith(gist.removesuffix("…").rstrip())
        assert extract_gist(text, chars=chars) == gist


class TestFaithful:
    TEXT = "Went to Oslo in 2024 with Jennifer, did not run the marathon, and slept by the river for 3 nights."

    @pytest.mark.parametrize(
        ("gist", "taken"),
        [
            ("Went to Oslo in 2024 with Jennifer; did not run the marathon.", True),
            ("Went to Oslo in 2023, did not run the marathon.", False),
            ("Went to Oslo with Jennifer, did run the marathon.", False),
            ("Did not run the marathon by the river in Oslo.", True),
            ("Cycled alone around Bergen, and did not swim at all.", False),
            ("", False),
            (TEXT, False),
        ],
        ids=[
            "its own words",
            "another number",
            "what it denies",
            "no small words",
            "other words",
            "nothing",
            "too long",
        ],
    )
    def test_only_what_the_text_says(self, gist: str, taken: bool) -> None:
        assert is_faithful(gist, self.TEXT, chars=80, pack=locale("en")) is taken


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"by": "guess"}, "extract, model"),
        ({"strength": 1.1}, "gist.strength"),
        ({"days": -1.0}, "gist.days"),
        ({"retention_days": 0.0}, "gist.retention_days"),
        ({"chars": 300}, "gist.chars"),
        ({"at_once": 0}, "gist.at_once"),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused_by_name(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        GistPolicy(**wrong)
