"""Records of commands and of their results, and a sender that waits for a result.

A result is a record on memory.commands.results, and its key is the command's id. The sender reads only the partition of
this key, from the end offset that the partition had before the command was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Final, Protocol

from pydantic import ValidationError

from ...schemas import ids
from ...schemas.cloudevents import CloudEvent
from ...schemas.commands import Command, CommandResult
from ...schemas.errors import Transient
from ...schemas.outcomes import OutRecord
from ...schemas.topics import COMMANDS, COMMANDS_SESSION, RESULTS
from ..log.partitioner import partition_for
from ..log.port import Log, Record

REQUEST_HEADER: Final = "memstream-request"
"""Header of a result: the hash of the request that it answers. Another request with the same idempotency key has the
same command id, and the result of the first may come again after a crash."""


def command_record(command: Command, *, source: str) -> OutRecord:
    """Build the record of a command. Its key is the owner key or session key; `source` becomes `ce_source`."""
    topic = COMMANDS if command.owner is not None else COMMANDS_SESSION
    event = CloudEvent(command.command_id, source, "memstream.command.v1", command.key, command.issued_at)
    return OutRecord.of(topic.name, command.key, command, event)


def result_record(result: CommandResult, *, of: Command, source: str) -> OutRecord:
    """Build the record of a command's result."""
    event = CloudEvent(result.command_id, source, "memstream.command.result.v1", of.key, result.at)
    record = OutRecord.of(RESULTS.name, ids.encode(result.command_id), result, event)
    if of.request_hash is None:
        return record
    return record.model_copy(update={"headers": (*record.headers, (REQUEST_HEADER, of.request_hash.encode()))})


class CommandPort(Protocol):
    """The port for sending commands."""

    async def ask(self, command: Command, *, patience: float) -> CommandResult | None:
        """Send a command and return its result, or None when no result came within `patience` seconds.

        After None the command may still be executed.

        Raises:
            Transient: the log does not answer. The command may or may not have been accepted.
        """
        ...


@dataclass(frozen=True, slots=True)
class CommandSender:
    """`CommandPort` over the log. `source` becomes `ce_source`."""

    log: Log
    source: str

    async def ask(self, command: Command, *, patience: float) -> CommandResult | None:
        ends = await self.send(command)
        partition = partition_for(ids.encode(command.command_id).encode(), len(ends))
        with suppress(TimeoutError):
            async with asyncio.timeout(patience), aclosing(self._records({partition: ends[partition]})) as results:
                async for record, result in results:
                    if result.command_id == command.command_id and _answers(record, command):
                        return result
        return None

    async def send(self, command: Command) -> Mapping[int, int]:
        """Append a command durably. Return the results topic's end offsets from before the command, by partition.

        Raises:
            Transient: one of the two topics does not exist. Nothing was written.
        """
        record = command_record(command, source=f"/memstream/{self.source}")
        for topic in (record.topic, RESULTS.name):
            if await self.log.partitions(topic) is None:
                raise Transient("broker", f"there is no topic {topic}", remedy="memstream topics create")
        ends = dict(enumerate(await self.log.ends(RESULTS.name)))
        await self.log.append(record.topic, key=record.key, value=record.value, headers=record.headers)
        return ends

    async def results(self, start: Mapping[int, int]) -> AsyncGenerator[CommandResult]:
        """Yield the results of all commands from these offsets on. The stream has no end. Skip unreadable records."""
        async with aclosing(self._records(start)) as records:
            async for _, result in records:
                yield result

    async def _records(self, start: Mapping[int, int]) -> AsyncGenerator[tuple[Record, CommandResult]]:
        async with aclosing(self.log.read(RESULTS.name, start=start, follow=True)) as records:
            async for record in records:
                try:
                    result = CommandResult.read(record.value or b"")
                except ValidationError:
                    continue
                yield record, result


def _answers(record: Record, command: Command) -> bool:
    """Return whether a result with the command's id answers this command, not another request with the same key."""
    request = dict(record.headers).get(REQUEST_HEADER)
    return request is None or command.request_hash is None or request == command.request_hash.encode()
