"""Inputs and result of a manual edit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ....memory.policies import MemoryPolicy
from ....memory.secrets.secret_filter import SecretFilter
from ....schemas.base import Contract
from ....schemas.commands import Command, ResultError
from ....schemas.outcomes import Write
from ....schemas.turns import Owner
from ....streams.engine.decision import Rows
from ..owner_reads import OwnerReader
from ..rows import ProgressRow


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepEditScope:
    """The inputs of an edit. `rows`: the stage's table rows on the owner's partition."""

    command: Command
    owner: Owner
    owner_key: str
    reader: OwnerReader
    embed: Callable[[str], Awaitable[Sequence[float]]]
    rows: Rows
    row: ProgressRow
    """The owner's row, with this command."""
    policy: MemoryPolicy
    secrets: SecretFilter
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepEditResult:
    """The effects of an edit, or the reason for its refusal."""

    result: Contract | ResultError
    writes: tuple[Write, ...] = ()
    row: ProgressRow | None = None
    """The owner's changed row; None when the edit does not change it."""


UpkeepEdit = Callable[[Any, UpkeepEditScope], Awaitable[UpkeepEditResult]]
"""An edit function. It takes the arguments of its command kind."""


def refused(code: str, message: str) -> UpkeepEditResult:
    return UpkeepEditResult(result=ResultError(code=code, message=message))
