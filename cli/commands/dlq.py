"""`memstream dlq list|show|redrive`: list dead letters, show one, or put them back on their topics."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final, get_args

import click
from pydantic import JsonValue

from ...schemas.errors import DeadLetterReason
from ...schemas.topics import BY_NAME, DEAD_LETTER_SUFFIX, STAGES
from ...streams.log.port import Log, Record
from ...tools.audit_topic import AuditPublisher
from ...tools.dead_letters.letters import (
    LETTER_TOPICS,
    DeadLetter,
    LetterFilter,
    letter_content,
    letter_of,
    letter_topic,
)
from ...tools.dead_letters.reader import DeadLetterReader
from ...tools.dead_letters.redriver import Redriver, RedriveStep
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import CommandFailed, Exit, usage
from ..output import console
from ..process.account import account
from ..wiring.broker import opened_log, require_memory
from ..wiring.command_runs import start_audit
from ..wiring.settings import Settings

FIRST: Final = (
    "topic",
    "partition",
    "offset",
    "reason",
    "stage",
    "tenant_id",
    "attempts",
    "message",
    "exception",
    "original_topic",
    "original_partition",
    "original_offset",
    "original_timestamp",
)
"""The first fields of a row, in their order. `tenant_id` is named `tenant`."""
COLUMNS = ("topic", "partition", "offset", "reason", "stage", "tenant", "message")
PAGE: Final = 200
"""Rows per printed table."""
DEFAULT_RATE: Final = 100.0
"""Records per second."""
PROGRESS_EVERY: Final = 5.0
"""Seconds between two progress lines."""


_topic = click.option("--topic", help="Only dead letters of this topic (memory.turns or memory.turns.dlq).")
_tenant = click.option("--tenant", type=options.GIVEN_ID, help="Only dead letters of this tenant.")
_user = click.option("--user", type=options.GIVEN_ID, help="Only dead letters about this user.")
_stage = click.option("--stage", type=click.Choice(STAGES), help="Only dead letters of this stage.")
_reason = click.option(
    "--reason", type=click.Choice(get_args(DeadLetterReason)), help="Only dead letters with this reason."
)


@click.group()
def dlq() -> None:
    """List and show dead letters, and put them back on their topics."""


@dlq.command("list")
@_topic
@_tenant
@_user
@_stage
@_reason
@options.as_json
@pass_context
def list_dead_letters(
    context: CommandContext,
    topic: str | None,
    tenant: str | None,
    user: str | None,
    stage: str | None,
    reason: str | None,
    as_json: bool,
) -> None:
    """List dead letters with position, stage, tenant and the reason for the refusal."""
    chosen = LetterFilter(reason=reason, tenant=tenant, user=user, stage=stage)
    run(_list(context.settings, _names(topic), chosen, as_json))


@dlq.command("show")
@click.argument("topic")
@click.argument("partition", type=click.IntRange(min=0))
@click.argument("offset", type=click.IntRange(min=0))
@options.as_json
@pass_context
def show_dead_letter(context: CommandContext, topic: str, partition: int, offset: int, as_json: bool) -> None:
    """Show one dead letter with its headers, key and value. `memstream dlq list` has its position."""
    record = run(_one(context.settings, _dead_letter_topic(topic), partition, offset))
    content = letter_content(record)
    fields = letter_row(letter_of(record)) | {
        name: value
        for name, value in content.model_dump(include={"key", "key_base64", "value", "value_base64"}).items()
        if value is not None or (name in ("key", "value") and getattr(content, f"{name}_base64") is None)
    }
    if as_json:
        console.line(fields | {"headers": [[name, value] for name, value in content.headers]})
        return
    for name, value in (*fields.items(), *((f"header {name}", value) for name, value in content.headers)):
        console.say(f"{name}: {console.printable(str(value))}")


@dlq.command("redrive")
@_topic
@_reason
@click.option("--key", help="Only dead letters with this record key, such as a session key.")
@_tenant
@_user
@_stage
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
    user: str | None,
    stage: str | None,
    limit: int | None,
    rate: float,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Put dead letters back on their topics. Each dead letter is put back at most once."""
    chosen = LetterFilter(reason=reason, key=key, tenant=tenant, user=user, stage=stage)
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
    start_audit(settings)
    failures, reported = 0, time.monotonic()
    async with opened_log(settings, make_topics=False) as log, AuditPublisher(log=log).running():
        redriver = Redriver(
            log=log,
            chosen=chosen,
            rate=rate,
            who=f"cli:{account()}",
            limit=limit,
            dry_run=dry_run,
            progress=console.advice,
        )
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
    row = letter_row(letter_of(step.letter))
    masked = step.redrive is not None and step.redrive.masked
    if as_json:
        console.line(row | {"action": step.action, "masked": masked, "why": step.why or None})
        return
    position = step.letter.position
    text = f"{step.action.replace('_', ' ')}: {position.topic}/{position.partition}@{position.offset} {row['reason']}"
    text += f" ({step.why})" if step.why else ""
    text += " (a secret in it stays masked)" if masked else ""
    console.say(console.printable(text))


async def _list(settings: Settings, names: tuple[str, ...], chosen: LetterFilter, as_json: bool) -> None:
    """Print the letters while they are read, as JSON lines or as tables of PAGE letters."""
    require_memory(settings.broker_folder)
    page: list[list[str]] = []
    found = False
    async with opened_log(settings) as log:
        async for name in _present(log, names):
            async with aclosing(log.read(name)) as letters:
                async for letter in letters:
                    read = letter_of(letter)
                    if not chosen.matches(read):
                        continue
                    found, row = True, letter_row(read)
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
        record = await DeadLetterReader(log).record(topic, partition, offset)
    if record is not None:
        return record
    raise CommandFailed(Exit.PARTLY, f"there is no record at {topic}, partition {partition}, offset {offset}")


def letter_row(letter: DeadLetter) -> dict[str, JsonValue]:
    """Return a dead letter as a row of the output. The field of a missing header is None."""
    fields = letter.model_dump(mode="json")
    first = {"tenant" if name == "tenant_id" else name: fields.pop(name) for name in FIRST}
    return first | fields


def _names(topic: str | None) -> tuple[str, ...]:
    return LETTER_TOPICS if topic is None else (_dead_letter_topic(topic),)


def _dead_letter_topic(topic: str) -> str:
    name = letter_topic(topic)
    if name is None:
        known = ", ".join(each.removesuffix(DEAD_LETTER_SUFFIX) for each in LETTER_TOPICS)
        what = "no stage reads it" if topic in BY_NAME else "there is no such topic"
        raise usage(f"{topic}: {what}, so it has no dead letters. Topics with dead letters: {known}")
    return name
