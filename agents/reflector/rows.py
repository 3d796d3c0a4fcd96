"""Rows of the table ledger: one row per owner, and one small row per owner and session.

Only the reflector writes this table. It writes the session's row after the owner's row, to the same partition. So every
turn counted in a session's row is reflected.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...streams.engine.decision import Rows
from ..common.commanded_row import CommandedRow
from ..common.turn_numbers import HandledTurns

Count = Annotated[int, Field(ge=0)]


class LedgerRow(CommandedRow):
    """The state of one owner."""

    turns: Count = 0
    """Number of reflected turns."""
    episodes: Count = 0
    """Number of episodes ever recorded."""
    changes: Count = 0
    """Number of events on memory.facts.updated."""


class ReflectedTurns(HandledTurns):
    """The turns of a session that are reflected for an owner."""


def session_row_key(owner_key: str, session_key: str) -> str:
    """Return the row key. It has six parts; an owner key has three."""
    return f"{owner_key}/{session_key}"


def turns_of(rows: Rows, owner_key: str, session_key: str) -> ReflectedTurns:
    """Return the session's turns that were reflected for this owner."""
    return ReflectedTurns.load(rows, session_row_key(owner_key, session_key))
