"""Writes of a handler go through the breaker `broker`: they wait, show in readiness, and end for what never passes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from aiokafka.errors import InvalidTimestampError, TopicAuthorizationFailedError

from memstream.schemas.errors import DeploymentFault, Relinquished, Transient
from memstream.schemas.outcomes import OutRecord
from memstream.schemas.topics import OBSERVATIONS, TURNS
from memstream.streams.engine.retry import BROKER, Calls, RetryPolicy
from memstream.streams.log.write_errors import row_error, write_error
from tests.support.counting_stage import Counting
from tests.support.polling import wait_for
from tests.support.stage_harness import StageHarness, Topics


class Refusing:
    """A harness whose table or producer raises `error` as long as there is one."""

    def __init__(self, write: str) -> None:
        self.harness = StageHarness(name="observer", make=lambda harness: Counting())
        self.error: Exception | None = None
        handler: Any = self.harness.handler
        self.calls = handler._calls = Calls(retry=RetryPolicy(first=0.001, cap=0.001))
        put, send = handler._rows.put, handler._send

        async def refusing_put(rows: Mapping[str, bytes | None], **where: Any) -> None:
            if self.error is not None and write == "rows":
                raise self.again()
            await put(rows, **where)

        async def refusing_send(record: OutRecord) -> Any:
            if self.error is not None and write == "records":
                raise self.again()
            return await send(record)

        handler._rows.put, handler._send = refusing_put, refusing_send

    def again(self) -> Exception:
        """Return an error of its own for each attempt: those of one request count once."""
        error = self.error
        return Transient(error.component, str(error)) if isinstance(error, Transient) else error or AssertionError()

    async def deliver(self) -> None:
        record = Topics().record(TURNS.name, b"k", json.dumps({"id": "a", "value": "x"}).encode())
        await self.harness.deliver(record)

    def sent(self) -> int:
        return len(self.harness.on(OBSERVATIONS.name))


@pytest.mark.parametrize("write", ["rows", "records"])
async def test_a_write_waits_behind_the_breaker_until_the_broker_takes_it(write: str) -> None:
    refusing = Refusing(write)
    refusing.error = Transient("broker", "no leader")
    handling = asyncio.create_task(refusing.deliver())
    away = await wait_for(refusing.calls.away, "the breaker to open", deadline=5)
    assert away == {BROKER: "no leader"}
    assert refusing.sent() == 0
    refusing.error = None
    refusing.calls._breakers[BROKER].succeeded()
    for sleeper in refusing.calls._sleepers:
        sleeper.wake.set()
    await asyncio.wait_for(handling, 5)
    assert refusing.sent() == 1


@pytest.mark.parametrize(
    ("write", "error"),
    [
        ("rows", row_error("rows-changelog", InvalidTimestampError())),
        ("records", write_error(OBSERVATIONS.name, TopicAuthorizationFailedError())),
    ],
)
async def test_what_never_passes_is_raised_at_once(write: str, error: Exception) -> None:
    refusing = Refusing(write)
    refusing.error = error
    with pytest.raises(DeploymentFault) as raised:
        await refusing.deliver()
    assert raised.value is error
    assert refusing.calls.away() == {}


async def test_a_local_store_that_fails_is_not_the_brokers_fault() -> None:
    refusing = Refusing("rows")
    refusing.error = Transient("tables", "no space left")
    with pytest.raises(Relinquished, match="no space left"):
        await refusing.deliver()
    assert refusing.calls.away() == {}
