"""`memstream topics create|check`: create the topics of the catalogue, or compare them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from ...streams.log import topic_admin
from ...streams.log.topic_admin import TopicReport
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import Exit
from ..output import console
from ..wiring.broker import deployment, opened_log
from ..wiring.settings import Settings


@click.group()
def topics() -> None:
    """Create the topics, or compare them with the catalogue."""


@topics.command()
@options.as_json
@pass_context
def create(context: CommandContext, as_json: bool) -> None:
    """Create missing topics; existing ones stay as they are. Exit 1 if something still differs."""
    _report(run(_create(context.settings)), as_json)


@topics.command()
@options.as_json
@pass_context
def check(context: CommandContext, as_json: bool) -> None:
    """Compare the topics with the catalogue. Exit 1 if something differs."""
    _report(run(_check(context.settings)), as_json)


async def _create(settings: Settings) -> list[TopicReport]:
    async with opened_log(settings, make_topics=False) as log:
        return await topic_admin.create(log, deployment=deployment(settings))


async def _check(settings: Settings) -> list[TopicReport]:
    async with opened_log(settings, make_topics=False) as log:
        return await topic_admin.check(log, deployment=deployment(settings))


def _report(reports: Sequence[TopicReport], as_json: bool) -> None:
    if as_json:
        for report in reports:
            console.line(asdict(report))
    else:
        rows = [(report.topic, "ok" if report.ok else "WRONG", report.detail, report.fix) for report in reports]
        console.table(("topic", "", "detail", "fix"), rows, empty="no topics")
    if not all(report.ok for report in reports):
        raise SystemExit(Exit.PARTLY)
