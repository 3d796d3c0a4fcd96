"""Reads for the retraction of a turn and the erasure of a session: traces in the store, and waiting turns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from qdrant_client import models

from ...adapters.ports import VectorStore
from ...adapters.vectors.conditions import equals
from ...schemas import ids
from ...schemas.collections import EPISODES, FACTS, HOLDINGS, LABELS, TURNS, WORKING
from ...schemas.commands import Command
from ...schemas.turns import Owner
from ...streams.engine.codec import fields_of
from ...streams.engine.decision import Rows
from ...streams.engine.retry import Calls
from .edits.scope import Traces
from .rows import SessionRow, WaitingTurn, waiting_key

KEPT: Final = ("occurred_at", "time_zone", "scope", "agent_id", "group_id", "org_id", "ends_session")
"""Fields that a retracted turn keeps while it waits. They decide its owner, its time and the end of its session."""


async def session_traces(session: SessionRow, command: Command, *, store: VectorStore, calls: Calls) -> Traces:
    """Return the traces of all turns of the session, and the records of the session that the observer writes. Raises
    Transient."""
    traces = await turn_traces(session, command, None, store=store, calls=calls)
    points = await session_points(command, (LABELS, WORKING, HOLDINGS), store=store, calls=calls)
    return replace(traces, points=points)


async def session_points(
    command: Command, collections: Sequence[str], *, store: VectorStore, calls: Calls
) -> Mapping[str, tuple[str, ...]]:
    """Return the ids of the session's records, by collection. Raises Transient."""
    assert command.session is not None  # route refuses a command without a session
    named = (("user_id", command.session.user_id), ("session_id", command.session.session_id))
    where = models.Filter(must=[equals(*each) for each in named])
    found = {}
    for collection in collections:
        if not await calls.call("store", lambda c=collection: store.exists(c)):  # type: ignore[misc]
            continue
        points = await calls.call(
            "store",
            lambda c=collection: store.select(  # type: ignore[misc]
                c, tenant_id=command.tenant_id, where=where, fields=("session_id",)
            ),
        )
        found[collection] = tuple(each.id for each in points)
    return found


async def turn_traces(
    session: SessionRow, command: Command, turn_id: str | None, *, store: VectorStore, calls: Calls
) -> Traces:
    """Return the traces of a turn of the session; None: of all its turns. Raises Transient.

    The owners are the session's user, the owners of the session's row and of its entries, and the owners of stored
    messages, episodes and facts that name the turn. No other user is among them: a fact does not name the user of its
    turn, and another user may have the same ids of session and turn.
    """
    assert command.session is not None  # route refuses a command without a session
    user_id, messages = command.session.user_id, 0
    owners = [Owner(scope="user", id=user_id), session.owner, *(each.owner for each in session.origins)]
    for collection, prefix in ((TURNS, ""), (EPISODES, ""), (FACTS, "evidence[].")):
        if not await calls.call("store", lambda c=collection: store.exists(c)):  # type: ignore[misc]
            continue
        named = (("session_id", command.session.session_id), ("turn_id", turn_id))
        where = models.Filter(must=[equals(f"{prefix}{name}", value) for name, value in named if value is not None])
        found = await calls.call(
            "store",
            lambda c=collection, w=where: store.select(  # type: ignore[misc]
                c, tenant_id=command.tenant_id, where=w, fields=("owner_key", "user_id")
            ),
        )
        mine = [each.payload for each in found if each.payload.get("user_id") in (None, user_id)]
        messages += len(mine) if collection == TURNS else 0
        owners += [Owner.of_key(str(each["owner_key"])) for each in mine]
    may_know = (each for each in owners if each is not None and (each.scope != "user" or each.id == user_id))
    return Traces(messages, tuple(dict.fromkeys(may_know)))


def waiting_without_text(session: SessionRow, key: str, turn_id: str, rows: Rows) -> Mapping[str, bytes]:
    """Return the rows of this turn that wait to be observed, without the turn's text. A turn without text is observed
    without a model."""
    changed = {}
    for n in range(session.waiting_from, session.waiting_next):
        raw = rows.row(waiting_key(key, n))
        waiting = None if raw is None else WaitingTurn.read(raw)
        if waiting is not None and waiting.turn_id == turn_id:
            value = json.dumps(_without_text(waiting, key)).encode()
            changed[waiting_key(key, n)] = waiting.model_copy(update={"value": value}).to_bytes()
    return changed


def _without_text(waiting: WaitingTurn, key: str) -> dict[str, object]:
    names = dict(zip(("tenant_id", "user_id", "session_id"), ids.split(key), strict=True))
    given = fields_of(waiting.value)
    kept: dict[str, object] = {name: given[name] for name in KEPT if name in given}
    return {**names, "turn_id": waiting.turn_id, **kept, "messages": [{"role": "user", "content": ""}]}
