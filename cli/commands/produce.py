"""`memstream produce FILE|-`: send turns, one JSON object per line, to memory.turns."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import BinaryIO

import click

from ...schemas.errors import Poison
from ...schemas.front_door.turns import read_turn
from ...streams.log.port import Position
from ...streams.senders.turns import TurnSender
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import CommandFailed, Exit
from ..output import console
from ..process.line_reader import lines
from ..wiring.broker import opened_log
from ..wiring.settings import Settings

WINDOW = 256
"""Maximum number of unacknowledged turns. Turns of one session are sent one after the other."""


@click.command()
@click.argument("file", type=click.File("rb"))
@options.as_json
@pass_context
def produce(context: CommandContext, file: BinaryIO, as_json: bool) -> None:
    """Send turns from FILE or - (standard input), one JSON object per line.

    With --json it prints one line for each durable turn, in the order of the input. An invalid line is reported on
    stderr with its line number; the command continues with the next line and exits 1 at the end.
    """
    written, refused = run(_produce(context.settings, file, as_json))
    if not as_json:
        console.advice(f"{written} turns written, {refused} lines refused")
    if refused:
        raise SystemExit(Exit.PARTLY)


async def _produce(settings: Settings, file: BinaryIO, as_json: bool) -> tuple[int, int]:
    """Send the lines. Return the number of written turns and of refused lines.

    The next lines are read while earlier turns wait for their acknowledgement.
    """
    async with opened_log(settings) as log:
        waiting: asyncio.Queue[TurnLine | None] = asyncio.Queue(WINDOW)
        reading = asyncio.create_task(_read(file, TurnSender(log, "produce"), waiting))
        written = refused = 0
        while (line := await waiting.get()) is not None:
            try:
                position = await line.sent
            except Poison as poison:
                refused += 1
                print(f"line {line.number}: {poison}", file=sys.stderr, flush=True)
                continue
            written += 1
            if as_json:
                console.line(
                    {
                        "topic": position.topic,
                        "partition": position.partition,
                        "offset": position.offset,
                        "turn_id": line.turn_id,
                    }
                )
        await reading
        return written, refused


@dataclass(frozen=True, slots=True)
class TurnLine:
    """A line in flight. `sent` completes when the turn is durable, or raises Poison if the line is invalid."""

    number: int
    turn_id: str
    sent: asyncio.Future[Position]


async def _read(file: BinaryIO, sender: TurnSender, waiting: asyncio.Queue[TurnLine | None]) -> None:
    """Put lines into the queue, and None at the end. Raises CommandFailed if the file cannot be read to its end."""
    number = 0
    try:
        async for raw in lines(file):
            number += 1
            if value := raw.strip():
                await waiting.put(_line(number, value, sender))
    except CommandFailed:
        await waiting.put(None)
        raise
    await waiting.put(None)


def _line(number: int, value: bytes, sender: TurnSender) -> TurnLine:
    try:
        turn = read_turn(value).turn
    except Poison as poison:
        refused: asyncio.Future[Position] = asyncio.get_running_loop().create_future()
        refused.set_exception(poison)
        return TurnLine(number, "", refused)
    return TurnLine(number, turn.turn_id, sender.send(turn, value))
