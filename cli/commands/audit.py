"""`memstream audit`: the audit trail on memory.audit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime

import click

from ...schemas.audit import AUDIT_PAGE_MAX, AuditRecord
from ...schemas.cloudevents import rfc3339
from ...tools.audit import line_of
from ...tools.audit_topic import AuditQuery, AuditReader
from .. import options
from ..context import CommandContext, pass_context, run
from ..output import console
from ..wiring.broker import opened_log, require_memory
from ..wiring.settings import Settings

COLUMNS = ("at", "who", "action", "tenant", "owner", "result", "ids")
NOT_IDS = frozenset({"audit_id", "at", "who", "action", "tenant_id", "owner", "result"})


@click.command()
@click.option("--tenant", type=options.GIVEN_ID, help="Only this tenant. [default: all, and denials without a tenant]")
@click.option("--user", type=options.GIVEN_ID, help="Only actions on the memory of this user.")
@click.option("--who", help="Only this caller: the name of a token, oidc:<subject> or cli:<account>.")
@click.option("--action", help="Only this action, such as facts.forget or turns.produce.")
@click.option("--result", help="Only this result, such as denied.")
@click.option("--since", type=options.MOMENT, help="Only actions at this time or later.")
@click.option("--until", type=options.MOMENT, help="Only actions before this time.")
@click.option("--limit", type=click.IntRange(min=1), help="Stop after this number of records. [default: all]")
@options.as_json
@pass_context
def audit(
    context: CommandContext,
    tenant: str | None,
    user: str | None,
    who: str | None,
    action: str | None,
    result: str | None,
    since: datetime | None,
    until: datetime | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Print the audit trail, oldest first: who did what, to whose memory, when, and with which result."""
    query = AuditQuery(tenant_id=tenant, user_id=user, who=who, action=action, result=result, since=since, until=until)
    run(_print(context.settings, query, limit, as_json))


async def _print(settings: Settings, query: AuditQuery, limit: int | None, as_json: bool) -> None:
    rows = []
    async for record in _records(settings, query, limit):
        if as_json:
            console.say(line_of(record))
        else:
            rows.append(_row(record))
    if not as_json:
        console.table(COLUMNS, rows, empty="no record")


async def _records(settings: Settings, query: AuditQuery, limit: int | None) -> AsyncIterator[AuditRecord]:
    require_memory(settings.broker_folder)
    async with opened_log(settings) as log:
        reader, cursor, left = AuditReader(log), None, limit
        while left is None or left > 0:
            page = await reader.page(query, limit=AUDIT_PAGE_MAX if left is None else left, cursor=cursor)
            for record in page.items:
                yield record
            left = None if left is None else left - len(page.items)
            if page.next is None:
                return
            cursor = page.next


def _row(record: AuditRecord) -> tuple[str, ...]:
    owner = "-" if record.owner is None else f"{record.owner.scope} {record.owner.id}"
    fields = record.to_payload()
    named = [f"{name}={value}" for name, value in fields.items() if value is not None and name not in NOT_IDS]
    return (
        rfc3339(record.at),
        record.who,
        record.action,
        record.tenant_id or "-",
        owner,
        record.result,
        " ".join(named) or "-",
    )
