"""Seen ids, packed; waiting turns as rows; sessions parsed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.agents.common.seen_ids import SEEN_KEPT, SeenIds
from memstream.agents.common.turn_routing import TurnReading
from memstream.agents.observer.rows import (
    SessionRow,
    Sessions,
    WaitingTurn,
    session_of_waiting_key,
    waiting_key,
)
from memstream.schemas import ids
from memstream.streams.log.port import Position, Record

AT = datetime(2026, 11, 20, tzinfo=UTC)


class OneRow:
    def __init__(self, raw: bytes | None) -> None:
        self.raw = raw

    def row(self, key: str, *, partition: int | None = None) -> bytes | None:
        return self.raw

    async def put(self, rows: Mapping[str, bytes | None], *, partition: int | None = None) -> None:
        raise NotImplementedError

    def applied_before(self, partition: int, topic: str, source: int) -> int | None:
        return None

    def page(self, partition: int, *, prefix: str = "", after: str = "") -> Sequence[tuple[str, bytes]]:
        raise NotImplementedError


@given(st.lists(st.tuples(st.booleans(), st.text(max_size=3)), max_size=60))
def test_seen_ids_are_a_set(steps: list[tuple[bool, str]]) -> None:
    seen, model = SeenIds(), set[str]()
    for add, given_id in steps:
        seen = seen.add(given_id) if add else seen.remove(given_id)
        model = model | {given_id} if add else model - {given_id}
    assert all((each in seen) == (each in model) for _, each in steps)
    assert SeenIds.model_validate_json(seen.model_dump_json()) == seen


def test_the_last_thousand_are_remembered() -> None:
    seen = SeenIds()
    for n in range(SEEN_KEPT + 5):
        seen = seen.add(f"turn-{n}")
    assert [f"turn-{n}" in seen for n in (0, 4, 5, SEEN_KEPT + 4)] == [False, False, True, True]
    assert len(seen.packed) < 11_000


def test_a_hash_that_lies_across_two_others_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = {"a": "0011223344556677", "b": "8899aabbccddeeff", "across": "445566778899aabb"}
    monkeypatch.setattr(ids, "short_hash", hashes.__getitem__)
    found = SeenIds().add("a").add("b")
    assert "across" not in found
    assert "a" in found
    assert "b" in found.add("across").remove("a")


def test_a_waiting_turn_keeps_its_record_byte_for_byte() -> None:
    record = Record(
        Position("memory.turns", 3, 77),
        b"\xff\x00",
        b'{"a": "\xc3\xa9"}',
        (("h", b"\xfe"), ("h", b"")),
        1_700_000_000_000,
    )
    waiting = WaitingTurn.of(record, turn_id="t1", deferred_at=AT, reading=TurnReading())
    assert WaitingTurn.model_validate_json(waiting.to_bytes()).record() == record
    keyless = Record(Position("memory.turns", 3, 77), None, b"{}")
    waiting = WaitingTurn.of(keyless, turn_id="t", deferred_at=AT, reading=TurnReading())
    assert WaitingTurn.model_validate_json(waiting.to_bytes()).key is None


@given(st.lists(st.text(min_size=1), min_size=3, max_size=3), st.integers(0, 10_000))
def test_waiting_rows_are_told_from_sessions(parts: list[str], n: int) -> None:
    parts = [part.encode("utf-8", "replace").decode() for part in parts]
    key = ids.session_key(*parts)
    assert session_of_waiting_key(waiting_key(key, n)) == key
    assert session_of_waiting_key(key) is None


def test_a_session_is_parsed_once_and_never_read_stale() -> None:
    sessions = Sessions()
    assert sessions.of(OneRow(None), "k") == SessionRow()
    one, two = SessionRow(turns=1), SessionRow(turns=2)
    rows = OneRow(one.to_bytes())
    first = sessions.of(rows, "k")
    assert first == one
    assert sessions.of(rows, "k") is first
    rows.raw = two.to_bytes()
    assert sessions.of(rows, "k") == two
    sessions.keep("k", rows.raw, one)  # decided, but it never came into the table
    rows.raw = SessionRow(turns=3).to_bytes()
    assert sessions.of(rows, "k").turns == 3
    rows.raw = None
    assert sessions.of(rows, "k").turns == 0


def test_as_many_bytes_of_rows_are_remembered_as_there_is_room_for() -> None:
    rows = {f"k{turns}": SessionRow(turns=turns) for turns in range(10, 16)}
    size = len(rows["k10"].to_bytes())
    sessions = Sessions(kept_bytes=3 * size)
    for key, row in rows.items():
        sessions.keep(key, row.to_bytes(), row)
    sessions.keep("k14", rows["k14"].to_bytes(), rows["k14"])  # once more takes no more room, and it is the latest
    assert list(sessions._parsed) == ["k13", "k15", "k14"]
    sessions.keep("long", bytes(3 * size), rows["k10"])
    assert list(sessions._parsed) == ["long"]
    sessions.keep("longer", bytes(3 * size + 1), rows["k10"])
    assert not sessions._parsed
    sessions.keep("k11", rows["k11"].to_bytes(), rows["k11"])
    assert list(sessions._parsed) == ["k11"]
