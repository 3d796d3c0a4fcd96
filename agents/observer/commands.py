"""Commands on a session: their status and results, and the reminder that the observer sends to itself."""

from __future__ import annotations

from datetime import datetime, timedelta

from pydantic import JsonValue, ValidationError

from ...memory.policies import MemoryPolicy, TiersPolicy
from ...schemas import ids
from ...schemas.base import REASON_MAX, Contract, explain
from ...schemas.command_kinds import KINDS, CommandKind, command_kind
from ...schemas.commands import (
    Command,
    CommandResult,
    FlushImportant,
    ResultError,
    ResultStatus,
    SessionRef,
)
from ...schemas.outcomes import OutRecord
from ...schemas.topics import COMMANDS_SESSION
from ...streams.senders.commands import command_record, result_record
from ..common.tier_gate import refusal_by_tier
from .flush import flushed
from .reminders import SessionReminder
from .rows import SessionRow

SOURCE = "/memstream/observer"
REMINDER_LASTS = timedelta(days=7)
"""Lifetime of a reminder, equal to the retention of its topic."""


def command_refusal(command: Command, tiers: TiersPolicy) -> ResultError | None:
    """Return the reason to refuse a command, or None when it is accepted."""
    kind = command_kind("session", command.kind)
    if kind is None:
        known = ", ".join(sorted(each.name for each in KINDS if each.address == "session"))
        message = f"{COMMANDS_SESSION.name} takes the kinds {known}, not {command.kind!r}"
        return ResultError(code="unknown_kind", message=message[:REASON_MAX])
    args = refusal_by_tier(command, tiers) or _args(kind, command)
    return args if isinstance(args, ResultError) else None


def edit_args(command: Command, tiers: TiersPolicy) -> Contract:
    """Return the arguments of an edit, or the reason for its refusal."""
    kind = command_kind("session", command.kind)
    assert kind is not None  # the catalogue of edits contains it
    args = refusal_by_tier(command, tiers) or _args(kind, command)
    assert args is not None  # an edit has arguments
    return args


def _args(kind: CommandKind, command: Command) -> Contract | None:
    """Return a command's arguments, the reason why they are invalid, or None for a kind without arguments."""
    try:
        return None if kind.args is None else kind.args.from_payload(command.args)
    except ValidationError as error:
        return ResultError(code="invalid_args", message=explain(error)[:REASON_MAX])


def status_of(command: Command, tiers: TiersPolicy, *, now: datetime) -> ResultStatus:
    if command_refusal(command, tiers) is not None:
        return "refused"
    expired = command.expires_at is not None and command.expires_at < now
    return "expired" if expired else "applied"


def answer_records(
    command: Command, session: SessionRow, policy: MemoryPolicy, *, now: datetime
) -> tuple[OutRecord, ...]:
    """Return the records that answer a command. The last record is the result. The records before it are the commands
    to the reflector that a flush causes.

    `session`: the row after the command was executed. The result contains the session's number of waiting turns.
    """
    status = status_of(command, policy.tiers, now=now)
    result_fields: dict[str, JsonValue] = {"waiting": session.waiting}
    commands: tuple[Command, ...] = ()
    if command.kind == "flush_important" and status == "applied":
        requested = FlushImportant.from_payload(command.args).threshold
        threshold = policy.session_log.flush_threshold if requested is None else requested
        done = flushed(session, command, threshold=threshold, issued_by=SOURCE, now=now)
        commands = done.commands
        result_fields["entries"], result_fields["left"] = done.entries, done.left
        result_fields["command_ids"] = [each.command_id for each in commands]
    result = CommandResult(
        command_id=command.command_id,
        status=status,
        error=command_refusal(command, policy.tiers),
        at=now,
        result=result_fields,
    )
    answer = result_record(result, of=command, source=SOURCE)
    return (*(command_record(each, source=SOURCE) for each in commands), answer)


def reminder_record(session_key: str, reminder: SessionReminder, *, now: datetime) -> OutRecord:
    """Return the command `observe` for a session. Every worker derives the same id for the same reminder."""
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
    return command_record(command, source=SOURCE)
