"""Sender of edits of memory. It sends each edit as a command, waits for the result, and writes the audit trail. The
command line, HTTP and the tools use it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ..memory.secrets.commands import protect_command
from ..memory.secrets.secret_filter import SecretFilter
from ..schemas import ids
from ..schemas.base import Contract
from ..schemas.command_kinds import Address, CommandKind, command_kind
from ..schemas.commands import Command, CommandResult, ResultError, SessionRef
from ..schemas.turns import Owner
from ..streams.senders.commands import CommandPort
from .audit import audit

IDEMPOTENCY_KEY_MAX: Final = 128
"""Maximum length of an idempotency key, in code points."""


RECORD_IDS: Final = ("fact_id", "episode_id", "entry_id", "task_id", "procedure_id", "turn_id")
"""Id fields of arguments and results that the audit trail records."""


class EditRefused(Exception):
    """An edit that the stage did not apply. `code`: the code of the result. The message says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class EditTarget:
    """The target of an edit: an owner or a session of a tenant."""

    tenant_id: str
    owner: Owner | None = None
    session: SessionRef | None = None

    def __post_init__(self) -> None:
        if (self.owner is None) == (self.session is None):
            raise ValueError("an edit needs an owner or a session, and not both")

    @property
    def address(self) -> Address:
        return "owner" if self.session is None else "session"

    @property
    def audited_owner(self) -> Owner:
        """The owner in the audit trail: the owner of the target, or the user of its session."""
        if self.owner is not None:
            return self.owner
        assert self.session is not None  # checked in __post_init__
        return Owner(scope="user", id=self.session.user_id)


@dataclass(frozen=True, slots=True)
class EditAnswer:
    """The result of an edit. `result`: None when the edit was not applied in time; the command then waits in the
    log."""

    command_id: str
    result: Contract | None


@dataclass(frozen=True, slots=True)
class ProtectedCommands:
    """A `CommandPort` that masks secrets in a command before the command is written to the log. The stages mask secrets
    again, because other producers write commands, too."""

    inner: CommandPort
    secrets: SecretFilter

    async def ask(self, command: Command, *, patience: float) -> CommandResult | None:
        return await self.inner.ask(protect_command(command, self.secrets), patience=patience)


class MemoryEditor:
    """A sender of edits that masks secrets in the edits. `now`: the clock of `issued_at`."""

    def __init__(
        self, *, commands: CommandPort, now: Callable[[], datetime], secrets: SecretFilter | None = None
    ) -> None:
        self._commands = ProtectedCommands(commands, secrets or SecretFilter())
        self._now = now

    async def edit(
        self,
        kind: str,
        args: Contract,
        *,
        target: EditTarget,
        caller: str,
        patience: float,
        idempotency_key: str | None = None,
    ) -> EditAnswer:
        """Send an edit and wait for its result, at most `patience` seconds.

        Args:
            caller: name of the caller, for the audit trail and the command's `issued_by`.
            idempotency_key: a repeated request with the same key, kind and target is applied once.

        Raises:
            EditRefused: the stage refused the edit, or the edit failed.
            Transient: the log does not answer. The edit may be in the log or not.
        """
        known = command_kind(target.address, kind)
        assert known is not None, kind  # callers name edits of the catalogue
        command = self._command(known, args, target, caller, idempotency_key)
        status, fields = "failed", dict(command.args)
        try:
            result = await self._commands.ask(command, patience=patience)
            status = "accepted" if result is None else result.status
            fields |= {} if result is None else result.result or {}
        finally:
            audit(
                kind,
                who=caller,
                tenant_id=target.tenant_id,
                owner=target.audited_owner,
                result=status,
                command_id=command.command_id,
                session_id=None if target.session is None else target.session.session_id,
                **{name: str(fields[name]) for name in RECORD_IDS if fields.get(name) is not None},
            )
        return EditAnswer(command.command_id, None if result is None else _applied(known, result))

    def _command(
        self, kind: CommandKind, args: Contract, target: EditTarget, caller: str, idempotency_key: str | None
    ) -> Command:
        command = Command(
            command_id=str(uuid.uuid4()),
            kind=kind.name,
            tenant_id=target.tenant_id,
            owner=target.owner,
            session=target.session,
            args=args.to_payload(),
            issued_by=caller[:128],
            issued_at=self._now(),
        )
        if idempotency_key is None:
            return command
        derived = ids.edit_command_id(command.key, kind.name, idempotency_key)
        request = ids.request_hash(command.args, idempotency_key)
        return command.model_copy(update={"command_id": derived, "request_hash": request})


def _applied(kind: CommandKind, result: CommandResult) -> Contract:
    """Read the result of an applied edit. Raises EditRefused."""
    if result.status != "applied" or result.result is None:
        error = result.error or ResultError(code=result.status, message=f"the command {result.status}")
        raise EditRefused(error.code, error.message)
    assert kind.result is not None  # every edit has a result
    return kind.result.from_payload(result.result)
