"""Ids: the worked example of docs/reference/ids.md, and what makes two ids differ."""

from __future__ import annotations

import string
import unicodedata
from uuid import uuid5

from hypothesis import given
from hypothesis import strategies as st

from memstream.schemas import ids

SESSION = ids.session_key("acme", "u1", "s1")
OWNER = ids.owner_key("acme", "user", "u1")
CONTENT = "Works at  Stripe"

given_ids = st.text(
    st.characters(exclude_categories=("Cc", "Cs")),
    min_size=1,
    max_size=20,
)


def test_worked_example() -> None:
    observation = ids.observation_id(SESSION, "t1", "user", CONTENT)
    fact = ids.fact_id(OWNER, observation)
    assert ids.content_hash(CONTENT) == "7b5a904450cbcb0e78658f1b79fde6616491a35badd6644e69f0b62e59a00962"
    assert observation == "aeac552b-61c9-5539-9f72-548b7dd75b1a"
    assert ids.episode_id(observation) == "e2653646-1712-5420-97ba-07a1d80c8b27"
    assert fact == "0c96a090-a211-564a-a764-a4b400c046ae"
    assert ids.event_id(fact, 1) == "320ce0cc-96aa-5622-9402-f894136f6f83"


def test_keys_are_percent_encoded() -> None:
    assert ids.session_key("acme", "u/1 %", "é") == "acme/u%2F1%20%25/%C3%A9"


def test_canonical_text() -> None:
    assert ids.canonical("  Works\n\tat\u00a0 CAFE\u0301 ") == "works at caf\u00e9"


@given(st.tuples(given_ids, given_ids, given_ids))
def test_keys_come_apart_again(parts: tuple[str, str, str]) -> None:
    key = ids.session_key(*parts)
    assert ids.split(key) == parts
    assert set(key) <= set(string.ascii_letters + string.digits + "_.-~%/")


@given(st.tuples(given_ids, given_ids, given_ids), st.tuples(given_ids, given_ids, given_ids))
def test_two_keys_are_equal_only_when_all_parts_are(a: tuple[str, str, str], b: tuple[str, str, str]) -> None:
    assert (ids.session_key(*a) == ids.session_key(*b)) == (a == b)


@given(st.text(max_size=40))
def test_equal_statements_have_equal_hashes(text: str) -> None:
    if any(unicodedata.category(c) == "Cs" for c in text):
        return
    assert ids.content_hash(text) == ids.content_hash(f"  {unicodedata.normalize('NFD', text)} ")


@given(parts=st.tuples(given_ids, given_ids, given_ids), turn_id=given_ids, index=st.integers(0, 63))
def test_an_id_is_a_uuid_of_version_5(parts: tuple[str, str, str], turn_id: str, index: int) -> None:
    session = ids.session_key(*parts)
    name = f"message/{session}/{ids.encode(turn_id)}/{index}"
    assert ids.message_id(session, turn_id, index) == str(uuid5(ids.NAMESPACE, name))
