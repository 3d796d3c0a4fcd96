"""Which turns of a session are handled: numbers in any order, each once, with a bounded row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memstream.agents.common.turn_numbers import GAPS_KEPT, HandledTurns


def handled(*numbers: int) -> HandledTurns:
    row = HandledTurns()
    for number in numbers:
        row = row.add(number)
    return row


@given(st.lists(st.integers(1, 40)))
def test_each_number_is_handled_once_in_any_order(numbers: list[int]) -> None:
    row = handled(*numbers)
    assert {number for number in range(1, 50) if row.has(number)} == set(numbers)
    assert HandledTurns.read(row.to_bytes()) == row


def test_a_gap_is_split_and_closes() -> None:
    assert handled(1, 5).gaps == ((2, 4),)
    assert handled(1, 5, 3).gaps == ((2, 2), (4, 4))
    assert handled(1, 5, 3, 2, 4) == HandledTurns(turn_number=5)


def test_a_row_of_an_earlier_version_has_no_gaps() -> None:
    row = HandledTurns.read(b'{"turn_number": 7}')
    assert all(row.has(number) for number in range(1, 8))
    assert not row.has(8)


def test_the_oldest_gaps_are_forgotten_and_count_as_handled() -> None:
    row = handled(*range(2, 2 * GAPS_KEPT + 20, 2))
    assert len(row.gaps) == GAPS_KEPT
    assert row.has(1)
    assert not row.has(2 * GAPS_KEPT + 1)
