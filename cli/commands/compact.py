"""`memstream compact`: the older turns of a session, told in short, become an episode."""

from __future__ import annotations

import click

from ...schemas.commands import Compact
from .. import options
from ..context import CommandContext, pass_context
from ..output import console
from ..output.upkeep_output import asked, end


@click.command()
@options.tenant
@options.user
@click.option("--session", type=options.GIVEN_ID, required=True, help="The session.")
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    help="So many of its newest turns are left out. [default: memory.session_log.keep, 20]",
)
@options.as_json
@pass_context
def compact(context: CommandContext, tenant: str, user: str, session: str, keep: int | None, as_json: bool) -> None:
    """Make one episode of a session's older turns, and wait for it (at most 60 s). The turns stay.

    Exit 1 when it was refused or failed, when turns are left for another time, or when something is still on its way.
    """
    args = Compact(user_id=user, session_id=session, keep=keep).to_payload()
    done = asked(context, "compact", tenant=tenant, user=user, args=args)
    turns, left = done.counts.get("turns", 0), done.counts.get("left", 0)
    if as_json:
        console.line({"run_id": done.run_id, **done.session_payload("turns", "left")})
    else:
        click.echo(f"{done.status}: {turns} turns are {len(done.made)} episodes (run {done.run_id})")
    end(done, f"{left} turns are left: ask again" if left and done.status == "applied" else "")
