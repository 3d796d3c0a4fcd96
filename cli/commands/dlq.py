"""`memstream dlq list|show`: what was refused, and why."""

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
from ..wiring.broker import opened_log
from ..wiring.settings import Settings

SPRING = "kafka_dlt-"
OURS = "memstream-"
TOPICS = tuple(topic.name for topic in catalogue() if topic.name.endswith(DEAD_LETTER_SUFFIX))


@click.group()
def dlq() -> None:
    """Look at dead letters."""


@dlq.command("list")
@click.option("--topic", help="Only of this topic (memory.turns, or memory.turns.dlq).")
@click.option("--tenant", type=options.GIVEN_ID, help="Only of this tenant.")
@options.as_json
@pass_context
def list_letters(context: CommandContext, topic: str | None, tenant: str | None, as_json: bool) -> None:
    """List dead letters: where they lie, from where they came, and why they were refused."""
    names = TOPICS if topic is None else (_letters_of(topic),)
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
def show_letter(context: CommandContext, topic: str, partition: int, offset: int, as_json: bool) -> None:
    """Show one dead letter whole: headers, key and value as they came."""
    record = run(_one(context.settings, _letters_of(topic), partition, offset))
    fields = summary(record) | _raw(record)
    headers = [(name, _text(value)) for name, value in record.headers]
    if as_json:
        console.line(fields | {"headers": [[name, value] for name, value in headers]})
        return
    for name, value in (*fields.items(), *((f"header {name}", value) for name, value in headers)):
        click.echo(f"{name}: {console.printable(str(value))}")


async def _list(settings: Settings, names: tuple[str, ...], tenant: str | None) -> list[dict[str, JsonValue]]:
    async with opened_log(settings) as log:
        rows = [summary(record) async for name in _present(log, names) async for record in log.read(name)]
    return [row for row in rows if tenant is None or row["tenant"] == tenant]


async def _present(log: Log, names: tuple[str, ...]) -> AsyncIterator[str]:
    for name in names:
        if await log.partitions(name) is not None:
            yield name


async def _one(settings: Settings, topic: str, partition: int, offset: int) -> Record:
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
    """One dead letter in a line; what its headers do not say is null."""
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
    """Key and value as text where they are UTF-8, else under another name as base64."""
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


def _letters_of(topic: str) -> str:
    name = topic if topic.endswith(DEAD_LETTER_SUFFIX) else topic + DEAD_LETTER_SUFFIX
    if name not in TOPICS:
        known = ", ".join(each.removesuffix(DEAD_LETTER_SUFFIX) for each in TOPICS)
        what = "nobody reads it" if topic in BY_NAME else "there is no such topic"
        raise usage(f"{topic}: {what}, so it has no dead letters; those that have: {known}")
    return name
