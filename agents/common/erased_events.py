"""Events of erased users: the stages ignore them (docs/design/erasure.md)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ...memory.erasures import ErasedUsers
from ...schemas.command_kinds import ERASING, RESTORING
from ...schemas.commands import NO_MARKER, Command, CommandResult, ResultError
from ...schemas.restore import RecordsRestore
from ...schemas.row_keys import partition_key
from ...schemas.turns import Owner
from ...streams.log.port import Record


@dataclass(frozen=True, slots=True)
class Happening:
    """The users of an event, and the time at which it happened; None when only its record has a time."""

    tenant_id: str
    users: tuple[str, ...]
    at: datetime | None
    erases: bool = False
    """True for a command of an erasure. It is never ignored."""


class UserEvent(Protocol):
    """A decoded event of a stage."""

    @property
    def happening(self) -> Happening: ...


def users_of(owner: Owner | None, *users: str) -> tuple[str, ...]:
    """Return the users of an event: the given users, and the owner if it is a user."""
    return (*users, owner.id) if owner is not None and owner.scope == "user" else users


def happening_of_command(command: Command) -> Happening:
    """Return the users that a command names: its owner or session, and the users in its arguments. A restore happens at
    the moment of its export."""
    named: list[object] = [command.args.get("user_id")]
    summaries = command.args.get("summaries")
    if isinstance(summaries, list):
        named += [each.get("user_id") for each in summaries if isinstance(each, dict)]
    if command.session is not None:
        named.append(command.session.user_id)
    users = users_of(command.owner, *(each for each in named if isinstance(each, str)))
    exported_at = RecordsRestore.moment_of(command.args) if command.kind in RESTORING else None
    return Happening(command.tenant_id, users, exported_at or command.issued_at, erases=command.kind in ERASING)


class ErasedEvents:
    """The check that the handler of a stage asks before it handles an event."""

    def __init__(self, erased: ErasedUsers) -> None:
        self._erased = erased

    def ignores(self, work: UserEvent, record: Record) -> bool:
        """Return whether an event has no effect, because it is an event of an erased user."""
        event = work.happening
        times = (event.at, record.written_at)
        return not event.erases and any(self._erased.ignores(event.tenant_id, each, times) for each in event.users)

    def erases(self, work: UserEvent) -> bool:
        """Return whether an event is a command of an erasure."""
        return work.happening.erases


def no_marker(command: Command, *, now: datetime) -> CommandResult:
    """Return the refusal of a command of an erasure without an open marker."""
    message = "this worker knows no open marker of this erasure: memory.erasures must have it first"
    error = ResultError(code=NO_MARKER, message=message)
    return CommandResult(command_id=command.command_id, status="refused", error=error, at=now)


def rows_of_lane(row_keys: Iterable[str], lane: str) -> tuple[str, ...]:
    """Return the keys of rows that the lane of this key may delete."""
    return tuple(key for key in row_keys if partition_key(key) == lane)
