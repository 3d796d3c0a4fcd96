"""Commands that maintain one user's memory and wait for the result: consolidate, prune, digest, hygiene, reflect,
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
    """Derive facts from a user's episodes, and wait for the changes.

    Exit 1 if the run was refused or failed, or did not finish in time.
    """
    print_changes(request(context, "consolidate", tenant=tenant, user=user), as_json=as_json)


@click.command()
@options.tenant
@options.user
@click.option("--force", is_flag=True, help="Run even if little has changed since the last run.")
@options.as_json
@pass_context
def prune(context: CommandContext, tenant: str, user: str, force: bool, as_json: bool) -> None:
    """Prune a user's facts: a model proposes facts to drop. Wait for the changes.

    Exit 1 if the run was refused or failed, or did not finish in time.
    """
    print_changes(request(context, "prune", tenant=tenant, user=user, args={"force": force}), as_json=as_json)


@click.command()
@options.tenant
@options.user
@click.option("--force", is_flag=True, help="Rewrite the digest even if nothing has changed.")
@options.as_json
@pass_context
def digest(context: CommandContext, tenant: str, user: str, force: bool, as_json: bool) -> None:
    """Rewrite a user's digest, and wait for it.

    Exit 1 if the run was refused or failed, or did not finish in time.
    """
    print_changes(request(context, "digest", tenant=tenant, user=user, args={"force": force}), as_json=as_json)


@click.command()
@options.tenant
@options.user
@options.as_json
@pass_context
def hygiene(context: CommandContext, tenant: str, user: str, as_json: bool) -> None:
    """Delete expired and faded records of a user, flag old records, and wait for the end of the run.

    Exit 1 if the run was refused or failed, or did not finish in time.
    """
    print_counts(request(context, "hygiene", tenant=tenant, user=user), as_json=as_json)


@click.command()
@options.tenant
@options.user
@options.as_json
@pass_context
def reflect(context: CommandContext, tenant: str, user: str, as_json: bool) -> None:
    """Prune, merge, strengthen, derive and compact a user's memory, and wait for the end of the run.

    The counts are 0 if another run was active. Exit 1 if the run was refused or failed, or did not finish in time.
    """
    print_counts(request(context, "hygiene", tenant=tenant, user=user, args={"run": "reflect"}), as_json=as_json)


@click.command()
@options.tenant
@options.user
@click.option("--session", type=options.GIVEN_ID, required=True, help="The session.")
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    help="Leave out the newest N turns. [default: the setting memory.session_log.keep, 20]",
)
@options.as_json
@pass_context
def compact(context: CommandContext, tenant: str, user: str, session: str, keep: int | None, as_json: bool) -> None:
    """Summarise a session's older turns in one episode, and wait for it. The turns stay in memory.

    Exit 1 if the run was refused or failed, left turns, or did not finish in time.
    """
    args = Compact(user_id=user, session_id=session, keep=keep).to_payload()
    done = request(context, "compact", tenant=tenant, user=user, args=args)
    turns, left = done.counts.get("turns", 0), done.counts.get("left", 0)
    if as_json:
        console.line({"run_id": done.run_id, **done.session_payload("turns", "left")})
    else:
        console.say(f"{done.status}: {turns} turns became {len(done.made)} episodes (run {done.run_id})")
    end(done, f"{left} turns are left: run the command again" if left and done.status == "applied" else "")


@click.command()
@options.tenant
@options.user
@click.option("--session", type=options.GIVEN_ID, required=True, help="The session.")
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    help="Lowest importance of an entry that becomes an episode. "
    "[default: the setting memory.session_log.flush_threshold, 0.6]",
)
@options.as_json
@pass_context
def flush(
    context: CommandContext, tenant: str, user: str, session: str, threshold: float | None, as_json: bool
) -> None:
    """Turn the important entries of a session's working set into episodes, and wait for them.

    The remaining turns of the session are observed first. Exit 1 if the command was refused, if turns still wait to be
    observed, or if it did not finish in time.
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
        console.say(f"{done.status}: {done.counts.get('entries', 0)} entries became episodes")
    end(
        done,
        f"{waiting} turns wait for the model or the budget: flush again when they are observed" if waiting else "",
        f"{left} entries cannot become episodes: another version or other settings wrote them" if left else "",
    )


NOTHING: Mapping[str, JsonValue] = {}


def request(
    context: CommandContext, kind: Kind, *, tenant: str, user: str, args: Mapping[str, JsonValue] = NOTHING
) -> CommandRun:
    """Send a command about a user's memory and wait for its result."""
    owner = Owner(scope="user", id=user)
    return run(ran(kind, context.settings, context.policy, tenant=tenant, owner=owner, args=args))


def print_changes(done: CommandRun, *, as_json: bool) -> None:
    """Print the proposed changes and the verdict on each change."""
    if as_json:
        console.line(done.payload())
    else:
        console.say(f"{done.status}: {done.episodes} episodes, {len(done.changes)} changes (run {done.run_id})")
        for change in done.changes:
            assert isinstance(change, dict)
            console.say(f"  {change['action']} {change['fact_id'] or ''}: {change['verdict']}")
    end(done)


def print_counts(done: CommandRun, *, as_json: bool) -> None:
    """Print the counts of the run's steps."""
    if as_json:
        console.line({**done.payload(), **done.counts})
    else:
        counts = ", ".join(f"{name} {n}" for name, n in done.counts.items())
        console.say(f"{done.status}: {counts or 'nothing to do'} (run {done.run_id})")
    end(done)


def end(done: CommandRun, *left: str) -> None:
    """Print messages, and exit 1 if the run was refused, failed, is incomplete, or left work.

    `left`: a message for each kind of remaining work, or "" if no work of this kind remains.
    """
    for line in (done.why, *left):
        if line:
            console.advice(line)
    if not done.complete or done.status != "applied" or any(left):
        raise SystemExit(Exit.PARTLY)
