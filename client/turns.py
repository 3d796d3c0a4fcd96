"""Sender of turns. It validates a turn as the observer does, masks the secrets, and appends the turn to the log with
the key of its session."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from ..schemas.errors import Poison
from ..schemas.front_door.turns import read_turn
from ..schemas.turns import Turn, turn_value
from ..streams.log.port import Log, Position
from ..streams.senders.turns import TurnSender
from .errors import translate_errors

if TYPE_CHECKING:
    from ..memory.policies import PrivacyPolicy

TurnLike = Turn | Mapping[str, Any]
"""A turn with the fields of docs/reference/records.md. Unknown fields are sent, too."""
UNACKED_MAX = 1_000
"""Maximum number of unacknowledged turns. Further calls wait."""


Privacy: TypeAlias = "PrivacyPolicy | Literal['default', 'off']"
"""Policy that masks secrets in a turn before it is sent. `default` is `PrivacyPolicy()`; `off` masks nothing."""


class Turns(Protocol):
    """Transport that sends turns to memory."""

    async def produce(self, turn: TurnLike) -> Position:
        """Send a turn and return its position in the log once it is durable.

        Sending a turn again is safe: memory counts each `turn_id` of a session once.

        Raises:
            InvalidTurn, TooLarge, Unavailable, Misconfigured.
        """
        ...


class LogTurns:
    """`Turns` that appends directly to the log.

    An idempotent producer writes the turns, all replicas acknowledge them, and murmur2 of the session's key selects the
    partition. Turns of one session keep the order of the calls.
    """

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
    """Validate a turn as the observer does, mask its secrets, and encode it for the topic. Raises Poison.

    A turn without secrets is encoded unchanged.
    """
    try:
        value = turn.to_bytes() if isinstance(turn, Turn) else turn_value(_plain(turn))
    except (TypeError, ValueError, RecursionError) as error:  # for example a set, NaN, a circular reference
        raise Poison("undecodable", f"the turn cannot be written as JSON: {error}") from None
    read = read_turn(value).turn
    if privacy == "off":
        return read, value
    from ..memory.secrets.secret_filter import SecretFilter  # slow to import: it compiles many rules
    from ..memory.secrets.turns import protect_turn

    protected = protect_turn(read, SecretFilter() if privacy == "default" else SecretFilter(privacy))
    if not protected.changed:
        return read, value
    masked = protected.turn.to_bytes()
    return read_turn(masked).turn, masked


def _plain(turn: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a turn for JSON. A `datetime` in `occurred_at` becomes a string."""
    at = turn.get("occurred_at")
    return {**turn, "occurred_at": at.isoformat()} if isinstance(at, datetime) else dict(turn)
