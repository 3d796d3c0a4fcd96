"""`memstream dlq list|show`: dead letters, and why they were refused."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import aclosing

import click
from pydantic import JsonValue

from ...schemas.topics import BY_NAME, DEAD_LETTER_SUFFIX, catalogue
from ...streams.log.port import Log, Record
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import CommandFailed, Exit, usage
from ..output import console
from ..wiring.broker import opened_log, require_memory
from ..wiring.settings import Settings

SPRING = "kafka_dlt-"
OURS = "memstream-"
TOPICS = tuple(topic.name for topic in catalogue() if topic.name.endswith(DEAD_LETTER_SUFFIX))


@click.group()
def dlq() -> None:
    """Look at dead letters."""


@dlq.command("list")
@click.option("--topic", help="List only this topic's (memory.turns or memory.turns.dlq).")
@click.option("--tenant", type=options.GIVEN_ID, help="List only this tenant's.")
@options.as_json
@pass_context
def list_dead_letters(context: CommandContext, topic: str | None, tenant: str | None, as_json: bool) -> None:
    """List dead letters: their position, where they came from, and why they were refused."""
    names = TOPICS if topic is None else (_dead_letter_topic(topic),)
    rows = run(_list(context.settings, names, tenant))
    if as_json:
        for row in rows:
            console.line(row)
        return
    columns = ("topic", "partition", "offset", "reason", "stage", "tenant", "message")
    cells = [[str(row[column] if row[column] is not None else "") for column in columns] for row in rows]
    console.table(columns, cells, empty="no dead letters")


@dlq.command("show")
@click.argument("topic")
@click.argument("partition", type=click.IntRange(min=0))
@click.argument("offset", type=click.IntRange(min=0))
@options.as_json
@pass_context
def show_dead_letter(context: CommandContext, topic: str, partition: int, offset: int, as_json: bool) -> None:
    """Show one dead letter with its headers, key and value."""
    record = run(_one(context.settings, _dead_letter_topic(topic), partition, offset))
    fields = summary(record) | _raw(record)
    headers = [(name, _text(value)) for name, value in record.headers]
    if as_json:
        console.line(fields | {"headers": [[name, value] for name, value in headers]})
        return
    for name, value in (*fields.items(), *((f"header {name}", value) for name, value in headers)):
        click.echo(f"{name}: {console.printable(str(value))}")


async def _list(settings: Settings, names: tuple[str, ...], tenant: str | None) -> list[dict[str, JsonValue]]:
    require_memory(settings.broker_folder)
    async with opened_log(settings) as log:
        rows = [summary(record) async for name in _present(log, names) async for record in log.read(name)]
    return [row for row in rows if tenant is None or row["tenant"] == tenant]


async def _present(log: Log, names: tuple[str, ...]) -> AsyncIterator[str]:
    for name in names:
        if await log.partitions(name) is not None:
            yield name


async def _one(settings: Settings, topic: str, partition: int, offset: int) -> Record:
    require_memory(settings.broker_folder)
    async with opened_log(settings) as log:
        count = await log.partitions(topic)
        if count is None or partition >= count:
            raise usage(f"{topic} has no partition {partition}")
        if await log.first_at_or_after(topic, partition, offset) == offset:
            async with aclosing(log.read(topic, start={partition: offset})) as records:
                async for record in records:
                    return record
    raise CommandFailed(Exit.PARTLY, f"there is no record at {topic}, partition {partition}, offset {offset}")


def summary(record: Record) -> dict[str, JsonValue]:
    """Return one dead letter as a row. A header that is missing is null."""
    headers = {name: _text(value) for name, value in record.headers}
    position = record.position

    def number(name: str) -> int | None:
        value = headers.get(name, "")
        return int(value) if value.lstrip("-").isdigit() and value.isascii() else None

    return {
        "topic": position.topic,
        "partition": position.partition,
        "offset": position.offset,
        "reason": headers.get(f"{OURS}reason"),
        "stage": headers.get(f"{OURS}stage"),
        "tenant": headers.get(f"{OURS}tenant"),
        "attempts": number(f"{OURS}attempts"),
        "message": headers.get(f"{SPRING}exception-message"),
        "exception": headers.get(f"{SPRING}exception-fqcn"),
        "original_topic": headers.get(f"{SPRING}original-topic"),
        "original_partition": number(f"{SPRING}original-partition"),
        "original_offset": number(f"{SPRING}original-offset"),
        "original_timestamp": number(f"{SPRING}original-timestamp"),
    }


def _raw(record: Record) -> dict[str, JsonValue]:
    """Return key and value as text if they are UTF-8, else as base64 under another name."""
    fields: dict[str, JsonValue] = {}
    for name, value in (("key", record.key), ("value", record.value)):
        if value is None:
            fields[name] = None
            continue
        try:
            fields[name] = value.decode()
        except UnicodeDecodeError:
            fields[f"{name}_base64"] = base64.b64encode(value).decode()
    return fields


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _dead_letter_topic(topic: str) -> str:
    name = topic if topic.endswith(DEAD_LETTER_SUFFIX) else topic + DEAD_LETTER_SUFFIX
    if name not in TOPICS:
        known = ", ".join(each.removesuffix(DEAD_LETTER_SUFFIX) for each in TOPICS)
        what = "no stage reads it" if topic in BY_NAME else "there is no such topic"
        raise usage(f"{topic}: {what}, so it has no dead letters. Topics with dead letters: {known}")
    return name
