"""Which turns of a session are handled: numbers in any order, each once, with a bounded row."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.agents.common.stored_row import EPOCH_VERSION
from memstream.agents.common.turn_numbers import (
    EPOCHS_KEPT,
    GAPS_KEPT,
    GAPS_PACKED,
    HandledTurns,
    pack_gaps,
    unpack_gaps,
)
from memstream.agents.reflector.rows import ReflectedTurns
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


def test_a_letter_is_put_back_into_a_gap_of_long_ago() -> None:
    """Two owners alternate in a session, so each has every other number."""
    row = handled(*(n for n in range(1, 4_000, 2) if n != 3))
    assert len(row.gaps) < 2 * GAPS_KEPT
    assert {n for n in range(1, 4_000) if row.has(TurnNumber(0, n))} == set(range(1, 4_000, 2)) - {3}
    row = ReflectedTurns.read(row.to_bytes()).add(TurnNumber(0, 3))
    assert row.has(TurnNumber(0, 3))
    assert not row.has(TurnNumber(0, 2))
    assert not row.has(TurnNumber(0, 4))
    assert len(row.packed_gaps) < 200


def test_gaps_before_those_that_are_packed_are_forgotten_and_count_as_handled() -> None:
    row = handled(1)
    many = tuple((n, n) for n in range(2, 2 * GAPS_PACKED + 2, 2))
    row = row.model_copy(update={"turn_number": many[-1][1] + 1, "packed_gaps": pack_gaps(many)})
    assert not row.has(TurnNumber(0, 2))
    top = row.turn_number
    for n in range(top + 2, top + 4 * GAPS_KEPT + 4, 2):
        row = row.add(TurnNumber(0, n))
    assert row.has(TurnNumber(0, 2))
    assert not row.has(TurnNumber(0, top - 1))


def test_a_row_whose_gaps_an_earlier_version_has_cut_goes_on() -> None:
    gaps = [(n, n) for n in range(102, 102 + 2 * GAPS_KEPT, 2)]
    row = HandledTurns.read(json.dumps({"turn_number": gaps[-1][1] + 1, "gaps": gaps}).encode())
    assert row.has(TurnNumber(0, 4))
    assert not row.has(TurnNumber(0, 102))
    for n in range(row.turn_number + 2, row.turn_number + 4 * GAPS_KEPT, 2):
        row = row.add(TurnNumber(0, n))
    assert row.has(TurnNumber(0, 4))
    assert not row.has(TurnNumber(0, 102))


@given(st.lists(st.integers(1, 10**6), unique=True))
def test_gaps_are_packed_without_a_loss(numbers: list[int]) -> None:
    numbers = sorted(numbers)[: len(numbers) // 2 * 2]
    gaps = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    assert unpack_gaps(pack_gaps(gaps)) == gaps


@pytest.mark.parametrize("count", [700, 1_000, 1_400])
def test_each_number_is_handled_once_with_many_gaps(count: int) -> None:
    numbers = Random(count).sample(range(1, 2_001), count)
    row = handled(*numbers)
    assert {number for number in range(1, 2_002) if row.has(TurnNumber(0, number))} == set(numbers)


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
