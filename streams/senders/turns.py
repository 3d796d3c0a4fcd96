"""Sender of turns: the record key is the session key, and the turns of a session keep their order."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import JsonValue

from ...schemas import ids
from ...schemas.cloudevents import CloudEvent
from ...schemas.topics import TURNS
from ...schemas.turns import Turn, turn_value
from ..log.port import Log, Position


def user_turn(*, tenant_id: str, user_id: str, session_id: str, turn_id: str, text: str) -> bytes:
    """Build the value of a turn in which a user says `text` now."""
    fields: dict[str, JsonValue] = {
        "tenant_id": tenant_id,
        "user_id": user_id,
        "session_id": session_id,
        "turn_id": turn_id,
        "messages": [{"role": "user", "content": text}],
        "occurred_at": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
    }
    return turn_value(fields)


@dataclass(slots=True)
class TurnSender:
    """A sender of turns. Turns of one session are appended in the order of the calls; sessions run concurrently."""

    log: Log
    source: str
    _last: dict[str, asyncio.Task[Position]] = field(default_factory=dict)

    def send(self, turn: Turn, value: bytes) -> asyncio.Task[Position]:
        """Append a turn. The returned task ends when the turn is durable. `value` is written to the topic unchanged."""
        key = turn.session_key
        task = asyncio.ensure_future(self._after(self._last.get(key), turn, value))
        self._last[key] = task
        task.add_done_callback(lambda done: self._forget(key, done))
        return task

    def _forget(self, key: str, done: asyncio.Task[Position]) -> None:
        if self._last.get(key) is done:
            del self._last[key]

    async def _after(self, previous: asyncio.Task[Position] | None, turn: Turn, value: bytes) -> Position:
        if previous is not None:
            await asyncio.wait((previous,))
        key = turn.session_key
        event = CloudEvent(
            id=ids.turn_cause(key, turn.turn_id),
            source=f"/memstream/{self.source}",
            type="memstream.turn.v1",
            subject=key,
            time=datetime.now(UTC),
        )
        return await self.log.append(TURNS.name, key=key.encode(), value=value, headers=event.headers())
