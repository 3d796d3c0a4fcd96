"""What the commands share that have something done to a user's memory, now, and wait for it."""

from __future__ import annotations

from collections.abc import Mapping

import click
from pydantic import JsonValue

from ...schemas.turns import Owner
from ..context import CommandContext, run
from ..errors import Exit
from ..wiring.command_runs import CommandRun, Kind, ran
from . import console

NOTHING: Mapping[str, JsonValue] = {}


def asked(
    context: CommandContext, kind: Kind, *, tenant: str, user: str, args: Mapping[str, JsonValue] = NOTHING
) -> CommandRun:
    owner = Owner(scope="user", id=user)
    return run(ran(kind, context.settings, context.policy, tenant=tenant, owner=owner, args=args))


def tell_changes(done: CommandRun, *, as_json: bool) -> None:
    """What it proposed, and what became of that."""
    if as_json:
        console.line(done.payload())
    else:
        click.echo(f"{done.status}: {done.episodes} episodes, {len(done.changes)} changes (run {done.run_id})")
        for change in done.changes:
            assert isinstance(change, dict)
            click.echo(f"  {change['action']} {change['fact_id'] or ''}: {change['verdict']}")
    end(done)


def tell_counts(done: CommandRun, *, as_json: bool) -> None:
    """What its parts did, in numbers."""
    if as_json:
        console.line({**done.payload(), **done.counts})
    else:
        counts = ", ".join(f"{name} {n}" for name, n in done.counts.items())
        click.echo(f"{done.status}: {counts or 'nothing to do'} (run {done.run_id})")
    end(done)


def end(done: CommandRun, *left: str) -> None:
    """Exit 1 when it was refused or failed, is not at its end yet, or has left something, which `left` tells."""
    for line in (done.why, *left):
        if line:
            console.advice(line)
    if not done.complete or done.status != "applied" or any(left):
        raise SystemExit(Exit.PARTLY)
