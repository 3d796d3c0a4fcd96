"""`memstream trace FACT_ID`: provenance of a fact: its versions, decisions, observations and turns."""

from __future__ import annotations

import json
from collections.abc import Mapping

import click
from pydantic import JsonValue

from ...recall.provenance import FactRef, FactTracer, ProvenanceChain
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import CommandFailed, Exit
from ..output import console
from ..output.fact_format import show_change
from ..wiring.ports import open_ports
from ..wiring.settings import Settings


@click.command()
@click.argument("fact_id")
@options.tenant
@options.as_json
@pass_context
def trace(context: CommandContext, fact_id: str, tenant: str, as_json: bool) -> None:
    """Show why memory believes a fact: its versions, the decisions, the observations, and the turns word by word.

    With --json one object: fact, versions, decisions, observations, turns. Exit code 1 means that there is no such
    fact, or that a part of the log was not read; stderr names it.
    """
    chain = run(_trace(context.settings, FactRef(tenant, fact_id, ceiling="secret")))
    if chain is None:
        raise CommandFailed(
            Exit.PARTLY, f"tenant {tenant} has no fact {fact_id}: `memstream show facts --state all` has their ids"
        )
    if as_json:
        console.line(chain.payload())
    else:
        _print(chain)
    if chain.missing:
        raise CommandFailed(Exit.PARTLY, "\n".join(f"missing: {each.part}: {each.why}" for each in chain.missing))


async def _trace(settings: Settings, ref: FactRef) -> ProvenanceChain | None:
    async with open_ports(settings, purpose="trace") as ports:
        return await FactTracer(store=ports.store, log=ports.log).trace(ref)


def _pairs(settings: Mapping[str, JsonValue]) -> list[str]:
    return [f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in settings.items()]


def _print(chain: ProvenanceChain) -> None:
    fact = chain.fact
    click.echo(f"{console.printable(fact.content)}  ({fact.state}, version {fact.version})")
    click.echo(f"  {fact.owner.scope} {fact.owner.id} · {fact.category} · confidence {fact.confidence:.2f}")
    click.echo("\nits history")
    for event in chain.events:
        show_change(event)
        if event.decision is not None:
            click.echo(f"            decided by {json.dumps(event.decision.to_payload(), ensure_ascii=False)}")
        if event.cause.command_id is not None:
            by = f" of {console.printable(event.cause.issued_by)}" if event.cause.issued_by else ""
            click.echo(f"            by command {console.printable(event.cause.command_id)}{by}")
    click.echo("\nwhat was observed")
    for seen in chain.observations:
        click.echo(f"  {seen.session_id}/{seen.turn_id}: {console.printable(seen.observation.content)}")
        click.echo(f"      “{console.printable(seen.observation.evidence)}”")
        if seen.cut is not None:
            click.echo(
                f"      the model did not see {seen.cut.tokens} tokens of this turn, of {seen.cut.messages} messages"
            )
        if seen.applied is not None:
            by = "the tenant's policy" if seen.applied.persona is None else f"the persona {seen.applied.persona}"
            more = ["counted more", *_pairs(seen.applied.settings)] if seen.boosted else _pairs(seen.applied.settings)
            click.echo(console.printable(f"      by {by}: {', '.join(more)}"))
    click.echo("\nwhat was said")
    for message in chain.turns:
        click.echo(f"  {message.session_id}/{message.turn_id} {message.role}: {console.printable(message.content)}")
    for session_id, turn_id in chain.turns_gone:
        why = "not recorded yet, or older than session_log.retention_days"
        click.echo(console.printable(f"  {session_id}/{turn_id}: no words of it are kept ({why})"))
