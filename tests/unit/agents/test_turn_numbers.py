"""Which turns of a session are handled: numbers in any order, each once, with a bounded row."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from memstream.agents.common.stored_row import EPOCH_VERSION
from memstream.agents.common.turn_numbers import EPOCHS_KEPT, GAPS_KEPT, HandledTurns
from memstream.schemas.turn_number import TurnNumber


def handled(*numbers: int) -> HandledTurns:
    row = HandledTurns()
    for number in numbers:
        row = row.add(TurnNumber(0, number))
    return row


@given(st.lists(st.integers(1, 40)))
def test_each_number_is_handled_once_in_any_order(numbers: list[int]) -> None:
    row = handled(*numbers)
    assert {number for number in range(1, 50) if row.has(TurnNumber(0, number))} == set(numbers)
    assert HandledTurns.read(row.to_bytes()) == row


def test_a_gap_is_split_and_closes() -> None:
    assert handled(1, 5).gaps == ((2, 4),)
    assert handled(1, 5, 3).gaps == ((2, 2), (4, 4))
    assert handled(1, 5, 3, 2, 4) == HandledTurns(turn_number=5)


def test_a_row_of_an_earlier_version_has_no_gaps() -> None:
    row = HandledTurns.read(b'{"turn_number": 7}')
    assert all(row.has(TurnNumber(0, number)) for number in range(1, 8))
    assert not row.has(TurnNumber(0, 8))


def test_the_oldest_gaps_are_forgotten_and_count_as_handled() -> None:
    row = handled(*range(2, 2 * GAPS_KEPT + 20, 2))
    assert len(row.gaps) == GAPS_KEPT
    assert row.has(TurnNumber(0, 1))
    assert not row.has(TurnNumber(0, 2 * GAPS_KEPT + 1))


NUMBERS = st.builds(TurnNumber, st.integers(0, EPOCHS_KEPT), st.integers(1, 12))


@given(st.lists(NUMBERS))
def test_each_number_of_each_epoch_is_handled_once_in_any_order(numbers: list[TurnNumber]) -> None:
    row = HandledTurns()
    for number in numbers:
        row = row.add(number)
    every = {TurnNumber(epoch, n) for epoch in range(EPOCHS_KEPT + 2) for n in range(1, 15)}
    assert {number for number in every if row.has(number)} == set(numbers)
    assert HandledTurns.read(row.to_bytes()) == row


def test_numbers_of_a_forgotten_epoch_count_as_handled() -> None:
    row = HandledTurns()
    for epoch in range(2 * EPOCHS_KEPT + 2):
        row = row.add(TurnNumber(epoch, 1))
    assert len(row.earlier) == EPOCHS_KEPT
    assert row.has(TurnNumber(0, 99))
    assert not row.has(TurnNumber(row.earlier[0].epoch, 2))


def test_a_row_of_epoch_0_is_as_an_earlier_version_wrote_it() -> None:
    assert json.loads(handled(1, 3).to_bytes()) == {"row_version": 1, "turn_number": 3, "gaps": [[2, 2]]}
    later = handled(1).add(TurnNumber(1, 1))
    assert json.loads(later.to_bytes())["row_version"] == EPOCH_VERSION, "an earlier version must not read it"
