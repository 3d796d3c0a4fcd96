"""Rows of the table ledger: one row per owner, and one small row per owner and session.

Only the reflector writes this table. It writes the session's row after the owner's row, to the same partition. So every
turn counted in a session's row is reflected.
"""

from __future__ import annotations

import operator
from typing import Annotated, Self

from pydantic import Field

from ...streams.engine.decision import Rows
from ..common.commanded_row import CommandedRow
from ..common.seen_ids import SeenIds
from ..common.turn_numbers import HandledTurns
from .forget_requests import ForgetRequest

Count = Annotated[int, Field(ge=0)]


class LedgerRow(CommandedRow):
    """The state of one owner."""

    turns: Count = 0
    """Number of reflected turns."""
    episodes: Count = 0
    """Number of episodes ever recorded."""
    changes: Count = 0
    """Number of events on memory.facts.updated."""
    requests: Annotated[tuple[ForgetRequest, ...], Field(exclude_if=operator.not_)] = ()
    """Requests to forget, for statements that arrive later. The oldest request is first."""


class ReflectedTurns(HandledTurns):
    """The turns of a session that are reflected for an owner."""

    retracted: Annotated[SeenIds, Field(exclude_if=operator.not_)] = SeenIds()
    """The last 1 000 turns that were taken back. Their observations have no effect."""
    erased: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """True when the session was erased. No turn of it has an effect."""

    def took_back(self, turn_id: str) -> bool:
        """Return whether the turn, or the whole session, was taken back."""
        return self.erased or turn_id in self.retracted

    def with_retracted(self, turn_id: str) -> Self:
        return self.model_copy(update={"retracted": self.retracted.add(turn_id)})


def session_row_key(owner_key: str, session_key: str) -> str:
    """Return the row key. It has six parts; an owner key has three."""
    return f"{owner_key}/{session_key}"


def turns_of(rows: Rows, owner_key: str, session_key: str) -> ReflectedTurns:
    """Return the session's turns that were reflected for this owner."""
    return ReflectedTurns.load(rows, session_row_key(owner_key, session_key))


def is_retracted(rows: Rows, owner_key: str, session_key: str, turn_id: str) -> bool:
    """Return whether a turn of the session, or the whole session, was taken back for this owner."""
    return turns_of(rows, owner_key, session_key).took_back(turn_id)
