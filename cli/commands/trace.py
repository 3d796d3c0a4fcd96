"""`memstream trace FACT_ID` and `memstream trace --turn TURN_ID`: provenance of a fact, or the outcome of a turn."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ...memory.policies import MemoryPolicy
from ...recall.deadline import UnansweredPart
from ...recall.provenance import FactRef, FactTracer, ProvenanceChain
from ...recall.turn_trace import TurnOutcomes, TurnRef, TurnTracer
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import CommandFailed, Exit, usage
from ..output import console
from ..output.trace_report import show_chain, show_turn
from ..wiring.ports import open_ports
from ..wiring.settings import Settings


@click.command()
@click.argument("fact_id", required=False)
@click.option("--turn", "turn_id", type=options.GIVEN_ID, help="Show the outcome of this turn instead of a fact.")
@options.tenant
@click.option("--user", type=options.GIVEN_ID, help="The user of the turn; needs --turn.")
@click.option("--session", type=options.GIVEN_ID, help="The session of the turn; needs --turn.")
@options.as_json
@pass_context
def trace(
    context: CommandContext,
    fact_id: str | None,
    turn_id: str | None,
    tenant: str,
    user: str | None,
    session: str | None,
    as_json: bool,
) -> None:
    """Show why memory believes a fact, or what became of each statement of a turn.

    For a fact, it shows versions, decisions, observations, and the turns word by word. For a turn, it shows the
    messages, and each statement with its outcome and the reason: learnt, refused, waiting, duplicate, closed.

    With --json it prints one object per fact (fact, versions, decisions, observations, turns), or one object for each
    turn with this id. Exit 1 if there is no such fact or turn, or if a part of the log was not read; stderr names it.
    """
    if (fact_id is None) == (turn_id is None):
        raise usage("give either FACT_ID or --turn TURN_ID")
    if turn_id is not None:
        ref = TurnRef(tenant, turn_id, session_id=session, user_id=user, ceiling="secret")
        _show_turn(run(_trace_turn(context.settings, context.policy, ref)), ref, as_json=as_json)
        return
    assert fact_id is not None
    if user is not None or session is not None:
        raise usage("--user and --session need --turn")
    chain = run(_trace(context.settings, FactRef(tenant, fact_id, ceiling="secret")))
    if chain is None:
        raise CommandFailed(
            Exit.PARTLY, f"tenant {tenant} has no fact {fact_id}: `memstream show facts --state all` has their ids"
        )
    if as_json:
        console.line(chain.payload())
    else:
        show_chain(chain)
    _fail_if_missing(chain.missing)


def _fail_if_missing(missing: Sequence[UnansweredPart]) -> None:
    if missing:
        raise CommandFailed(Exit.PARTLY, "\n".join(f"missing: {each.part}: {each.why}" for each in missing))


async def _trace(settings: Settings, ref: FactRef) -> ProvenanceChain | None:
    async with open_ports(settings, purpose="trace") as ports:
        return await FactTracer(store=ports.store, log=ports.log).trace(ref)


async def _trace_turn(settings: Settings, policy: MemoryPolicy, ref: TurnRef) -> TurnOutcomes:
    async with open_ports(settings, purpose="trace") as ports:
        return await TurnTracer(store=ports.store, log=ports.log, deployment=policy).trace(ref)


def _show_turn(found: TurnOutcomes, ref: TurnRef, *, as_json: bool) -> None:
    for each in found.turns:
        if as_json:
            console.line(each.payload())
        else:
            show_turn(each)
    _fail_if_missing(found.missing)
    if not found.turns:
        told = ref.user_id is not None and ref.session_id is not None
        hint = "" if told else "; give --user and --session to find a turn that is not recorded yet"
        raise CommandFailed(Exit.PARTLY, f"tenant {ref.tenant_id} has no recorded turn {ref.turn_id}{hint}")
