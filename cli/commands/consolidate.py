"""`memstream consolidate`: makes facts of a user's episodes now, whatever the guard has counted."""

from __future__ import annotations

import click

from ...schemas.turns import Owner
from .. import options, output
from ..context import CommandContext, pass_context, run
from ..errors import Exit
from ..runs import Run, ran


@click.command()
@options.tenant
@click.option("--user", type=options.GIVEN_ID, required=True, help="Whose episodes.")
@options.as_json
@pass_context
def consolidate(context: CommandContext, tenant: str, user: str, as_json: bool) -> None:
    """Make facts of a user's episodes now, and wait for the changes (at most 60 s).

    Exit 1 when it was refused or failed, or when something is still on its way.
    """
    owner = Owner(scope="user", id=user)
    told(run(ran("consolidate", context.settings, context.policy, tenant=tenant, owner=owner)), as_json)


def told(done: Run, as_json: bool) -> None:
    if as_json:
        output.line(done.payload())
    else:
        click.echo(f"{done.status}: {done.episodes} episodes, {len(done.changes)} changes (run {done.run_id})")
        for change in done.changes:
            if isinstance(change, dict):
                click.echo(f"  {change.get('action')} {change.get('fact_id') or ''}: {change.get('verdict')}")
    if done.why:
        output.advice(done.why)
    if not done.complete or done.status != "applied":
        raise SystemExit(Exit.PARTLY)
