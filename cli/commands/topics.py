"""`memstream topics create|check|grow|acls`: create and compare the topics, add partitions, print the rights."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict

import click

from ...agents.observer.rows import waiting_turns
from ...schemas.access import accesses
from ...streams.faust.growth import GrownTopic, GrowthRefused, StillWaiting, TopicGrowth
from ...streams.log import topic_admin
from ...streams.log.topic_admin import TopicReport
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import CommandFailed, Exit, usage
from ..output import console
from ..output.acl_forms import kafka_acls, strimzi_user
from ..wiring.broker import deployment, opened_log, require_memory
from ..wiring.ports import own_folders
from ..wiring.settings import Settings

ROLES = tuple(access.role for access in accesses())
FORMATS = ("table", "kafka-acls", "strimzi")
GROWN = ("topic", "before", "partitions", "rows", "moved", "again")
PARTITIONS_MAX = 10_000
PATIENCE = 0.0
"""Seconds to wait for the folder's lock. Waiting is useless: a running worker does not release the lock."""


@click.group()
def topics() -> None:
    """Create the topics, compare them with the catalogue, or increase their partition count."""


@topics.command()
@options.as_json
@pass_context
def create(context: CommandContext, as_json: bool) -> None:
    """Create missing topics; existing topics stay unchanged. Exit 1 if a topic still differs from the catalogue."""
    _report(run(_create(context.settings)), as_json)


@topics.command()
@options.as_json
@pass_context
def check(context: CommandContext, as_json: bool) -> None:
    """Compare the topics with the catalogue. Exit 1 if a topic differs."""
    _report(run(_check(context.settings)), as_json)


@topics.command()
@click.option("--partitions", type=click.IntRange(1, PARTITIONS_MAX), required=True, help="The new partition count.")
@options.as_json
@pass_context
def grow(context: CommandContext, partitions: int, as_json: bool) -> None:
    """Increase the partition count of the topics, and move every row of the tables to the partition of its key.

    First wait until all turns are observed and reflected, then stop all workers. The command may be interrupted and
    repeated. Afterwards start the workers with MEMSTREAM_PARTITIONS set to the new count. Exit 1: turns still wait to
    be observed or reflected. Exit 2: workers run, or the new count is below the present count. Exit 4: rows cannot be
    placed.
    """
    grown = run(_grow(context.settings, partitions))
    if as_json:
        for each in grown:
            console.line(asdict(each))
    else:
        rows = [[str(value) for value in asdict(each).values()] for each in grown]
        console.table(GROWN, rows, empty="no topics")
    console.advice(f"done: start the workers with MEMSTREAM_PARTITIONS={partitions}")


@topics.command()
@click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), help="A role; by default all roles.")
@click.option("--principal", help="The principal of the role, such as User:CN=observer. By default User:<role>.")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="The form of the output."
)
@options.as_json
def acls(roles: Sequence[str], principal: str | None, form: str, as_json: bool) -> None:
    """Print the rights that each role needs at the broker. No broker is asked."""
    if principal is not None and len(roles) != 1:
        raise usage("--principal needs exactly one --role")
    chosen = [access for access in accesses() if access.role in (roles or ROLES)]
    rights = [(access.role, principal or f"User:{access.role}", access.acls()) for access in chosen]
    if as_json:
        for role, user, rules in rights:
            for rule in rules:
                console.line({"role": role, "principal": user, **asdict(rule)})
    elif form == "kafka-acls":
        for _, user, rules in rights:
            console.say("\n".join(kafka_acls(user, rules)))
    elif form == "strimzi":
        for role, _, rules in rights:
            console.say(strimzi_user(role, rules))
    else:
        rows = [
            [role, rule.resource, rule.name, ", ".join(rule.operations)] for role, _, rules in rights for rule in rules
        ]
        console.table(("role", "resource", "name", "operations"), rows, empty="no rights")


async def _grow(settings: Settings, partitions: int) -> list[GrownTopic]:
    require_memory(settings.broker_folder)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(own_folders(settings, purpose="topics grow", patience=PATIENCE))
        log = await stack.enter_async_context(opened_log(settings, make_topics=False))
        growth = TopicGrowth(log, partitions=partitions, waiting_turns=waiting_turns, tell=console.advice)
        try:
            return await growth.run()
        except GrowthRefused as error:
            raise usage(str(error)) from error
        except StillWaiting as error:
            raise CommandFailed(Exit.PARTLY, str(error)) from error


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
        console.table(("topic", "", "detail", "fix"), rows, empty="no topics", text="detail")
    if not all(report.ok for report in reports):
        raise SystemExit(Exit.PARTLY)
