"""Manual edits that consolidation applies, by kind of command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError

from ....schemas.base import REASON_MAX, Contract, explain
from ....schemas.command_kinds import ERASE_EPISODES, RETRACT_EPISODES, command_kind
from ....schemas.commands import Command, ResultError
from . import episodes, procedures, restore, session_erasure
from .scope import UpkeepEdit

EDITS: Final[Mapping[str, UpkeepEdit]] = {
    "episodes.update": episodes.update,
    "episodes.forget": episodes.forget,
    "episodes.merge": episodes.merge,
    "episodes.mark_consolidated": episodes.mark_consolidated,
    "procedures.define": procedures.define,
    "procedures.remove": procedures.remove,
    RETRACT_EPISODES: episodes.retract_episodes,
    ERASE_EPISODES: session_erasure.erase_episodes,
    "restore.upkeep": restore.restore,
}


def is_edit(kind: str) -> bool:
    """Return whether a kind is a manual edit. All other kinds cause a run."""
    known = command_kind("owner", kind)
    return known is not None and known.writer == "consolidation" and known.result is not None


def args_of(command: Command) -> Contract:
    """Return the arguments of an edit, or the reason for its refusal."""
    kind = command_kind("owner", command.kind)
    if kind is None or kind.args is None or command.kind not in EDITS:
        return ResultError(code="unknown_kind", message=f"no stage knows the kind {command.kind!r}"[:REASON_MAX])
    try:
        return kind.args.from_payload(command.args)
    except ValidationError as error:
        return ResultError(code="invalid_args", message=explain(error)[:REASON_MAX])
