"""`memstream flush`: what counts of a session's working set becomes episodes, now."""

from __future__ import annotations

import click

from ...schemas.commands import SessionRef
from .. import options
from ..context import CommandContext, pass_context, run
from ..output import console
from ..output.upkeep_output import end
from ..wiring.command_runs import flushed


@click.command()
@options.tenant
@options.user
@click.option("--session", type=options.GIVEN_ID, required=True, help="The session.")
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    help="Importance from which an entry becomes an episode. [default: memory.session_log.flush_threshold, 0.6]",
)
@options.as_json
@pass_context
def flush(
    context: CommandContext, tenant: str, user: str, session: str, threshold: float | None, as_json: bool
) -> None:
    """Observe what is unobserved of a session, make episodes of its working entries that count, and wait for it (at
    most 60 s).

    Exit 1 when it was refused, when turns wait to be observed, or when something is still on its way.
    """
    done = run(
        flushed(
            context.settings,
            context.policy,
            tenant=tenant,
            session=SessionRef(user_id=user, session_id=session),
            args={} if threshold is None else {"threshold": threshold},
        )
    )
    waiting, left = done.counts.get("waiting", 0), done.counts.get("left", 0)
    if as_json:
        console.line(done.session_payload("waiting", "entries", "left"))
    else:
        click.echo(f"{done.status}: {done.counts.get('entries', 0)} entries are episodes")
    end(
        done,
        f"{waiting} turns wait for the model or the budget: flush again when they are observed" if waiting else "",
        f"{left} entries cannot be kept: another version, or other settings, put them there" if left else "",
    )
