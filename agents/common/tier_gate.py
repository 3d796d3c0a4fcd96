"""Refusal of commands that work on a disabled memory tier."""

from __future__ import annotations

from ...memory.policies import TiersPolicy
from ...schemas.command_kinds import command_kind
from ...schemas.commands import Command, ResultError


def refusal_by_tier(command: Command, tiers: TiersPolicy) -> ResultError | None:
    """Return the reason to refuse a command, or None when its tier is enabled."""
    kind = command_kind("session" if command.owner is None else "owner", command.kind)
    if kind is None or kind.tier is None or tiers.keeps(kind.tier):
        return None
    message = f"{kind.name} works on the tier {kind.tier}, which is off: memory.tiers.{kind.tier}"
    return ResultError(code="tier_off", message=message)
