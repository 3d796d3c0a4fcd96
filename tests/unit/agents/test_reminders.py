"""The send loop of reminders, and the row that keeps the last outcome: parts that the stages share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from memstream.agents.common import reminders
from memstream.agents.common.model_call import model_breaker, tenant_of_breaker
from memstream.agents.common.outcomes import OutcomeRow
from memstream.schemas.errors import Relinquished, Transient
from memstream.schemas.outcomes import Outcome, OutRecord, Source
from memstream.streams.engine.no_rows import NoRows
from memstream.streams.log.port import Position

DEADLINE = 10.0


@pytest.mark.parametrize("error", [Transient("broker", "away"), Relinquished("the partition is lost")], ids=repr)
async def test_a_reminder_that_was_not_sent_does_not_end_the_loop(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(reminders, "TICK", 0.02)
    limits: list[int] = []
    tries: list[bytes] = []
    sent = asyncio.Event()

    def due(at_most: int) -> Iterator[OutRecord]:
        limits.append(at_most)
        yield OutRecord(topic="memory.commands", key=b"k", value=b"v")

    async def send_durably(record: OutRecord) -> None:
        tries.append(record.key)
        if len(tries) == 1:
            raise error
        sent.set()

    loop = asyncio.create_task(reminders.send_reminders(due, send_durably))
    try:
        await asyncio.wait_for(sent.wait(), DEADLINE)
    finally:
        loop.cancel()
    assert tries[:2] == [b"k", b"k"]
    assert set(limits) == {1}, "50 a second, in ticks of 20 ms"


def test_a_breaker_of_a_model_names_its_tenant_and_no_other_breaker_does() -> None:
    assert tenant_of_breaker(model_breaker("acme")) == "acme"
    assert tenant_of_breaker("store") is None


class Rows(NoRows):
    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def row(self, key: str, *, partition: int | None = None) -> bytes | None:
        return self._raw if key == "known" else None


def test_a_row_gives_its_last_outcome_back_and_knows_the_record_of_it() -> None:
    outcome = Outcome(source=Source(topic="memory.turns", partition=1, offset=7, id="t1"))
    decision = OutcomeRow().decision("known", outcome)
    assert decision.row is not None
    rows = Rows(decision.row)
    assert OutcomeRow.last_decision(rows, "known") == decision
    assert OutcomeRow.last_decision(rows, "other") is None
    assert OutcomeRow.load(rows, "known").has_handled(Position("memory.turns", 1, 7))
    assert not OutcomeRow.load(rows, "known").has_handled(Position("memory.turns", 1, 8))
    assert not OutcomeRow.load(rows, "other").has_handled(Position("memory.turns", 1, 7))
