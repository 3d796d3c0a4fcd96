"""`memstream verify`: check topics and store against the invariants (docs/how-to/verify.md)."""

from __future__ import annotations

from collections.abc import Sequence

import click
from pydantic import JsonValue

from ...adapters.completions.offline import NAME as OFFLINE_MODEL
from ...schemas.topics import STAGES
from ...verification import Expected, HistoryScope, InvariantVerdict, read_history
from ...verification import verify as judged
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import Exit
from ..output import console
from ..wiring.ports import open_ports

SHOWN = 10
"""Maximum number of printed violations of one invariant; --json has all."""

Cut = dict[str, dict[int, int]]


@click.command()
@click.option("--tenant", type=options.GIVEN_ID, help="Check only this tenant's records. [default: all]")
@click.option(
    "--stage",
    "stages",
    multiple=True,
    type=click.Choice(STAGES),
    help="Check only this stage's work; may be repeated. [default: all]",
)
@options.as_json
@pass_context
def verify(context: CommandContext, tenant: str | None, stages: tuple[str, ...], as_json: bool) -> None:
    """Check that no record was lost, duplicated, mixed up or left behind, in the log and in the store.

    It reads every topic once and writes nothing. Run it while the stages are idle; it warns if they are not. Exit 1 if
    an invariant is broken.
    """
    verdicts, cut = run(_verify(context, tenant, stages))
    if as_json:
        for verdict in verdicts:
            console.line(record(verdict, cut))
    else:
        _print(verdicts, cut)
    if not all(verdict.ok for verdict in verdicts):
        raise SystemExit(Exit.PARTLY)


async def _verify(
    context: CommandContext, tenant: str | None, stages: tuple[str, ...]
) -> tuple[tuple[InvariantVerdict, ...], Cut]:
    settings, policy = context.settings, context.policy
    async with open_ports(settings, purpose="verify") as ports:
        history = await read_history(log=ports.log, store=ports.store, scope=HistoryScope(tenant=tenant, policy=policy))
    expected = Expected(
        stages=frozenset(stage for stage in STAGES if not stages or stage in stages),
        policy=policy,
        tier=settings.tier,
        free_models=frozenset((OFFLINE_MODEL,)),
    )
    return judged(history, expected), history.cut()


def record(verdict: InvariantVerdict, cut: Cut) -> dict[str, JsonValue]:
    """Return the verdict on one invariant as a row.

    `speaks_from` contains only partitions from which retention deleted records. It maps each of them to its first
    remaining offset.
    """
    return {
        "invariant": verdict.invariant,
        "ok": verdict.ok,
        "checked": verdict.checked,
        "violations": [{"what": each.what, "records": list(each.records)} for each in verdict.violations],
        "title": verdict.title,
        "notes": list(verdict.notes),
        "speaks_from": {topic: {str(part): at for part, at in parts.items()} for topic, parts in cut.items()},
    }


def _print(verdicts: Sequence[InvariantVerdict], cut: Cut) -> None:
    for verdict in verdicts:
        mark = "ok   " if verdict.ok else "WRONG"
        console.say(f"{mark}  {verdict.invariant:5}  {verdict.title}  ({verdict.checked})")
        for violation in verdict.violations[:SHOWN]:
            console.say(f"         - {console.printable(violation.what)}")
            if violation.records:
                console.say(f"           {console.printable(', '.join(violation.records))}")
        if len(verdict.violations) > SHOWN:
            console.say(f"         … and {len(verdict.violations) - SHOWN} more: --json has all")
        for note in verdict.notes:
            console.say(f"         {console.printable(note)}")
    for topic, partitions in cut.items():
        console.say(f"{topic} is checked from {', '.join(f'{part}@{at}' for part, at in partitions.items())}")
