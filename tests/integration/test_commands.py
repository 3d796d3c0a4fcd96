"""A command and its result over a real log: the answer that is of this command, and none within the time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memstream.schemas.commands import Command, CommandResult
from memstream.schemas.errors import Transient
from memstream.schemas.topics import COMMANDS, RESULTS
from memstream.schemas.turns import Owner
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import TopicSpec
from memstream.streams.senders.commands import CommandSender, result_record

AT = datetime(2026, 11, 20, tzinfo=UTC)
DEADLINE = 20.0


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EmbeddedLog]:
    made = EmbeddedLog(folder=tmp_path)
    await made.start()
    yield made
    await made.close()


async def topics(log: EmbeddedLog) -> None:
    await log.create([TopicSpec(topic.name, 3, 1, {}) for topic in (COMMANDS, RESULTS)])


def command(command_id: str) -> Command:
    return Command(
        command_id=command_id, kind="hygiene", tenant_id="acme", owner=Owner(scope="user", id="u1"), issued_at=AT
    )


async def tell(log: EmbeddedLog, command_id: str, value: bytes | None = None) -> None:
    result = CommandResult(command_id=command_id, status="applied", result={"run_id": command_id}, at=AT)
    for partition in range(3):
        key = command_id.encode()
        await log.append(RESULTS.name, key=key, value=value or result.to_bytes(), partition=partition)


async def test_the_result_of_this_command_is_waited_for(log: EmbeddedLog) -> None:
    await topics(log)
    await tell(log, "c1")  # of an earlier command of that id: what was there before is not its answer
    asking = asyncio.create_task(CommandSender(log, "api").ask(command("c1"), patience=DEADLINE))
    async with asyncio.timeout(DEADLINE):
        record = await anext(log.read(COMMANDS.name, follow=True))
    assert (record.key, Command.read(record.value or b"").command_id) == (b"acme/user/u1", "c1")
    assert dict(record.headers)["ce_source"] == b"/memstream/api"
    assert not asking.done()
    await tell(log, "c2")
    await tell(log, "c1", b"nothing of ours")
    later = CommandResult(command_id="c1", status="refused", at=AT)
    await tell(log, "c1", later.to_bytes())
    assert await asking == later


@pytest.mark.parametrize("other", ["b" * 64, None])
async def test_the_result_of_another_request_with_the_same_key_is_not_its_answer(
    log: EmbeddedLog, other: str | None
) -> None:
    """A stage that crashed sends the result of the first request again, behind the second request. A worker of an
    earlier version writes no header."""
    await topics(log)
    asked = command("c1").model_copy(update={"request_hash": "a" * 64})
    asking = asyncio.create_task(CommandSender(log, "api").ask(asked, patience=DEADLINE))
    async with asyncio.timeout(DEADLINE):
        await anext(log.read(COMMANDS.name, follow=True))
    of = asked.model_copy(update={"request_hash": other})
    first = CommandResult(command_id="c1", status="applied", at=AT)
    own = CommandResult(command_id="c1", status="refused", at=AT)
    for result, request in ((first, of), (own, asked)):
        record = result_record(result, of=request, source="test")
        await log.append(record.topic, key=record.key, value=record.value, headers=record.headers)
    assert await asking == (first if other is None else own)


async def test_a_command_that_nobody_takes_lies_in_the_log(log: EmbeddedLog) -> None:
    await topics(log)
    assert await CommandSender(log, "api").ask(command("c1"), patience=0) is None
    assert sum(await log.ends(COMMANDS.name)) == 1


async def test_without_topics_nothing_is_written(log: EmbeddedLog) -> None:
    with pytest.raises(Transient) as away:
        await CommandSender(log, "api").ask(command("c1"), patience=0)
    assert "topics create" in away.value.remedy
