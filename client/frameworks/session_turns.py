"""Turns that an adapter adds to one session, with deterministic ids, so that a repeated turn counts once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NotRequired, TypedDict

from pydantic import JsonValue

from ...schemas.ids import NAMESPACE
from ...schemas.turns import MESSAGES_MAX, TURN_MAX_BYTES
from ..memory import Memory


class MessageFields(TypedDict):
    """Fields of a message of a turn."""

    role: str
    content: str
    name: NotRequired[str]


TURN_BYTES = TURN_MAX_BYTES - 16 * 1024
"""Maximum bytes of the messages of one turn. The rest of the turn's size is for its other fields."""
BEGIN = datetime.min.replace(tzinfo=UTC)
STEP = timedelta(milliseconds=1)
"""Minimum time between two turns of a session, so that their times define their order."""


@dataclass(frozen=True, slots=True)
class AddedTurn:
    """Turn that is durable in the log."""

    turn_id: str
    occurred_at: datetime
    messages: tuple[MessageFields, ...]


@dataclass
class SessionTurns:
    """Sender of an adapter's messages to one session.

    A turn id is derived from `request_id`, the number of the call and the text. So a call that is repeated after an
    error, or a request that is repeated in another process, counts once. The same text in another call gives another
    turn.

    Args:
        turn: additional fields of each turn, such as agent_id or scope.
        request_id: id of the request that is being answered, such as the id of the user's message. Random by default.
    """

    memory: Memory
    tenant_id: str
    user_id: str
    session_id: str
    turn: Mapping[str, JsonValue] = field(default_factory=dict)
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    _calls: int = 0
    _last: datetime = BEGIN
    _times: dict[str, datetime] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def seen(self, moment: datetime) -> None:
        """Make the times of later turns greater than `moment`, the time of an existing turn."""
        self._last = max(self._last, moment)

    async def add(self, messages: Sequence[MessageFields]) -> list[AddedTurn]:
        """Send messages as turns, and return them when all are durable.

        After an error, call it again with the same messages. Raises the errors of `Turns.produce`.
        """
        added = []
        async with self._lock:
            for place, group in enumerate(group_messages(messages)):
                words = json.dumps(group, sort_keys=True, ensure_ascii=True)
                name = json.dumps([self.request_id, self._calls, place, hashlib.sha256(words.encode()).hexdigest()])
                turn_id = str(uuid.uuid5(NAMESPACE, f"framework/{name}"))
                at = self._times.setdefault(turn_id, self._next_time())
                value: dict[str, Any] = {
                    **self.turn,
                    "tenant_id": self.tenant_id,
                    "user_id": self.user_id,
                    "session_id": self.session_id,
                    "turn_id": turn_id,
                    "occurred_at": at.isoformat(),
                    "messages": group,
                }
                await self.memory.produce(value)
                added.append(AddedTurn(turn_id, at, tuple(group)))
            self._calls += 1
            self._times.clear()
        return added

    def _next_time(self) -> datetime:
        now = datetime.now(UTC)
        now -= timedelta(microseconds=now.microsecond % 1_000)
        self._last = max(now, self._last + STEP) if self._last < now + timedelta(minutes=1) else now
        return self._last


def group_messages(messages: Sequence[MessageFields]) -> Iterator[list[MessageFields]]:
    """Divide messages into turns.

    A turn contains consecutive messages of the user and the messages up to the user's next message. A turn has at most
    MESSAGES_MAX messages and TURN_BYTES bytes.
    """
    group: list[MessageFields] = []
    size = 0
    for message in messages:
        more = len(json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        begins = message["role"] == "user" and bool(group) and group[-1]["role"] != "user"
        if group and (begins or len(group) == MESSAGES_MAX or size + more > TURN_BYTES):
            yield group
            group, size = [], 0
        group.append(message)
        size += more
    if group:
        yield group
