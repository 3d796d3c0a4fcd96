"""`memstream approve FACT_ID` and `memstream reject FACT_ID`: decide on a quarantined or pending fact."""

from __future__ import annotations

from typing import Literal

import click

from ...schemas.commands import CommandResult
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import PATIENCE, CommandFailed, Exit
from ..output import console
from ..wiring.command_runs import WAITING, reviewed

ReviewKind = Literal["facts.approve", "facts.reject"]


@click.command()
@click.argument("fact_id")
@options.tenant
@options.reason
@options.as_json
@pass_context
def approve(context: CommandContext, fact_id: str, tenant: str, reason: str, as_json: bool) -> None:
    """Approve a quarantined or pending fact: memory believes it from now on.

    `memstream show facts --state quarantined` (or pending) lists facts that wait. Approving a pending fact closes the
    fact that it waits for, and every fact that it contradicts. Exit 1 if the fact is in another state, or if the
    approval is not applied within 60 s.
    """
    _decide(context, "facts.approve", fact_id, tenant=tenant, reason=reason, as_json=as_json)


@click.command()
@click.argument("fact_id")
@options.tenant
@options.reason
@options.as_json
@pass_context
def reject(context: CommandContext, fact_id: str, tenant: str, reason: str, as_json: bool) -> None:
    """Reject a quarantined or pending fact: it is forgotten. No read returns it any more; the log keeps it.

    Exit 1 if the fact is in another state, or if the rejection is not applied within 60 s.
    """
    _decide(context, "facts.reject", fact_id, tenant=tenant, reason=reason, as_json=as_json)


def _decide(
    context: CommandContext, kind: ReviewKind, fact_id: str, *, tenant: str, reason: str, as_json: bool
) -> None:
    found = run(reviewed(kind, context.settings, context.policy, tenant=tenant, fact_id=fact_id, reason=reason))
    if found is None:
        raise CommandFailed(
            Exit.PARTLY,
            f"tenant {tenant} has no fact {fact_id}: `memstream show facts --state quarantined` (or pending) has ids",
        )
    command_id, result = found
    outcome = (result.result or {}) if result is not None else {}
    status = WAITING if result is None else result.status
    if as_json:
        state, changed = outcome.get("state"), outcome.get("changed_fact_ids", [])
        console.line(
            {
                "command_id": command_id,
                "status": status,
                "fact_id": fact_id,
                "state": state,
                "changed_fact_ids": changed,
            }
        )
    elif result is not None and result.status == "applied":
        console.say(f"fact {fact_id} is {outcome.get('state')}")
    if status != "applied":
        raise CommandFailed(Exit.PARTLY, _why(result))


def _why(result: CommandResult | None) -> str:
    if result is None:
        return f"no result within {PATIENCE:.0f} s; the command waits in the log"
    return result.error.message if result.error is not None else result.status
