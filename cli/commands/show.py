"""`memstream show facts|episodes|working|digest|turns`: records of memory, read from Qdrant."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeVar, get_args

import click
from pydantic import JsonValue

from ...recall.paging import PAGE_MAX, Page
from ...recall.record_filters import ALL, EVERY, RecordSelection
from ...recall.record_reader import TURNS_MAX, RecordReader, said_in_order
from ...recall.slots import select_slots
from ...schemas.base import Contract
from ...schemas.digests import Digest
from ...schemas.episodes import Episode
from ...schemas.facts import Fact, FactState
from ...schemas.observations import Category
from ...schemas.turns import Scope
from ...schemas.working_set import StoredMessage, StoredWorkingEntry
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import usage
from ..output import console
from ..wiring.ports import open_ports
from ..wiring.settings import Settings
from .recall import tenant_policy

Row = dict[str, JsonValue]
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
R = TypeVar("R")


# ------------------------------------------------------------------------------------------------ kinds of records
async def _facts(reader: RecordReader, selection: RecordSelection, limit: int | None) -> Sequence[Fact]:
    if limit is None:
        return await reader.every_fact(selection)
    return await _newest(lambda cursor, size: reader.facts(selection, limit=size, cursor=cursor), limit)


async def _episodes(reader: RecordReader, selection: RecordSelection, limit: int | None) -> Sequence[Episode]:
    if limit is None:
        return await reader.every_episode(selection)
    return await _newest(lambda cursor, size: reader.episodes(selection, limit=size, cursor=cursor), limit)


async def _working(reader: RecordReader, selection: RecordSelection, limit: int | None) -> Sequence[StoredWorkingEntry]:
    """Read the first `limit` entries, sorted by session and salience."""
    return (await reader.every_entry(selection))[:limit]


async def _digests(reader: RecordReader, selection: RecordSelection, limit: int | None) -> Sequence[Digest]:
    """Read the first `limit` digests, sorted by owner."""
    return (await reader.every_digest(selection))[:limit]


async def _messages(reader: RecordReader, selection: RecordSelection, limit: int | None) -> Sequence[StoredMessage]:
    if limit is None:
        return await reader.every_message(selection)
    turns = await _newest(
        lambda cursor, size: reader.log(selection, limit=min(size, TURNS_MAX), cursor=cursor), limit
    )  # `limit` turns are enough: each turn has at least one message
    return sorted((message for turn in turns for message in turn.messages), key=said_in_order)[-limit:]


async def _newest(page: Callable[[str | None, int], Awaitable[Page[R]]], limit: int) -> list[R]:
    """Read the newest `limit` records. Return them oldest first."""
    found: list[R] = []
    cursor: str | None = None
    while len(found) < limit:
        got = await page(cursor, min(limit - len(found), PAGE_MAX))
        found += got.items
        cursor = got.next
        if cursor is None:
            break
    return found[::-1]


@dataclass(frozen=True, slots=True)
class RecordKind:
    """Kind of records to show: its read function and its table columns."""

    read: Callable[[RecordReader, RecordSelection, int | None], Awaitable[Sequence[Contract]]]
    columns: tuple[str, ...]


KINDS: dict[str, RecordKind] = {
    "facts": RecordKind(_facts, ("subject", "content", "category", "state", "fact_id")),
    "episodes": RecordKind(_episodes, ("occurred_at", "subject", "content", "category", "importance", "evidence")),
    "working": RecordKind(
        _working, ("session_id", "subject", "content", "category", "durability", "salience", "pinned")
    ),
    "digest": RecordKind(_digests, ("owner", "text", "at")),
    "turns": RecordKind(_messages, ("occurred_at", "session_id", "turn_id", "role", "content")),
}


@click.command()
@click.argument("what", type=click.Choice(list(KINDS)))
@options.tenant
@click.option(
    "--user", type=options.GIVEN_ID, help="Show only records of this user. [default: all owners of the tenant]"
)
@click.option("--session", type=options.GIVEN_ID, help="Show only records of this session.")
@click.option("--scope", type=click.Choice(get_args(Scope)), help="Scope of an owner; needs --id and replaces --user.")
@click.option("--id", "owner_id", type=options.GIVEN_ID, help="Id of an owner; needs --scope.")
@click.option(
    "--state", type=click.Choice([*get_args(FactState), ALL]), help="Show facts in this state. [default: active]"
)
@click.option("--subject", help="Show only records about this subject (not for turns).")
@click.option(
    "--category", type=click.Choice(get_args(Category)), help="Show only records of this category (not for turns)."
)
@click.option(
    "--as-of",
    type=options.MOMENT,
    help=f"Show records that were valid at this time (facts, episodes). {options.END_OF_DAY}",
)
@click.option(
    "--known-at",
    type=options.MOMENT,
    help=f"Show facts as believed at this time, or episodes recorded until this time. {options.END_OF_DAY}",
)
@click.option(
    "--tag",
    "tags",
    multiple=True,
    help="Show only facts and episodes with this tag; may be repeated, then with all these tags.",
)
@click.option("--slot", "slots", multiple=True, help="Show only facts of this slot; may be repeated.")
@click.option("--min-confidence", type=click.FloatRange(0, 1), help="Show only facts of at least this confidence.")
@click.option("--limit", type=click.IntRange(min=1), help="Show only the newest N records. [default: all]")
@options.as_json
@pass_context
def show(
    context: CommandContext,
    what: str,
    tenant: str,
    user: str | None,
    session: str | None,
    scope: str | None,
    owner_id: str | None,
    state: FactState | Literal["all"] | None,
    subject: str | None,
    category: Category | None,
    as_of: datetime | None,
    known_at: datetime | None,
    tags: tuple[str, ...],
    slots: tuple[str, ...],
    min_confidence: float | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Show memory: facts, episodes, the working set, the digest, or turns word by word."""
    owner = options.owner_of(user=user, scope=scope, owner_id=owner_id)
    in_sessions = what in ("working", "turns")
    for option, moment in (("--as-of", as_of), ("--known-at", known_at)):
        if moment is not None and (in_sessions or what == "digest"):
            raise usage(f"{option} applies to facts and episodes only")
    if what in ("turns", "digest") and (subject, category) != (None, None):
        raise usage(f"--subject and --category do not apply to {what}")
    if what == "digest" and session is not None:
        raise usage("--session does not apply to digest: an owner has one digest for all sessions")
    if tags and what not in ("facts", "episodes"):
        raise usage(f"--tag applies to facts and episodes, not to {what}")
    if slots and what != "facts":
        raise usage(f"--slot applies to facts only, not to {what}")
    if min_confidence is not None and what != "facts":
        raise usage("--min-confidence applies to facts only")
    if state not in (None, "active", ALL) and what != "facts":
        raise usage(f"--state {state} applies to facts only")
    policy = run(tenant_policy(context.settings, context.policy, tenant, None)) if slots else context.policy
    try:
        selected = select_slots(slots, policy)
    except ValueError as error:
        raise usage(str(error)) from error
    selection = RecordSelection(
        tenant,
        owner=None if in_sessions and user is not None else owner,  # records of a user's session may have another owner
        user_id=user,
        session_id=session,
        state=EVERY if state == ALL else state,
        subject=subject,
        category=category,
        as_of=as_of,
        known_at=known_at,
        ceiling="secret",
        tags=tags,
        min_confidence=min_confidence,
        slots=selected,
    )
    kind = KINDS[what]
    rows = run(_rows(context.settings, kind, selection, limit))
    if as_json:
        for row in rows:
            console.line(row)
    else:
        cells = [[_cell(row.get(column)) for column in kind.columns] for row in rows]
        empty = f"tenant {tenant} has no {what} that match"
        console.table(kind.columns, cells, empty=empty, text="text" if what == "digest" else "content")


async def _rows(settings: Settings, kind: RecordKind, selection: RecordSelection, limit: int | None) -> list[Row]:
    async with open_ports(settings, purpose="show") as ports:
        return [each.to_payload() for each in await kind.read(RecordReader(store=ports.store), selection, limit)]


def _cell(value: JsonValue) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, str) and _TIME.fullmatch(value):
        return f"{value[:19]}Z"  # seconds are enough for people; --json has the fraction
    if isinstance(value, dict):
        return " ".join(_cell(each) for each in value.values())
    return str(value)
