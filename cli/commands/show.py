"""`memstream show facts|episodes|working|turns`: what is remembered, read from Qdrant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeVar, get_args

import click
from pydantic import JsonValue

from ...recall.paging import PAGE_MAX, Page
from ...recall.record_filters import ALL, RecordSelection
from ...recall.record_reader import TURNS_MAX, RecordReader, said_in_order
from ...schemas.base import Contract
from ...schemas.digests import Digest
from ...schemas.episodes import Episode
from ...schemas.facts import Fact, FactState
from ...schemas.observations import Category
from ...schemas.turns import Owner, Scope
from ...schemas.working_set import StoredMessage, StoredWorkingEntry
from .. import options
from ..context import CommandContext, pass_context, run
from ..errors import usage
from ..output import console
from ..wiring.ports import open_ports
from ..wiring.settings import Settings

Row = dict[str, JsonValue]
R = TypeVar("R")


# ------------------------------------------------------------------------------------------------ what can be shown
async def _facts(reading: RecordReader, wanted: RecordSelection, limit: int | None) -> Sequence[Fact]:
    if limit is None:
        return await reading.every_fact(wanted)
    return await _newest(lambda cursor, size: reading.facts(wanted, limit=size, cursor=cursor), limit)


async def _episodes(reading: RecordReader, wanted: RecordSelection, limit: int | None) -> Sequence[Episode]:
    if limit is None:
        return await reading.every_episode(wanted)
    return await _newest(lambda cursor, size: reading.episodes(wanted, limit=size, cursor=cursor), limit)


async def _working(reading: RecordReader, wanted: RecordSelection, limit: int | None) -> Sequence[StoredWorkingEntry]:
    """The first `limit` by session and salience."""
    return (await reading.every_entry(wanted))[:limit]


async def _digests(reading: RecordReader, wanted: RecordSelection, limit: int | None) -> Sequence[Digest]:
    """The first `limit` by owner."""
    return (await reading.every_digest(wanted))[:limit]


async def _messages(reading: RecordReader, wanted: RecordSelection, limit: int | None) -> Sequence[StoredMessage]:
    if limit is None:
        return await reading.every_message(wanted)
    turns = await _newest(
        lambda cursor, size: reading.log(wanted, limit=min(size, TURNS_MAX), cursor=cursor), limit
    )  # each has at least one message
    return sorted((message for turn in turns for message in turn.messages), key=said_in_order)[-limit:]


async def _newest(page: Callable[[str | None, int], Awaitable[Page[R]]], limit: int) -> list[R]:
    """The `limit` newest, oldest first."""
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
    """One of the things that can be shown: how it is read, and told to a person."""

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
@click.option("--user", type=options.GIVEN_ID, help="Only this user's. [default: all owners of the tenant]")
@click.option("--session", type=options.GIVEN_ID, help="Only of this session.")
@click.option("--scope", type=click.Choice(get_args(Scope)), help="Whose: with --id, instead of --user.")
@click.option("--id", "owner_id", type=options.GIVEN_ID, help="The owner's id, with --scope.")
@click.option("--state", type=click.Choice([*get_args(FactState), ALL]), help="Facts in this state. [default: active]")
@click.option("--subject", help="Only about this subject (not turns).")
@click.option("--category", type=click.Choice(get_args(Category)), help="Only of this category (not turns).")
@click.option("--as-of", type=options.MOMENT, help="What was valid then (facts, episodes).")
@click.option("--known-at", type=options.MOMENT, help="What was believed then (facts), recorded by then (episodes).")
@click.option("--limit", type=click.IntRange(min=1), help="Only the newest N. [default: all]")
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
    limit: int | None,
    as_json: bool,
) -> None:
    """Show what is remembered: facts, episodes, the working set, the digest, or turns word by word."""
    try:
        owner = _owner_of(user=user, scope=scope, owner_id=owner_id)
    except ValueError as error:
        raise usage(str(error)) from error
    in_sessions = what in ("working", "turns")
    for option, moment in (("--as-of", as_of), ("--known-at", known_at)):
        if moment is not None and (in_sessions or what == "digest"):
            raise usage(f"{option} is for facts and episodes")
    if what in ("turns", "digest") and (subject, category) != (None, None):
        raise usage(f"--subject and --category are not for {what}: it has neither")
    if what == "digest" and session is not None:
        raise usage("--session is not for digest: an owner has one over all sessions")
    if state not in (None, "active", ALL) and what != "facts":
        raise usage(f"--state {state} is for facts")
    wanted = RecordSelection(
        tenant,
        owner=None if in_sessions and user is not None else owner,  # others may own what is learnt in a user's sessions
        user_id=user,
        session_id=session,
        state=state,
        subject=subject,
        category=category,
        as_of=as_of,
        known_at=known_at,
        ceiling="secret",
    )
    kind = KINDS[what]
    rows = run(_rows(context.settings, kind, wanted, limit))
    if as_json:
        for row in rows:
            console.line(row)
    else:
        cells = [[_cell(row.get(column)) for column in kind.columns] for row in rows]
        console.table(kind.columns, cells, empty=f"no {what} of tenant {tenant} that fit")


async def _rows(settings: Settings, kind: RecordKind, wanted: RecordSelection, limit: int | None) -> list[Row]:
    async with open_ports(settings, purpose="show") as ports:
        return [each.to_payload() for each in await kind.read(RecordReader(store=ports.store), wanted, limit)]


def _owner_of(*, user: str | None, scope: str | None, owner_id: str | None) -> Owner | None:
    """`--user U`, or `--scope S --id X`; ValueError when they contradict each other."""
    if (scope is None) != (owner_id is None):
        raise ValueError("--scope and --id go together")
    if scope is not None and owner_id is not None:
        if user is not None and (scope, owner_id) != ("user", user):
            raise ValueError("--user and --scope/--id name two owners")
        return Owner.model_validate({"scope": scope, "id": owner_id})
    return None if user is None else Owner(scope="user", id=user)


def _cell(value: JsonValue) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, dict):
        return " ".join(_cell(each) for each in value.values())
    return str(value)
