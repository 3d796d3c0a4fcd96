"""Commands of a session: what becomes of one, its result, and the reminder that the observer sends itself."""

from __future__ import annotations

from datetime import datetime, timedelta

from ...schemas import ids
from ...schemas.cloudevents import CloudEvent
from ...schemas.commands import SESSION_KINDS, Command, CommandResult, ResultError, ResultStatus, SessionRef
from ...schemas.outcomes import OutRecord
from ...schemas.topics import COMMANDS_SESSION, RESULTS
from .timers import Reminder

SOURCE = "/memstream/observer"
REMINDER_LASTS = timedelta(days=7)
"""As long as its topic keeps it."""


def status_of(command: Command, *, now: datetime) -> ResultStatus:
    if command.kind not in SESSION_KINDS:
        return "refused"
    expired = command.expires_at is not None and command.expires_at < now
    return "expired" if expired else "applied"


def result_record(command: Command, *, waiting: int, now: datetime) -> OutRecord:
    """`waiting`: how many turns of the session still wait to be observed."""
    status = status_of(command, now=now)
    error = None
    if status == "refused":
        known = ", ".join(sorted(SESSION_KINDS))
        message = f"{COMMANDS_SESSION.name} takes the kinds {known}, not {command.kind!r}"
        error = ResultError(code="unknown_kind", message=message)
    result = CommandResult(
        command_id=command.command_id, status=status, error=error, at=now, result={"waiting": waiting}
    )
    event = CloudEvent(command.command_id, SOURCE, "memstream.command.result.v1", command.key, now)
    return OutRecord.of(RESULTS.name, ids.encode(command.command_id), result, event)


def reminder_record(session_key: str, reminder: Reminder, *, now: datetime) -> OutRecord:
    """`observe` for this session. Its id is the same when another worker sends the same reminder."""
    tenant_id, user_id, session_id = ids.split(session_key)
    command = Command(
        command_id=ids.observe_command_id(session_key, reminder.last_turn_id, reminder.attempt),
        kind="observe",
        tenant_id=tenant_id,
        session=SessionRef(user_id=user_id, session_id=session_id),
        issued_by=SOURCE,
        issued_at=now,
        expires_at=now + REMINDER_LASTS,
    )
    event = CloudEvent(command.command_id, SOURCE, "memstream.command.v1", session_key, now)
    return OutRecord.of(COMMANDS_SESSION.name, session_key, command, event)
