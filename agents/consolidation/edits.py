"""Edits by hand that consolidation applies: one function a kind of command. Nothing is written here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from ...memory.policies import MemoryPolicy
from ...memory.secrets.secret_filter import SecretFilter
from ...schemas.base import REASON_MAX, Contract, explain
from ...schemas.command_kinds import command_kind
from ...schemas.commands import Command, ResultError
from ...schemas.outcomes import Write
from ...schemas.turns import Owner
from ...streams.engine.handler import Rows
from .owner_reads import OwnerReader


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepEditScope:
    """What an edit may read. `rows`: the partition of the owner."""

    command: Command
    owner: Owner
    owner_key: str
    reader: OwnerReader
    rows: Rows
    policy: MemoryPolicy
    secrets: SecretFilter
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepEditResult:
    """The effects of an edit, or why it is refused."""

    result: Contract | ResultError
    writes: tuple[Write, ...] = ()


UpkeepEdit = Callable[[Any, UpkeepEditScope], Awaitable[UpkeepEditResult]]
"""Takes the arguments of its kind."""
EDITS: Final[Mapping[str, UpkeepEdit]] = {}
"""By kind of command."""


def is_edit(kind: str) -> bool:
    """Tell whether a kind is an edit by hand; the others make a run."""
    known = command_kind("owner", kind)
    return known is not None and known.writer == "consolidation" and known.result is not None


def args_of(command: Command) -> Contract:
    """Return the arguments of an edit, or why it is refused."""
    kind = command_kind("owner", command.kind)
    if kind is None or kind.args is None or command.kind not in EDITS:
        return ResultError(code="unknown_kind", message=f"no stage knows the kind {command.kind!r}"[:REASON_MAX])
    try:
        return kind.args.from_payload(command.args)
    except ValidationError as error:
        return ResultError(code="invalid_args", message=explain(error)[:REASON_MAX])


def refused(code: str, message: str) -> UpkeepEditResult:
    return UpkeepEditResult(result=ResultError(code=code, message=message))
