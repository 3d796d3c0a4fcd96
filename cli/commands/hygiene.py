"""`memstream hygiene`: a visit of the janitor to a user's memory, now."""

from __future__ import annotations

from collections.abc import Mapping

import click
from pydantic import JsonValue

from ...schemas.turns import Owner
from .. import options, output
from ..context import CommandContext, pass_context, run
from ..errors import Exit
from ..runs import Run, ran


@click.command()
@options.tenant
@click.option("--user", type=options.GIVEN_ID, required=True, help="Whose memory.")
@options.as_json
@pass_context
def hygiene(context: CommandContext, tenant: str, user: str, as_json: bool) -> None:
    """Cull what is over in a user's memory and flag what is old, and wait for it (at most 60 s).

    Exit 1 when it was refused or failed, or when something is still on its way.
    """
    told(asked(context, tenant, user, {}), as_json)


def asked(context: CommandContext, tenant: str, user: str, args: Mapping[str, JsonValue]) -> Run:
    owner = Owner(scope="user", id=user)
    return run(ran("hygiene", context.settings, context.policy, tenant=tenant, owner=owner, args=args))


def told(done: Run, as_json: bool) -> None:
    if as_json:
        output.line({**done.payload(), **done.counts})
    else:
        counts = ", ".join(f"{name} {n}" for name, n in done.counts.items())
        click.echo(f"{done.status}: {counts or 'nothing to do'} (run {done.run_id})")
    if done.why:
        output.advice(done.why)
    if not done.complete or done.status != "applied":
        raise SystemExit(Exit.PARTLY)
