"""Expiry of a session's row: removal of its outcome, deletion of the row, and the epoch of a session that returns.

The observer sends itself a command for an old row (agents/common/session_ends.py): first `sessions.trim`, later
`sessions.end`. The command runs in the session's lane, so no event of the session is active, and all effects of the
last outcome are applied.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime

from pydantic import JsonValue

from ...schemas import ids
from ...schemas.collections import HOLDINGS, WORKING
from ...schemas.command_kinds import END_SESSION, TRIM_SESSION
from ...schemas.commands import Command, SessionEnd, SessionRef
from ...schemas.outcomes import DeletePoints, Outcome, OutRecord, Source
from ...schemas.row_keys import SESSION_EPOCHS
from ...schemas.session_epochs import SessionEpochs
from ...streams.engine.decision import Rows, StageDecision
from ...streams.engine.parking import is_parked
from ...streams.senders.commands import command_record
from ..common.session_ends import ENDS, TRIMS, SessionEnds, timed_key
from ..common.stored_row import EPOCH_VERSION
from .commands import SOURCE
from .rows import SessionRow, Sessions, waiting_index

SESSION_SLASHES = 2
"""Slashes in a session key of three parts."""


def session_in_epoch(sessions: Sessions, rows: Rows, key: str, partition: int) -> SessionRow:
    """Return the session as stored in the table. Raises LaterVersion.

    A session starts in the partition's current epoch when it has no row, or when its row may be older than its
    published records.
    """
    raw = rows.row(key)
    session = sessions.parsed(key, raw)
    epochs = SessionEpochs.read(rows.row(SESSION_EPOCHS, partition=partition))
    if raw is not None and session.epoch >= epochs.renumber_before:
        return session
    version = EPOCH_VERSION if epochs.next else session.row_version
    return session.model_copy(update={"epoch": epochs.next, "turns": 0, "row_version": version})


async def leave_epoch(session: SessionRow, rows: Rows, partition: int) -> int:
    """Ensure that turns recorded after this row's deletion get a later epoch. Return the epoch of new rows.

    The change is durable on return. Raises the errors of `Rows.put`.
    """
    epochs = SessionEpochs.read(rows.row(SESSION_EPOCHS, partition=partition))
    if epochs.next <= session.epoch:
        epochs = epochs.above(session.epoch)
        await rows.put({SESSION_EPOCHS: epochs.to_bytes()}, partition=partition)
    return epochs.next


def ended(session: SessionRow, key: str, *, source: Source, epoch: int) -> StageDecision:
    """Return the decision that first deletes the data that readers see, and then the session's row.

    The row of an erased session, or of a session with retracted turns, stays with the marker or the hashes of these
    turns only, because what was taken back has no effect even if it arrives years later. `epoch`: the epoch of its next
    turns.
    """
    tenant_id = ids.split(key)[0]
    entries = tuple(entry.entry_id for entry in session.working.entries)
    working = (DeletePoints(collection=WORKING, tenant_id=tenant_id, ids=entries),) if entries else ()
    holdings = DeletePoints(collection=HOLDINGS, tenant_id=tenant_id, ids=(ids.holdings_id(key),))
    outcome = Outcome(source=source, writes=(*working, holdings), tenant_id=tenant_id)
    if not session.stays:
        return StageDecision(outcome.model_copy(update={"cleanup": (key,)}))
    return session.remembering_retractions(epoch).decision(key, outcome)


def trimmed(session: SessionRow, key: str, *, source: Source) -> StageDecision:
    """Return the decision that removes the outcome from the session's row.

    The row then has no outcome, not even the outcome of this command. A redelivered event is recognised by its id
    alone.
    """
    return StageDecision(Outcome(source=source, tenant_id=ids.split(key)[0]), key, session.trimmed().to_bytes())


def observed_sessions_index(now: Callable[[], datetime]) -> Callable[[str, bytes], Iterable[str]]:
    """Return a function that finds the index rows needed by a row of an earlier version.

    Index rows for expiry get the present time.
    """
    at = int(now().timestamp())

    def indexed(key: str, raw: bytes) -> Iterable[str]:
        if key.count("/") != SESSION_SLASHES:
            return waiting_index(key, raw)
        return (timed_key(ENDS, key, at), timed_key(TRIMS, key, at))

    return indexed


async def send_to_old_rows(
    ends: SessionEnds,
    partition: int,
    rows: Rows,
    *,
    send_durably: Callable[[OutRecord], Awaitable[None]],
    now: Callable[[], datetime],
) -> None:
    """Send a command for each old row of a partition.

    Parked rows stay unchanged. A session with waiting turns does not expire. Index rows of trimmed rows are deleted.
    """

    def last_at(raw: bytes) -> int:
        return SessionRow.read(raw).last_at

    async def end(entry: str, key: str, last_at: int) -> None:
        raw = rows.row(key, partition=partition)
        if raw is None or is_parked(raw):
            return
        row = SessionRow.read(raw)
        if row.has_ended:
            await rows.put({entry: None}, partition=partition)
        elif not row.waiting:
            args = SessionEnd(last_at=last_at).to_payload()
            await send_durably(_command(END_SESSION, ids.session_end_id(key, last_at), key, args, now=now()))

    async def trim(entry: str, key: str, last_at: int) -> None:
        raw = rows.row(key, partition=partition)
        if raw is None or is_parked(raw):
            return
        if SessionRow.read(raw).last is None:
            await rows.put({entry: None}, partition=partition)
        else:
            await send_durably(_command(TRIM_SESSION, ids.session_trim_id(key, last_at), key, {}, now=now()))

    await ends.look(partition, rows, last_at=last_at, old=trim, index=TRIMS)
    await ends.look(partition, rows, last_at=last_at, old=end)


def _command(kind: str, command_id: str, key: str, args: dict[str, JsonValue], *, now: datetime) -> OutRecord:
    tenant_id, user_id, session_id = ids.split(key)
    command = Command(
        command_id=command_id,
        kind=kind,
        tenant_id=tenant_id,
        session=SessionRef(user_id=user_id, session_id=session_id),
        args=args,
        issued_by=SOURCE,
        issued_at=now,
    )
    return command_record(command, source=SOURCE)
