"""What fetches prove about holes, compared with a log of which every offset is known."""

from __future__ import annotations

from dataclasses import dataclass

from faust.types import TP
from hypothesis import given
from hypothesis import strategies as st

from memstream.streams.faust.transports.coverage import Coverage

P0, P1 = TP("t", 0), TP("t", 1)


@dataclass(frozen=True)
class At:
    offset: int


def at(*offsets: int) -> list[At]:
    return [At(offset) for offset in offsets]


def follows(coverage: Coverage, start: int, end: int, *offsets: int, tp: TP = P0) -> list[int]:
    return [each for _, each in coverage.extended(tp, start, end, at(*offsets))]


def test_a_marker_between_two_fetches_needs_no_question() -> None:
    coverage = Coverage()
    assert follows(coverage, 0, 2, 0) == [0]  # 1 is a marker
    assert follows(coverage, 2, 5, 2, 4) == [1, 3]
    assert follows(coverage, 5, 7) == []  # markers alone
    assert follows(coverage, 7, 8, 7, tp=P1) == [7], "each partition has a chain of its own"
    assert follows(coverage, 7, 8, 7) == [5]


def test_a_seek_proves_nothing() -> None:
    coverage = Coverage()
    follows(coverage, 0, 2, 0)
    assert follows(coverage, 9, 10, 9) == [9]
    assert follows(coverage, 4, 6, 5) == [4], "back"
    coverage.clear()
    assert follows(coverage, 6, 7, 6) == [6]


@given(
    exists=st.lists(st.booleans(), min_size=1, max_size=30),
    moves=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8), st.booleans()), max_size=20),
)
def test_no_fetched_record_is_ever_declared_absent(exists: list[bool], moves: list[tuple[int, int, bool]]) -> None:
    """From `follows` up to a record the log has nothing, wherever the consumer sought in between."""
    coverage, position = Coverage(), 0
    for target, length, seeks in moves:
        start = min(target, len(exists)) if seeks else position
        end = min(start + length, len(exists))
        found = [offset for offset in range(start, end) if exists[offset]]
        for record, since in coverage.extended(P0, start, end, at(*found)):
            assert not any(exists[since : record.offset])
        position = end
