"""`memstream show facts|episodes|working|turns`: what is remembered, read from Qdrant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

import click
from pydantic import JsonValue
from qdrant_client import models

from ...adapters.ports import Found
from ...schemas.collections import EPISODES, FACTS, TURNS, WORKING
from ...schemas.episodes import StoredEpisode
from ...schemas.facts import FactState, StoredFact
from ...schemas.turns import Scope
from ...schemas.working import StoredMessage, StoredWorkingEntry
from .. import options, output
from ..context import CommandContext, pass_context, run
from ..errors import usage
from ..reading import ALL, Wanted, episodes_filter, facts_filter, owner_of, session_filter
from ..settings import Settings
from ..wiring import opened

Row = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the things that can be shown: where it lies, how it is asked for, put in order and told to a person."""

    collection: str
    where: Callable[[str, Wanted], models.Filter]
    record: Callable[[Found], Row]
    order: tuple[str, ...]
    columns: tuple[str, ...]


def _fact(found: Found) -> Row:
    return StoredFact.from_payload(found.payload).public().to_payload()


def _episode(found: Found) -> Row:
    return StoredEpisode.from_payload(found.payload).public().to_payload()


def _working(found: Found) -> Row:
    return StoredWorkingEntry.from_payload(found.payload).to_payload()


def _message(found: Found) -> Row:
    return StoredMessage.from_payload(found.payload).to_payload()


KINDS: dict[str, Kind] = {
    "facts": Kind(
        FACTS,
        facts_filter,
        _fact,
        ("recorded_at", "fact_id"),
        ("subject", "content", "category", "state", "fact_id"),
    ),
    "episodes": Kind(
        EPISODES,
        episodes_filter,
        _episode,
        ("occurred_at", "recorded_at", "episode_id"),
        ("occurred_at", "subject", "content", "category", "importance", "evidence"),
    ),
    "working": Kind(
        WORKING,
        session_filter,
        _working,
        ("user_id", "session_id", "-salience", "entry_id"),
        ("session_id", "subject", "content", "category", "durability", "salience", "pinned"),
    ),
    "turns": Kind(
        TURNS,
        session_filter,
        _message,
        ("occurred_at", "session_id", "turn_id", "message_index"),
        ("occurred_at", "session_id", "turn_id", "role", "content"),
    ),
}


@click.command()
@click.argument("what", type=click.Choice(list(KINDS)))
@options.tenant
@click.option("--user", type=options.GIVEN_ID, help="Only this user's. [default: all owners of the tenant]")
@click.option("--session", type=options.GIVEN_ID, help="Only of this session.")
@click.option("--scope", type=click.Choice(get_args(Scope)), help="Whose: with --id, instead of --user.")
@click.option("--id", "owner_id", type=options.GIVEN_ID, help="The owner's id, with --scope.")
@click.option("--state", type=click.Choice([*get_args(FactState), ALL]), help="Facts in this state. [default: active]")
@click.option("--as-of", type=options.MOMENT, help="What was valid then (facts, episodes).")
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
    state: str | None,
    as_of: datetime | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Show what is remembered: facts, episodes, the working set, or turns word by word."""
    try:
        owner = owner_of(user=user, scope=scope, owner_id=owner_id)
    except ValueError as error:
        raise usage(str(error)) from error
    if as_of is not None and what not in ("facts", "episodes"):
        raise usage("--as-of is for facts and episodes")
    if state not in (None, "active", ALL) and what != "facts":
        raise usage(f"--state {state} is for facts")
    wanted = Wanted(owner=owner, user_id=user, session_id=session, state=state, as_of=as_of)
    kind = KINDS[what]
    rows = run(_rows(context.settings, kind, tenant, wanted, limit))
    if as_json:
        for row in rows:
            output.line(row)
    else:
        cells = [[_cell(row.get(column)) for column in kind.columns] for row in rows]
        output.table(kind.columns, cells, empty=f"no {what} of tenant {tenant} that fit")


async def _rows(settings: Settings, kind: Kind, tenant: str, wanted: Wanted, limit: int | None) -> list[Row]:
    """In order; the newest `limit` (of the working set: the most salient)."""
    async with opened(settings, purpose="show") as ports:
        if not await ports.store.exists(kind.collection):
            return []
        found = await ports.store.select(kind.collection, tenant_id=tenant, where=kind.where(tenant, wanted))
    rows = sorted((kind.record(each) for each in found), key=lambda row: _rank(row, kind.order))
    if limit is None:
        return rows
    return rows[:limit] if kind.collection == WORKING else rows[-limit:]


def _rank(row: Row, order: Sequence[str]) -> tuple[Any, ...]:
    """Times compare as times: with and without fractions of a second."""
    rank: list[Any] = []
    for name in order:
        value: Any = row[name.removeprefix("-")]
        if name.startswith("-"):
            value = -value
        elif name.endswith("_at"):
            value = datetime.fromisoformat(value)
        rank.append(value)
    return tuple(rank)


def _cell(value: JsonValue) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value)
