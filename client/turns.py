"""Turns as the client sends them: validated as the observer validates them, appended under their session's key."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from ..schemas.errors import Poison
from ..schemas.front_door.turns import read_turn
from ..schemas.turns import Turn, turn_value
from ..streams.engine.turn_sender import TurnSender
from ..streams.log.port import Log, Position
from .errors import translate_errors

if TYPE_CHECKING:
    from ..memory.policies import PrivacyPolicy

TurnLike = Turn | Mapping[str, Any]
"""A turn of the contract (docs/reference/records.md). Unknown fields are sent along."""
UNACKED_MAX = 1_000
"""Turns that may wait for their acknowledgement at once. Further calls wait for a free place."""


Privacy: TypeAlias = "PrivacyPolicy | Literal['default', 'off']"
"""What a client masks before it sends a turn. `default`: what `PrivacyPolicy()` masks; `off`: nothing."""


class Turns(Protocol):
    """A transport that takes turns into memory."""

    async def produce(self, turn: TurnLike) -> Position:
        """Send a turn and return its position in the log once it is durable.

        Sending a turn again is harmless: memory counts a `turn_id` of a session once.

        Raises:
            InvalidTurn, TooLarge, Unavailable, Misconfigured.
        """
        ...


class LogTurns:
    """`Turns` on the log itself. An idempotent producer writes them, all replicas acknowledge them, and murmur2 of the
    session's key chooses the partition. Turns of one session keep the order of the calls."""

    def __init__(self, *, log: Log, privacy: Privacy = "default") -> None:
        self._privacy = privacy
        self._sender = TurnSender(log, "client")
        self._places = asyncio.Semaphore(UNACKED_MAX)

    async def produce(self, turn: TurnLike) -> Position:
        with translate_errors():
            validated, value = encode_turn(turn, self._privacy)
            async with self._places:
                return await self._sender.send(validated, value)


def encode_turn(turn: TurnLike, privacy: Privacy = "default") -> tuple[Turn, bytes]:
    """Read a turn as the observer reads it, mask its secrets, and encode it as the topic will hold it. Raises Poison.

    A turn in which nothing is masked is encoded as it was given.
    """
    try:
        value = turn.to_bytes() if isinstance(turn, Turn) else turn_value(_plain(turn))
    except (TypeError, ValueError, RecursionError) as error:  # a set, a number that is none, a circular reference
        raise Poison("undecodable", f"the turn cannot be written as JSON: {error}") from None
    read = read_turn(value).turn
    if privacy == "off":
        return read, value
    from ..memory.secrets.secret_filter import SecretFilter  # slow to import: policies, and rules that are compiled
    from ..memory.secrets.turns import protect_turn

    protected = protect_turn(read, SecretFilter() if privacy == "default" else SecretFilter(privacy))
    if not protected.changed:
        return read, value
    masked = protected.turn.to_bytes()
    return read_turn(masked).turn, masked


def _plain(turn: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a turn for JSON. A `datetime` as its time becomes a text."""
    at = turn.get("occurred_at")
    return {**turn, "occurred_at": at.isoformat()} if isinstance(at, datetime) else dict(turn)
