"""A long turn is cut for the model: it costs no more than the policy says, and nothing unseen is quoted."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.agents.observer.batch import source_role
from memstream.agents.observer.prompt import ShownTurn
from memstream.agents.observer.speakers import ShownMessage
from memstream.agents.observer.turn_cut import CHARACTERS_A_TOKEN, HEAD, Said, cut_to_size
from memstream.memory.policies import CapturePolicy
from memstream.schemas.turns import Turn

AT = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
SAID = st.lists(
    st.builds(ShownMessage, st.sampled_from(("user", "assistant")), st.text(min_size=1, max_size=400)), max_size=12
)


@given(said=SAID, tokens=st.integers(64, 200))
def test_what_is_shown_fits_and_comes_from_the_turn(said: list[ShownMessage], tokens: int) -> None:
    given_: Said = tuple(said)
    kept, cut = cut_to_size(given_, tokens=tokens)
    characters = sum(len(each.text) for each in given_)
    shown = sum(len(each.text) for each in kept)
    assert shown <= CHARACTERS_A_TOKEN * tokens or cut is None
    assert (cut is None) == (characters <= CHARACTERS_A_TOKEN * tokens)
    if cut is None:
        assert kept == given_
        return
    assert all(any(part.role == each.role and part.text in each.text for each in given_) for part in kept)
    shortest = min(given_, key=lambda each: len(each.text))
    assert shortest in kept or all(len(each.text) > CHARACTERS_A_TOKEN * tokens // len(given_) for each in given_)
    assert shown > CHARACTERS_A_TOKEN * tokens - len(given_) or any(not each.text.strip() for each in given_)


def turn_of(*messages: tuple[str, str]) -> Turn:
    said = [{"role": role, "content": content} for role, content in messages]
    ids = {"tenant_id": "acme", "user_id": "u1", "session_id": "s1", "turn_id": "t1"}
    return Turn.read(json.dumps({**ids, "messages": said}))


def long_turn() -> ShownTurn:
    text = "I work at Google. " + "So it goes. " * 20_000 + 'My mother says: "' + "la " * 20_000 + 'I live in Oslo."'
    return ShownTurn.of(turn_of(("user", text), ("assistant", "Fine.")), AT, CapturePolicy())


def test_a_quarter_of_a_megabyte_costs_eight_thousand_tokens() -> None:
    shown = long_turn()
    assert 7_990 <= shown.tokens <= 8_000
    assert shown.said[-1] == ShownMessage("assistant", "Fine.")
    assert shown.cut is not None
    assert shown.cut.messages == 1
    assert shown.cut.tokens > 60_000


def test_beginning_and_end_may_be_quoted_and_nothing_between_or_across() -> None:
    shown = long_turn()
    assert source_role(shown, "I work at Google.") == "user"
    assert source_role(shown, 'My mother says: "la') is None, "not shown"
    user = "".join(each.text for each in shown.said if each.role == "user")
    seam = round(len(user) * HEAD)
    assert source_role(shown, user[seam - 20 : seam + 20]) is None, "it was never said"


def test_who_said_it_is_told_by_the_whole_message() -> None:
    assert source_role(long_turn(), "I live in Oslo.") == "tool", "the quotation began in what is left out"


@pytest.mark.parametrize("tokens", [64, 8_000])
def test_a_turn_that_fits_is_shown_whole(tokens: int) -> None:
    shown = ShownTurn.of(turn_of(("user", "I work at Google.")), AT, CapturePolicy(turn_tokens=tokens))
    assert (shown.said, shown.cut, shown.messages) == ((ShownMessage("user", "I work at Google."),), None, None)


def test_a_function_of_the_operator_is_cut_too() -> None:
    shown = ShownTurn.of(turn_of(("user", "x")), AT, CapturePolicy(), source=lambda turn: "word " * 100_000)
    assert shown.tokens <= 8_000
    assert shown.cut is not None
