"""The end of a session's row, and the epoch in which a session that comes back begins.

The observer sends itself a command `sessions.end` for a row that is old (agents/common/session_ends.py). It has its
place in the session's lane, so no event of the session is under way, and the last outcome has all of its effects.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime

from ...schemas import ids
from ...schemas.collections import HOLDINGS, WORKING
from ...schemas.command_kinds import END_SESSION
from ...schemas.commands import Command, SessionEnd, SessionRef
from ...schemas.outcomes import DeletePoints, Outcome, OutRecord, Source
from ...schemas.row_keys import SESSION_EPOCHS, index_key
from ...schemas.session_epochs import SessionEpochs
from ...streams.engine.commands import command_record
from ...streams.engine.handler import Rows, StageDecision
from ...streams.engine.parking import is_parked
from ..common.session_ends import SessionEnds, ends_kind
from ..common.stored_row import EPOCH_VERSION
from .commands import SOURCE
from .rows import SessionRow, Sessions, waiting_index

SESSION_SLASHES = 2
"""A session key has three parts."""


def session_in_epoch(sessions: Sessions, rows: Rows, key: str, partition: int) -> SessionRow:
    """Return the session as the table has it. One without a row begins in the partition's epoch, and so does one whose
    row may be older than what was sent of it. Raises LaterVersion."""
    raw = rows.row(key)
    session = sessions.parsed(key, raw)
    epochs = SessionEpochs.read(rows.row(SESSION_EPOCHS, partition=partition))
    if raw is not None and session.epoch >= epochs.renumber_before:
        return session
    version = EPOCH_VERSION if epochs.next else session.row_version
    return session.model_copy(update={"epoch": epochs.next, "turns": 0, "row_version": version})


async def leave_epoch(session: SessionRow, rows: Rows, partition: int) -> None:
    """Make sure that what comes after this row is of a later epoch. Durable when it returns. Raises as `Rows.put`."""
    epochs = SessionEpochs.read(rows.row(SESSION_EPOCHS, partition=partition))
    if epochs.next <= session.epoch:
        await rows.put({SESSION_EPOCHS: epochs.above(session.epoch).to_bytes()}, partition=partition)


def ended(session: SessionRow, key: str, *, source: Source) -> StageDecision:
    """The session's row goes, after what readers see of it."""
    tenant_id = ids.split(key)[0]
    entries = tuple(entry.entry_id for entry in session.working.entries)
    working = (DeletePoints(collection=WORKING, tenant_id=tenant_id, ids=entries),) if entries else ()
    holdings = DeletePoints(collection=HOLDINGS, tenant_id=tenant_id, ids=(ids.holdings_id(key),))
    return StageDecision(Outcome(source=source, writes=(*working, holdings), cleanup=(key,), tenant_id=tenant_id))


def sessions_index(now: Callable[[], datetime]) -> Callable[[str, bytes], Iterable[str]]:
    """Return what finds the index rows that a row of an earlier version needs. Its session counts as written now."""
    kind = ends_kind(int(now().timestamp()))
    return lambda key, raw: (index_key(kind, key),) if key.count("/") == SESSION_SLASHES else waiting_index(key, raw)


async def send_ends(
    ends: SessionEnds,
    partition: int,
    rows: Rows,
    *,
    send_durably: Callable[[OutRecord], Awaitable[None]],
    now: Callable[[], datetime],
) -> None:
    """Send a command for each old row of a partition. Turns that wait, and a parked key, keep their session."""

    def last_at(raw: bytes) -> int:
        return SessionRow.read(raw).last_at

    async def end(entry: str, key: str, last_at: int) -> None:
        raw = rows.row(key, partition=partition)
        if raw is not None and not is_parked(raw) and not SessionRow.read(raw).waiting:
            await send_durably(_end_command(key, last_at, now=now()))

    await ends.look(partition, rows, last_at=last_at, end=end)


def _end_command(key: str, last_at: int, *, now: datetime) -> OutRecord:
    tenant_id, user_id, session_id = ids.split(key)
    command = Command(
        command_id=ids.session_end_id(key, last_at),
        kind=END_SESSION,
        tenant_id=tenant_id,
        session=SessionRef(user_id=user_id, session_id=session_id),
        args=SessionEnd(last_at=last_at).to_payload(),
        issued_by=SOURCE,
        issued_at=now,
    )
    return command_record(command, source=SOURCE)
