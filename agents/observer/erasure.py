"""Erasure of one session of an erased user: the command `sessions.erase` (docs/design/erasure.md).

It deletes the session's messages, labels, working set and holdings, and then the session's rows. The recorder, which
writes the messages, reads no commands: the sender waits until every recorder ignores the user.
"""

from __future__ import annotations

from qdrant_client import models

from ...adapters.ports import VectorStore
from ...adapters.vectors.conditions import equals
from ...schemas.collections import HOLDINGS, LABELS, TURNS, WORKING
from ...schemas.commands import Command, CommandResult
from ...schemas.erasures import SessionErase
from ...schemas.outcomes import DeletePoints, Outcome, Source
from ...schemas.row_keys import index_key
from ...streams.engine.decision import StageDecision
from ...streams.engine.retry import Calls
from ...streams.senders.commands import result_record
from ..common.erased_events import rows_of_lane
from .commands import SOURCE
from .rows import SessionRow, waiting_key


async def erased_session(
    session: SessionRow,
    command: Command,
    args: SessionErase,
    *,
    source: Source,
    result: CommandResult,
    store: VectorStore,
    calls: Calls,
) -> StageDecision:
    """Return the decision that deletes the records of the session, and then its rows. Raises Transient."""
    assert command.session is not None  # the lane is a session
    tenant_id, key = command.tenant_id, command.key
    where = models.Filter(
        must=[equals("user_id", command.session.user_id), equals("session_id", command.session.session_id)]
    )
    writes = []
    removed = {}
    for collection in (TURNS, LABELS, WORKING, HOLDINGS):
        found: tuple[str, ...] = ()
        if await calls.call("store", lambda c=collection: store.exists(c)):  # type: ignore[misc]
            points = await calls.call(
                "store",
                lambda c=collection: store.select(c, tenant_id=tenant_id, where=where, fields=("session_id",)),  # type: ignore[misc]
            )
            found = tuple(each.id for each in points)
        removed[collection] = len(found)
        if found:
            writes.append(DeletePoints(collection=collection, tenant_id=tenant_id, ids=found))
    waiting = tuple(waiting_key(key, n) for n in range(session.waiting_from, session.waiting_next))
    rows = tuple(dict.fromkeys((*rows_of_lane(args.row_keys, key), *waiting, *_index_rows(session, key), key)))
    answer = result.model_copy(update={"result": {**removed}})
    return StageDecision(
        Outcome(
            source=source,
            writes=tuple(writes),
            records=(result_record(answer, of=command, source=SOURCE),),
            cleanup=rows,
            tenant_id=tenant_id,
        )
    )


def _index_rows(session: SessionRow, key: str) -> tuple[str, ...]:
    return tuple(index_key(kind, key) for kind in session.indexed)
