"""Commands that maintain one user's memory now and wait for the result: consolidate, prune, digest, hygiene, reflect,
flush, compact."""

from __future__ import annotations

from collections.abc import Mapping

import click
from pydantic import JsonValue

from ...schemas.commands import Compact, SessionRef
from ...schemas.turns import Owner
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import Exit
from ..output import console
from ..wiring.command_runs import CommandRun, Kind, flushed, ran


@click.command()
@options.tenant
@options.user
@options.as_json
@pass_context
def consolidate(context: CommandContext, tenant: str, user: str, as_json: bool) -> None:
    """Make facts of a user's episodes now, and wait for the changes (at most 60 s).

    Exit 1 when it was refused or failed, or when something is still on its way.
    """
    tell_changes(asked(context, "consolidate", tenant=tenant, user=user), as_json=as_json)


@click.command()
@options.tenant
@options.user
@click.option("--force", is_flag=True, help="Although little has changed since the last time.")
@options.as_json
@pass_context
def prune(context: CommandContext, tenant: str, user: str, force: bool, as_json: bool) -> None:
    """Look through a user's facts for what should go, and wait for it (at most 60 s).

    Exit 1 when it was refused or failed, or when something is still on its way.
    """
    tell_changes(asked(context, "prune", tenant=tenant, user=user, args={"force": force}), as_json=as_json)


@click.command()
@options.tenant
@options.user
@click.option("--force", is_flag=True, help="Although nothing has changed.")
@options.as_json
@pass_context
def digest(context: CommandContext, tenant: str, user: str, force: bool, as_json: bool) -> None:
    """Write a user's digest anew, and wait for it (at most 60 s).

    Exit 1 when it was refused or failed, or when something is still on its way.
    """
    tell_changes(asked(context, "digest", tenant=tenant, user=user, args={"force": force}), as_json=as_json)


@click.command()
@options.tenant
@options.user
@options.as_json
@pass_context
def hygiene(context: CommandContext, tenant: str, user: str, as_json: bool) -> None:
    """Cull what is over in a user's memory and flag what is old, and wait for it (at most 60 s).

    Exit 1 when it was refused or failed, or when something is still on its way.
    """
    tell_counts(asked(context, "hygiene", tenant=tenant, user=user), as_json=as_json)


@click.command()
@options.tenant
@options.user
@options.as_json
@pass_context
def reflect(context: CommandContext, tenant: str, user: str, as_json: bool) -> None:
    """Prune, merge, strengthen, derive and compact a user's memory, and wait for it (at most 60 s). Zeros when a run
    was going on.

    Exit 1 when it was refused or failed, or when something is still on its way.
    """
    tell_counts(asked(context, "hygiene", tenant=tenant, user=user, args={"run": "reflect"}), as_json=as_json)


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
