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

DEADLINE = 10.0


@pytest.mark.parametrize("error", [Transient("broker", "away"), Relinquished("the partition is lost")], ids=repr)
async def test_a_reminder_that_was_not_sent_does_not_end_the_loop(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(reminders, "TICK", 0.02)
    tries: list[bytes] = []
    sent = asyncio.Event()

    def due(at_most: int) -> Iterator[OutRecord]:
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


async def test_a_look_takes_what_there_is_room_for_and_sends_it_side_by_side() -> None:
    """The log answers none of them before all were sent, so one after the other would never end."""
    sent: list[bytes] = []
    all_sent = asyncio.Event()

    def due(at_most: int) -> Iterator[OutRecord]:
        return (OutRecord(topic="memory.commands", key=b"%d" % n, value=b"v") for n in range(at_most))

    async def send_durably(record: OutRecord) -> None:
        sent.append(record.key)
        if len(sent) == 30:
            all_sent.set()
        await all_sent.wait()

    loop = asyncio.create_task(reminders.send_reminders(due, send_durably, room=lambda: 30))
    try:
        await asyncio.wait_for(all_sent.wait(), DEADLINE)
    finally:
        loop.cancel()
    assert sent == [b"%d" % n for n in range(30)]


async def test_an_error_that_is_no_outage_ends_the_loop() -> None:
    async def send_durably(record: OutRecord) -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await asyncio.wait_for(
            reminders.send_reminders(lambda n: [OutRecord(topic="t", key=b"k", value=b"v")], send_durably), DEADLINE
        )


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
    event = outcome.source
    assert OutcomeRow.load(rows, "known").has_handled(event)
    assert not OutcomeRow.load(rows, "known").has_handled(event.model_copy(update={"offset": 8}))
    assert not OutcomeRow.load(rows, "known").has_handled(event.model_copy(update={"id": "of a topic created again"}))
    assert not OutcomeRow.load(rows, "other").has_handled(event)
