"""`memstream demo`: a bundled conversation through all stages, in one process and one folder."""

from __future__ import annotations

import time
from dataclasses import replace

import click

from ...memory.policies import MemoryPolicy
from ...schemas.front_door.turns import read_turn
from ...streams.log.broker_url import EMBEDDED
from ...streams.senders.turns import TurnSender, user_turn
from ..context import CommandContext, pass_context, run
from ..errors import CommandFailed, Exit
from ..output import console, demo_output
from ..output.demo_conversation import CONVERSATION, TENANT, USER
from ..output.event_feed import Feed, Person, fed
from ..wiring.local_stages import LocalStages, local_stages
from ..wiring.settings import OFFLINE, Settings

PERSON = Person(TENANT, USER)
TURN_SECONDS = 90.0
"""Time limit of one turn, in seconds. A language model needs seconds, the offline model needs milliseconds."""
END_SECONDS = 60.0
FOLLOW_UPS_AFTER = 3_600.0
"""Seconds between a consolidation run and the work that follows it. The demo ends before that."""


@click.command()
@pass_context
def demo(context: CommandContext) -> None:
    """Turn a bundled conversation of two sessions into facts, in one process, without a server.

    The demo uses the folder of MEMSTREAM_DATADIR and ignores MEMSTREAM_BROKER and MEMSTREAM_QDRANT. Without an API key
    it uses the offline model. A later run starts with the memory of earlier runs.
    """
    run(_demo(_embedded(context.settings), _without_follow_ups(context.policy)))


def _without_follow_ups(policy: MemoryPolicy) -> MemoryPolicy:
    """Return a policy that postpones the work after a consolidation run. Without the delay, this work would start just
    before the demo ends."""
    return replace(policy, consolidation=replace(policy.consolidation, after_run=FOLLOW_UPS_AFTER))


def _embedded(settings: Settings) -> Settings:
    address = f"{EMBEDDED}{settings.datadir}"
    if (settings.broker, settings.qdrant) != (address, address):
        console.advice(f"the demo runs in {settings.datadir} and ignores MEMSTREAM_BROKER and MEMSTREAM_QDRANT")
    return settings.model_copy(update={"broker": address, "qdrant": address, "partitions": None, "health_port": 0})


async def _demo(settings: Settings, policy: MemoryPolicy) -> None:
    began = time.monotonic()
    async with local_stages(settings, policy, purpose="demo") as ports:
        _show_start(ports, settings, time.monotonic() - began)
        known = await demo_output.facts_of(ports.store, PERSON)
        if known:
            console.console().print()
            demo_output.show_beliefs(f"Remembered from before: {len(known)} facts about {USER}", known)
        sent = time.monotonic()
        async with fed(ports.log, PERSON, demo_output.show) as feed:
            await _converse(ports, feed, turn_by_turn=not known)
            if not await feed.all_done(within=END_SECONDS):
                console.advice(f"the stages still have work after {END_SECONDS:.0f} s")
        if known and not feed.observed:
            console.console().print()
            console.wrapped("The same turns were sent again. Their ids were known, so memory counted nothing twice.")
        console.console().print(f"\n[dim]{len(CONVERSATION)} turns in {time.monotonic() - sent:.1f} s[/dim]")
        for session in dict.fromkeys(said.session_id for said in CONVERSATION):
            await demo_output.show_working_set(ports.store, PERSON, session)
        facts = await demo_output.show_facts(ports.store, PERSON)
    me = demo_output.program()
    replaced = next((fact for fact in facts if fact.state == "superseded"), facts[0] if facts else None)
    demo_output.show_next(
        [
            (f"{me} chat", "talk yourself: each line is a turn, and changes appear as they happen"),
            *([(f"{me} trace {replaced.fact_id} --tenant {TENANT}", "why memory believed it")] if replaced else []),
            (f"{me} show turns --tenant {TENANT} --user {USER}", "the messages, word by word"),
            (f"{me} watch --from-beginning --json", "every change of a fact, as your service would read it"),
            (f"{me} doctor", "what a deployment with Kafka and Qdrant still needs"),
            (f"{me} console", "pages in the browser that show why memory believes this"),
        ]
    )


async def _converse(ports: LocalStages, feed: Feed, *, turn_by_turn: bool) -> None:
    """Send every turn. With `turn_by_turn`, print the effects of each turn before sending the next one."""
    sender = TurnSender(ports.log, "demo")
    session = None
    for said in CONVERSATION:
        if said.session_id != session:
            session = said.session_id
            console.console().print(f"\n[bold]{session}[/bold]")
        console.wrapped(f"  [bold]{USER}[/bold]    ", demo_output.text(said.text))
        value = user_turn(
            tenant_id=TENANT, user_id=USER, session_id=said.session_id, turn_id=said.turn_id, text=said.text
        )
        await sender.send(read_turn(value).turn, value)
        if turn_by_turn and not await feed.turn_done(said.session_id, said.turn_id, within=TURN_SECONDS):
            raise CommandFailed(
                Exit.PARTLY,
                f"the turn {said.turn_id} was not finished within {TURN_SECONDS:.0f} s: memstream doctor",
            )


def _show_start(ports: LocalStages, settings: Settings, seconds: float) -> None:
    out = console.console()
    out.print("[bold]memstream[/bold]  turns in, facts out")
    where = "all stages in this process" if ports.stages_here else "stages in the running worker"
    console.wrapped(f"[dim]{where} · {demo_output.text(str(settings.datadir))} · started in {seconds:.1f} s[/dim]")
    if settings.model_names == (OFFLINE,):
        console.wrapped(
            f"[yellow]model: {demo_output.text(ports.model)}[/yellow] [dim]rules for simple English sentences, no "
            "language model. Set OPENAI_API_KEY for a real one.[/dim]"
        )
    else:
        out.print(f"[dim]model: {demo_output.text(ports.model)}[/dim]")
