"""Commands on their way in: appended under their key, and the result waited for as long as one likes.

Results lie on memory.commands.results under the command's id, so one partition is read, from where it ended before the
command was there.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from pydantic import ValidationError

from ..schemas.cloudevents import CloudEvent
from ..schemas.commands import Command, CommandResult
from ..schemas.errors import Transient
from ..schemas.topics import COMMANDS, RESULTS
from .partitioner import partition_for
from .ports import Log


class Asks(Protocol):
    """Who takes commands of an owner."""

    async def ask(self, command: Command, *, patience: float) -> CommandResult | None:
        """What came of it; None when nothing did within `patience` seconds: it goes on. `Transient` when the log is
        away: then nobody knows whether it was taken."""
        ...


@dataclass(frozen=True, slots=True)
class CommandSender:
    """`Asks`, over the log. `source` stands in ce_source."""

    log: Log
    source: str

    async def ask(self, command: Command, *, patience: float) -> CommandResult | None:
        key = command.command_id.encode()
        partition = partition_for(key, await self._partitions())
        start = {partition: (await self.log.ends(RESULTS.name))[partition]}
        event = CloudEvent(
            command.command_id, f"/memstream/{self.source}", "memstream.command.v1", command.key, command.issued_at
        )
        await self.log.append(
            COMMANDS.name, key=command.key.encode(), value=command.to_bytes(), headers=event.headers()
        )
        try:
            async with asyncio.timeout(patience):
                return await self._result(key, start)
        except TimeoutError:
            return None

    async def _partitions(self) -> int:
        """Of the results; both topics must be there before anything is written."""
        for topic in (COMMANDS, RESULTS):
            count = await self.log.partitions(topic.name)
            if count is None:
                raise Transient("broker", f"there is no topic {topic.name}", remedy="memstream topics create")
        assert count is not None
        return count

    async def _result(self, key: bytes, start: dict[int, int]) -> CommandResult | None:
        async with aclosing(self.log.read(RESULTS.name, start=start, follow=True)) as records:
            async for record in records:
                if record.key == key and (result := _read(record.value)) is not None:
                    return result
        return None


def _read(value: bytes | None) -> CommandResult | None:
    """None: nothing that a stage of ours wrote."""
    try:
        return CommandResult.read(value or b"")
    except ValidationError:
        return None
