"""The rows of the table progress: one an owner, and a small one for each (owner, session).

Consolidation is their only writer. The session's row is written after the owner's, to the same partition.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ...memory.consolidation import Counters
from ...schemas.base import Instant
from ...schemas.observations import TokenUsage
from ...schemas.outcomes import Outcome
from ...schemas.turns import Owner
from ...streams.stage import Rows
from ..remembered import Remembered
from ..stored import RowPart, StoredRow

RUNS_KEPT = 20
Count = Annotated[int, Field(ge=0)]
RunStatus = Literal["done", "nothing", "paused", "deferred", "failed"]
"""done: proposals were sent (perhaps none). nothing: there was no episode to look at. paused: the tier forbids the
call. deferred: the model is away; it is tried again. failed: its answer could not be used."""


class RunRecord(RowPart):
    """One run, for whoever asks later why nothing, or this, was proposed."""

    run_id: str
    status: RunStatus
    at: Instant
    episodes: Count = 0
    facts_shown: Count = 0
    changes: Count = 0
    dropped: dict[str, int] = Field(default_factory=dict)
    command_ids: tuple[str, ...] = ()
    model: str | None = None
    prompt: str | None = None
    usage: TokenUsage = TokenUsage()


class Waiting(RowPart):
    """A run that is due and could not be made. `attempt` names the next reminder: no two have one id."""

    tenant_id: str
    owner: Owner
    run_id: str
    attempt: Count = 0


class OwnerRow(StoredRow):
    """All that consolidation knows of an owner."""

    counters: Counters = Counters()
    runs: tuple[RunRecord, ...] = ()
    """The last 20, oldest first."""
    waiting: Waiting | None = None
    commands: Remembered = Remembered()
    """The last 1 000 command ids."""
    last: Outcome | None = None


class SessionTurns(StoredRow):
    """How far a session's turns are counted."""

    turn_number: Count = 0


def session_row_key(owner_key: str, session_key: str) -> str:
    """An owner key has three parts, this has six: the two kinds never meet."""
    return f"{owner_key}/{session_key}"


def is_owner_key(key: str) -> bool:
    return key.count("/") == 2


def owner_row(rows: Rows, owner_key: str) -> OwnerRow:
    raw = rows.row(owner_key)
    return OwnerRow() if raw is None else OwnerRow.read(raw)


def turns_of(rows: Rows, owner_key: str, session_key: str) -> int:
    """Number of the session's last turn that was counted for this owner; 0: none."""
    raw = rows.row(session_row_key(owner_key, session_key))
    return 0 if raw is None else SessionTurns.read(raw).turn_number
