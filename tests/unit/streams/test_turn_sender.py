"""Sending of turns: in order per session whatever the log's delays, side by side across sessions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from memstream.schemas.errors import Poison, Transient
from memstream.schemas.front_door.turns import read_turn
from memstream.streams.log.port import Position
from memstream.streams.senders.turns import TurnSender, user_turn


class SlowLog:
    """A log whose first append takes longest, and which refuses the turn ids in `failing`."""

    def __init__(self, *, failing: tuple[str, ...] = ()) -> None:
        self.appended: list[tuple[str, str]] = []
        self.under_way = self.most = 0
        self._pause = 0.05
        self._failing = failing

    async def append(self, topic: str, *, key: bytes, value: bytes, headers: Any) -> Position:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self._pause /= 2
        await asyncio.sleep(self._pause)
        self.under_way -= 1
        turn = read_turn(value).turn
        if turn.turn_id in self._failing:
            raise Transient("broker", "away")
        self.appended.append((key.decode(), turn.turn_id))
        return Position(topic, 0, len(self.appended) - 1)


def raw(session: str, turn_id: str) -> bytes:
    return user_turn(tenant_id="a", user_id="u/1", session_id=session, turn_id=turn_id, text="hello")


async def send_all(log: SlowLog, *turns: tuple[str, str]) -> list[Any]:
    sender = TurnSender(log, "test")  # type: ignore[arg-type]
    values = [raw(*turn) for turn in turns]
    tasks = [sender.send(read_turn(value).turn, value) for value in values]
    return await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_session_keeps_its_order() -> None:
    log = SlowLog()
    await send_all(log, *(("s", str(n)) for n in range(6)))
    assert log.appended == [("a/u%2F1/s", str(n)) for n in range(6)]
    assert log.most == 1


async def test_sessions_run_side_by_side() -> None:
    log = SlowLog()
    await send_all(log, *((f"s{n}", "t") for n in range(6)))
    assert log.most == 6


async def test_a_turn_that_fails_does_not_hold_up_the_next() -> None:
    log = SlowLog(failing=("1",))
    answers = await send_all(log, ("s", "0"), ("s", "1"), ("s", "2"))
    assert [isinstance(answer, Transient) for answer in answers] == [False, True, False]
    assert [turn_id for _, turn_id in log.appended] == ["0", "2"]


@pytest.mark.parametrize(
    ("value", "reason"), [(b"{}", "invalid"), (b"x" * 300_000, "oversized"), (b"\xff", "undecodable")]
)
def test_turns_that_the_observer_would_refuse_are_refused(value: bytes, reason: str) -> None:
    with pytest.raises(Poison) as caught:
        read_turn(value)
    assert caught.value.reason == reason
