"""`memstream produce FILE|-`: turns as NDJSON onto memory.turns, under the right key."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import BinaryIO

import click

from ...schemas.errors import Poison
from ...streams.ports import Position
from .. import options, output
from ..broker import opened_log
from ..context import CommandContext, pass_context, run
from ..errors import Exit
from ..settings import Settings
from ..turns import TurnSender, read_turn

WINDOW = 256
"""Turns on their way at once; those of one session one after the other."""


@click.command()
@click.argument("file", type=click.File("rb"))
@options.as_json
@pass_context
def produce(context: CommandContext, file: BinaryIO, as_json: bool) -> None:
    """Send turns, one JSON object a line, from FILE or - (standard input).

    Each line is answered in its order once it is durable. A bad line is told on stderr with its number, the rest goes
    on, and the exit code is 1.
    """
    written, refused = run(_produce(context.settings, file, as_json))
    if not as_json:
        output.advice(f"{written} turns written, {refused} lines refused")
    if refused:
        raise SystemExit(Exit.PARTLY)


async def _produce(settings: Settings, file: BinaryIO, as_json: bool) -> tuple[int, int]:
    async with opened_log(settings) as log:
        sender = TurnSender(log, "produce")
        written = refused = 0
        waiting: deque[Line] = deque()

        async def answer(line: Line) -> None:
            nonlocal written, refused
            try:
                position = await line.sent
            except Poison as poison:
                refused += 1
                print(f"line {line.number}: {poison}", file=sys.stderr, flush=True)
                return
            written += 1
            if as_json:
                output.line(
                    {
                        "topic": position.topic,
                        "partition": position.partition,
                        "offset": position.offset,
                        "turn_id": line.turn_id,
                    }
                )

        async for line in _lines(file, sender):
            waiting.append(line)
            while waiting and (waiting[0].sent.done() or len(waiting) >= WINDOW):
                await answer(waiting.popleft())
        while waiting:
            await answer(waiting.popleft())
        return written, refused


@dataclass(frozen=True, slots=True)
class Line:
    """A line on its way. `sent` ends when it is durable, or with the Poison that says what is wrong with it."""

    number: int
    turn_id: str
    sent: asyncio.Future[Position]


async def _lines(file: BinaryIO, sender: TurnSender) -> AsyncIterator[Line]:
    number = 0
    while raw := await asyncio.to_thread(file.readline):
        number += 1
        value = raw.strip()
        if not value:
            continue
        try:
            turn = read_turn(value)
        except Poison as poison:
            future: asyncio.Future[Position] = asyncio.get_running_loop().create_future()
            future.set_exception(poison)
            yield Line(number, "", future)
            continue
        yield Line(number, turn.turn_id, asyncio.ensure_future(sender.send(turn, value)))
