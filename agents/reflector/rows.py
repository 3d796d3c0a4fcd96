"""The rows of the table ledger: one for each owner, and a small one for each (owner, session).

The reflector is their only writer. It writes the session's row after the owner's row, to the same partition, so a turn
that a session's row counts is reflected.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...streams.engine.handler import Rows
from ..common.commanded_row import CommandedRow
from ..common.turn_numbers import HandledTurns

Count = Annotated[int, Field(ge=0)]


class LedgerRow(CommandedRow):
    """The state of one owner."""

    turns: Count = 0
    """Reflected turns."""
    episodes: Count = 0
    """Episodes that were ever recorded."""
    changes: Count = 0
    """Events on memory.facts.updated."""


class ReflectedTurns(HandledTurns):
    """Which turns of a session are reflected for an owner."""


def session_row_key(owner_key: str, session_key: str) -> str:
    """An owner key has three parts, this key has six, so they cannot be equal."""
    return f"{owner_key}/{session_key}"


def turns_of(rows: Rows, owner_key: str, session_key: str) -> ReflectedTurns:
    """Return the session's turns that were reflected for this owner."""
    return ReflectedTurns.load(rows, session_row_key(owner_key, session_key))
