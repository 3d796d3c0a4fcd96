"""The rows of the table ledger: one an owner, and a small one for each (owner, session).

The reflector is their only writer. The session's row is written after the owner's, to the same partition: what it
says was done was done.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...schemas.outcomes import Outcome
from ...streams.engine.handler import Rows
from ..common.seen_ids import SeenIds
from ..common.stored_row import StoredRow

Count = Annotated[int, Field(ge=0)]


class LedgerRow(StoredRow):
    """All that the reflector knows of an owner: what it did last, and which commands it has seen."""

    turns: Count = 0
    """Reflected turns."""
    episodes: Count = 0
    """Episodes recorded."""
    changes: Count = 0
    """Events on memory.facts.updated."""
    commands: SeenIds = SeenIds()
    """The last 1 000 command ids."""
    last: Outcome | None = None


class ReflectedTurns(StoredRow):
    """How far a session's turns are reflected."""

    turn_number: Count = 0


def session_row_key(owner_key: str, session_key: str) -> str:
    """An owner key has three parts, this has six: the two kinds never meet."""
    return f"{owner_key}/{session_key}"


def owner_row(rows: Rows, owner_key: str) -> LedgerRow:
    raw = rows.row(owner_key)
    return LedgerRow() if raw is None else LedgerRow.read(raw)


def turns_of(rows: Rows, owner_key: str, session_key: str) -> int:
    """Number of the session's last turn that was reflected for this owner; 0: none."""
    raw = rows.row(session_row_key(owner_key, session_key))
    return 0 if raw is None else ReflectedTurns.read(raw).turn_number
