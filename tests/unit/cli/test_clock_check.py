"""`memstream doctor` compares this machine's clock with the broker's."""

from __future__ import annotations

import pytest

from memstream.cli.commands.doctor import _clock
from memstream.cli.wiring.settings import Settings
from memstream.schemas.errors import Transient
from memstream.streams.log.kafka import KafkaLog


class Clock(KafkaLog):
    def __init__(self, ahead: float | None) -> None:
        super().__init__(servers=["127.0.0.1:1"])
        self._ahead = ahead

    async def clock_ahead(self, *, replication: int) -> float:
        if self._ahead is None:
            raise Transient("broker", "the topic cannot be created")
        return self._ahead


@pytest.mark.parametrize(
    ("ahead", "ok", "detail"),
    [
        (0.2, True, "0.2 s ahead of the broker's"),
        (-59.0, True, "59.0 s behind the broker's"),
        (7200.0, False, "this machine's clock is 7200.0 s ahead of the broker's"),
        (-61.0, False, "this machine's clock is 61.0 s behind the broker's"),
        (None, True, "not compared with the broker's: the topic cannot be created"),
    ],
)
async def test_a_clock_that_is_off_fails(ahead: float | None, ok: bool, detail: str) -> None:
    check = await _clock(Clock(ahead), Settings())
    assert (check.ok, check.detail) == (ok, detail)
    assert ok == (not check.fix)
