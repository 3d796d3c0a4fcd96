"""`memstream chat`: each line typed is a turn, and the changes of facts appear as they come."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import click

from ...memory.policies import MemoryPolicy
from ...schemas.errors import Poison
from ...schemas.topics import group_of
from ...streams.engine.turn_sender import TurnSender, read_turn, user_turn
from .. import options
from ..context import CommandContext, pass_context, run
from ..output import console, demo_output
from ..output.demo_conversation import TENANT, USER
from ..output.event_feed import Feed, Person, fed
from ..process.line_reader import lines
from ..wiring.local_stages import LocalStages, local_stages
from ..wiring.settings import OFFLINE, Settings

PROMPT = "> "
WAIT_SECONDS = 5.0
"""How long the next prompt waits for what the last line brings; it goes on appearing afterwards."""
END_SECONDS = 60.0


@click.command()
@click.option("--tenant", type=options.GIVEN_ID, default=TENANT, show_default=True)
@click.option("--user", type=options.GIVEN_ID, default=USER, show_default=True, help="Who is talking.")
@click.option("--session", type=options.GIVEN_ID, help="Go on with this session. [default: a new one]")
@pass_context
def chat(context: CommandContext, tenant: str, user: str, session: str | None) -> None:
    """Talk to the memory: it does not answer, it shows what it makes of each line. Ends with Ctrl-D."""
    new = f"chat-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    run(_chat(context.settings, context.policy, Person(tenant, user), session or new))


async def _chat(settings: Settings, policy: MemoryPolicy, person: Person, session: str) -> None:
    async with local_stages(settings, policy, purpose="chat") as ports:
        await _tell_start(ports, settings, person, session)
        async with fed(ports.log, person, demo_output.tell) as feed:
            await _talk(ports, feed, person, session)
            if not await feed.all_done(within=END_SECONDS):
                console.advice(f"some of it is still being worked on after {END_SECONDS:.0f} s; it is not lost")
        await demo_output.tell_working_set(ports.store, person, session)
        await demo_output.tell_facts(ports.store, person)


async def _talk(ports: LocalStages, feed: Feed, person: Person, session: str) -> None:
    sender = TurnSender(ports.log, "chat")
    number = 0
    stamp = f"{datetime.now(UTC):%H%M%S%f}"
    typed = lines(sys.stdin.buffer)
    while (line := await _read(typed, feed)) is not None:
        text = line.decode("utf-8", "replace").strip()
        if not text:
            continue
        number += 1
        turn_id = f"{stamp}-{number}"
        value = user_turn(
            tenant_id=person.tenant_id, user_id=person.user_id, session_id=session, turn_id=turn_id, text=text
        )
        try:
            await sender.send(read_turn(value), value)
        except Poison as poison:
            console.advice(f"not sent: {poison}")
            continue
        await feed.turn_done(session, turn_id, within=WAIT_SECONDS)


async def _read(typed: AsyncIterator[bytes], feed: Feed) -> bytes | None:
    """The next line; None at the end. What comes meanwhile is shown."""
    if sys.stdin.isatty():
        print(PROMPT, end="", flush=True)
    showing = asyncio.create_task(feed.show_for_ever())
    try:
        return await anext(typed, None)
    finally:
        showing.cancel()
        await asyncio.wait((showing,))


async def _tell_start(ports: LocalStages, settings: Settings, person: Person, session: str) -> None:
    out = console.console()
    if settings.model_names == (OFFLINE,) and ports.stages_here:
        out.print(
            f"[yellow]model: {demo_output.text(ports.model)}[/yellow] [dim]rules for simple English sentences[/dim]"
        )
    if not ports.stages_here and not await ports.log.members(group_of("observer")):
        console.advice("no observer is running: what you say waits in the log until a worker reads it")
    facts = await demo_output.facts_of(ports.store, person)
    if facts:
        out.print(f"[bold]It remembers of {demo_output.text(person.user_id)}:[/bold]")
        for fact in facts:
            out.print(f"  [green]●[/green] {demo_output.text(fact.content)}", soft_wrap=True)
    out.print(f"[dim]session {demo_output.text(session)}: say something about yourself; Ctrl-D ends[/dim]")
