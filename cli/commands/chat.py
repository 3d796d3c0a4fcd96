"""`memstream chat`: each line is a turn, and changes of facts appear as they happen."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.patch_stdout import patch_stdout

from ...memory.policies import MemoryPolicy
from ...schemas.errors import Poison
from ...schemas.front_door.turns import read_turn
from ...schemas.observations import Observed
from ...schemas.topics import group_of
from ...streams.senders.turns import TurnSender, user_turn
from .. import options
from ..context import CommandContext, pass_context, run
from ..output import console, demo_output
from ..output.demo_conversation import TENANT, USER
from ..output.event_feed import Feed, Person, Seen, fed
from ..process.line_reader import lines
from ..wiring.local_stages import LocalStages, local_stages
from ..wiring.settings import OFFLINE, Settings

PROMPT = "> "
WAIT_SECONDS = 5.0
"""Maximum number of seconds to wait for the effects of a line before the next prompt. Later effects appear above the
prompt."""
END_SECONDS = 60.0
EARLIER = 3
"""Number of earlier lines that decide whether a line belongs to a game or a story: as many as the model sees."""


@click.command()
@click.option("--tenant", type=options.GIVEN_ID, default=TENANT, show_default=True, help="The tenant.")
@click.option("--user", type=options.GIVEN_ID, default=USER, show_default=True, help="The user who talks.")
@click.option("--session", type=options.GIVEN_ID, help="Continue this session. [default: a new one]")
@pass_context
def chat(context: CommandContext, tenant: str, user: str, session: str | None) -> None:
    """Talk to memory. It does not answer; it shows the facts that it learns from each line. Ctrl-D ends the chat."""
    new = f"chat-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    run(_chat(context.settings, context.policy, Person(tenant, user), session or new))


async def _chat(settings: Settings, policy: MemoryPolicy, person: Person, session: str) -> None:
    async with local_stages(settings, policy, purpose="chat") as ports:
        await _show_start(ports, settings, person, session)
        lines_read = _LinesRead(offline=settings.model_names == (OFFLINE,) and ports.stages_here)
        async with fed(ports.log, person, lines_read.show) as feed:
            await _talk(ports, feed, person, session, lines_read)
            if not await feed.all_done(within=END_SECONDS):
                console.advice(f"the stages still have work after {END_SECONDS:.0f} s; nothing is lost")
        await demo_output.show_working_set(ports.store, person, session)
        await demo_output.show_facts(ports.store, person)


class _LinesRead:
    """The lines of this chat, to say why a line taught nothing."""

    def __init__(self, *, offline: bool) -> None:
        self._offline = offline
        self._earlier: list[str] = []
        self._reasons: dict[str, str] = {}

    def add(self, turn_id: str, text: str) -> None:
        """Note the reason for which the offline model would learn nothing from a line. No other model gives a
        reason."""
        if self._offline:
            from ...adapters.completions.offline import why_silent  # a lazy import: its patterns take time to compile

            self._reasons[turn_id] = why_silent(text, self._earlier).value
            self._earlier = [*self._earlier, text][-EARLIER:]

    def show(self, seen: Seen) -> None:
        reason = self._reasons.pop(seen.turn_id, None) if isinstance(seen, Observed) else None
        if isinstance(seen, Observed) and not seen.observations and reason is not None:
            console.console().print(f"{demo_output.INDENT}[dim]nothing learnt: {reason}[/dim]")
        else:
            demo_output.show(seen)


async def _talk(ports: LocalStages, feed: Feed, person: Person, session: str, lines_read: _LinesRead) -> None:
    sender = TurnSender(ports.log, "chat")
    number = 0
    stamp = f"{datetime.now(UTC):%H%M%S%f}"
    async for text in _typed_lines(feed) if sys.stdin.isatty() else _piped_lines(feed):
        if not text:
            continue
        number += 1
        turn_id = f"{stamp}-{number}"
        value = user_turn(
            tenant_id=person.tenant_id, user_id=person.user_id, session_id=session, turn_id=turn_id, text=text
        )
        lines_read.add(turn_id, text)
        try:
            await sender.send(read_turn(value).turn, value)
        except Poison as poison:
            console.advice(f"not sent: {poison}")
            continue
        await feed.turn_done(session, turn_id, within=WAIT_SECONDS)


async def _typed_lines(feed: Feed) -> AsyncIterator[str]:
    """Yield lines of the terminal until Ctrl-D. Events appear above the line that is being typed."""
    os.environ.setdefault("PROMPT_TOOLKIT_NO_CPR", "1")  # some terminals do not report their cursor position
    session: PromptSession[str] = PromptSession(PROMPT)
    while True:
        async with _shown(feed):
            try:
                with patch_stdout(raw=True):
                    text = await session.prompt_async()
            except EOFError:
                return
        yield text.strip()


async def _piped_lines(feed: Feed) -> AsyncIterator[str]:
    """Yield lines of a file or a pipe. Show events while waiting for the next line."""
    piped = lines(sys.stdin.buffer)
    while True:
        async with _shown(feed):
            raw = await anext(piped, None)
        if raw is None:
            return
        yield raw.decode("utf-8", "replace").strip()


@asynccontextmanager
async def _shown(feed: Feed) -> AsyncIterator[None]:
    """Show events as they arrive until the block ends."""
    showing = asyncio.create_task(feed.show_for_ever())
    try:
        yield
    finally:
        showing.cancel()
        await asyncio.wait((showing,))


async def _show_start(ports: LocalStages, settings: Settings, person: Person, session: str) -> None:
    if settings.model_names == (OFFLINE,) and ports.stages_here:
        console.wrapped(
            f"[yellow]model: {demo_output.text(ports.model)}[/yellow] [dim]rules for simple English sentences[/dim]"
        )
    if not ports.stages_here and not await ports.log.members(group_of("observer")):
        console.advice("no observer is running: your lines stay in the log until a worker reads them")
    facts = await demo_output.facts_of(ports.store, person)
    if facts:
        demo_output.show_beliefs(f"Memory knows about {demo_output.text(person.user_id)}:", facts)
    console.wrapped(f"[dim]session {demo_output.text(session)}: say something about yourself; Ctrl-D ends[/dim]")
