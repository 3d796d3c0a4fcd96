"""`memstream trace FACT_ID`: provenance of a fact: its versions, decisions, observations and turns."""

from __future__ import annotations

import click

from ...recall.provenance import FactRef, FactTracer, ProvenanceChain
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import CommandFailed, Exit
from ..output import console
from ..output.trace_report import show_chain
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
        show_chain(chain)
    if chain.missing:
        raise CommandFailed(Exit.PARTLY, "\n".join(f"missing: {each.part}: {each.why}" for each in chain.missing))


async def _trace(settings: Settings, ref: FactRef) -> ProvenanceChain | None:
    async with open_ports(settings, purpose="trace") as ports:
        return await FactTracer(store=ports.store, log=ports.log).trace(ref)
