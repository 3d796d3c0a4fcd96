"""`memstream dlq list|show|redrive`: list dead letters, show one, or put them back on their topics."""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final, get_args

import click
from pydantic import JsonValue

from ...schemas.errors import DeadLetterReason
from ...schemas.topics import BY_NAME, DEAD_LETTER_SUFFIX, catalogue
from ...streams.log.port import Log, Record
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import CommandFailed, Exit, usage
from ..output import console
from ..redrive import LetterFilter, Redriver, RedriveStep
from ..wiring.broker import opened_log, require_memory
from ..wiring.settings import Settings

SPRING = "kafka_dlt-"
OURS = "memstream-"
TOPICS = tuple(topic.name for topic in catalogue() if topic.name.endswith(DEAD_LETTER_SUFFIX))
COLUMNS = ("topic", "partition", "offset", "reason", "stage", "tenant", "message")
PAGE: Final = 200
"""Rows per printed table."""
DEFAULT_RATE: Final = 100.0
"""Records per second."""
PROGRESS_EVERY: Final = 5.0
"""Seconds between two progress lines."""


@click.group()
def dlq() -> None:
    """List and show dead letters, and put them back on their topics."""


@dlq.command("list")
@click.option("--topic", help="List only dead letters of this topic (memory.turns or memory.turns.dlq).")
@click.option("--tenant", type=options.GIVEN_ID, help="List only dead letters of this tenant.")
@options.as_json
@pass_context
def list_dead_letters(context: CommandContext, topic: str | None, tenant: str | None, as_json: bool) -> None:
    """List dead letters with position, stage, tenant and the reason for the refusal."""
    run(_list(context.settings, _names(topic), tenant, as_json))


@dlq.command("show")
@click.argument("topic")
@click.argument("partition", type=click.IntRange(min=0))
@click.argument("offset", type=click.IntRange(min=0))
@options.as_json
@pass_context
def show_dead_letter(context: CommandContext, topic: str, partition: int, offset: int, as_json: bool) -> None:
    """Show one dead letter with its headers, key and value. `memstream dlq list` has its position."""
    record = run(_one(context.settings, _dead_letter_topic(topic), partition, offset))
    fields = summary(record) | _raw(record)
    headers = [(name, _text(value)) for name, value in record.headers]
    if as_json:
        console.line(fields | {"headers": [[name, value] for name, value in headers]})
        return
    for name, value in (*fields.items(), *((f"header {name}", value) for name, value in headers)):
        console.say(f"{name}: {console.printable(str(value))}")


@dlq.command("redrive")
@click.option("--topic", help="Put back only dead letters of this topic (memory.turns or memory.turns.dlq).")
@click.option(
    "--reason",
    type=click.Choice(get_args(DeadLetterReason)),
    help="Put back only dead letters with this reason.",
)
@click.option("--key", help="Put back only dead letters with this record key, such as a session key.")
@click.option("--tenant", type=options.GIVEN_ID, help="Put back only dead letters of this tenant.")
@click.option("--limit", type=click.IntRange(min=1), help="Put back at most N dead letters.")
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_RATE,
    show_default=True,
    help="Send at most N records per second.",
)
@click.option("--dry-run", is_flag=True, help="Print the dead letters that would be put back, and send nothing.")
@options.as_json
@pass_context
def redrive_dead_letters(
    context: CommandContext,
    topic: str | None,
    reason: str | None,
    key: str | None,
    tenant: str | None,
    limit: int | None,
    rate: float,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Put dead letters back on their topics. Each dead letter is put back at most once."""
    chosen = LetterFilter(reason=reason, key=key, tenant=tenant)
    run(_redrive(context.settings, _names(topic), chosen, rate=rate, limit=limit, dry_run=dry_run, as_json=as_json))


async def _redrive(
    settings: Settings,
    names: tuple[str, ...],
    chosen: LetterFilter,
    *,
    rate: float,
    limit: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    require_memory(settings.broker_folder)
    failures, reported = 0, time.monotonic()
    async with opened_log(settings, make_topics=False) as log:
        redriver = Redriver(log=log, chosen=chosen, rate=rate, limit=limit, dry_run=dry_run, progress=console.advice)
        async with aclosing(redriver.run(names)) as steps:
            async for step in steps:
                failures += step.action == "failed"
                _print_step(step, as_json)
                if time.monotonic() - reported >= PROGRESS_EVERY:
                    reported = time.monotonic()
                    console.advice(f"{redriver.put_back} so far")
    verb = "would be put back" if dry_run else "put back"
    console.advice(f"{redriver.put_back} {verb}, {redriver.already} were put back before, {failures} failed")
    if failures:
        raise CommandFailed(Exit.PARTLY, f"{failures} dead letters cannot be put back")


def _print_step(step: RedriveStep, as_json: bool) -> None:
    row = summary(step.letter)
    masked = step.redrive is not None and step.redrive.masked
    if as_json:
        console.line(row | {"action": step.action, "masked": masked, "why": step.why or None})
        return
    position = step.letter.position
    text = f"{step.action.replace('_', ' ')}: {position.topic}/{position.partition}@{position.offset} {row['reason']}"
    text += f" ({step.why})" if step.why else ""
    text += " (a secret in it stays masked)" if masked else ""
    console.say(console.printable(text))


async def _list(settings: Settings, names: tuple[str, ...], tenant: str | None, as_json: bool) -> None:
    """Print the letters while they are read, as JSON lines or as tables of PAGE letters."""
    require_memory(settings.broker_folder)
    page: list[list[str]] = []
    found = False
    async with opened_log(settings) as log:
        async for name in _present(log, names):
            async with aclosing(log.read(name)) as letters:
                async for letter in letters:
                    row = summary(letter)
                    if tenant is not None and row["tenant"] != tenant:
                        continue
                    found = True
                    if as_json:
                        console.line(row)
                        continue
                    page.append([str(row[column] if row[column] is not None else "") for column in COLUMNS])
                    if len(page) == PAGE:
                        console.table(COLUMNS, page, empty="", text="message")
                        page.clear()
    if page or not (found or as_json):
        console.table(COLUMNS, page, empty="no dead letters", text="message")


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
    """Return one dead letter as a row. The field of a missing header is None."""
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
    """Return key and value as text if they are UTF-8, else as base64 in `key_base64` and `value_base64`."""
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


def _names(topic: str | None) -> tuple[str, ...]:
    return TOPICS if topic is None else (_dead_letter_topic(topic),)


def _dead_letter_topic(topic: str) -> str:
    name = topic if topic.endswith(DEAD_LETTER_SUFFIX) else topic + DEAD_LETTER_SUFFIX
    if name not in TOPICS:
        known = ", ".join(each.removesuffix(DEAD_LETTER_SUFFIX) for each in TOPICS)
        what = "no stage reads it" if topic in BY_NAME else "there is no such topic"
        raise usage(f"{topic}: {what}, so it has no dead letters. Topics with dead letters: {known}")
    return name
