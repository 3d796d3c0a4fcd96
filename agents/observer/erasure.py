"""Erasure of one session of an erased user: the command `sessions.erase` (docs/design/erasure.md).

It deletes the session's messages, labels, working set and holdings, and then the session's rows. The recorder, which
writes the messages, reads no commands: the sender waits until every recorder ignores the user.
"""

from __future__ import annotations

from ...adapters.ports import VectorStore
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
from .retracted_turns import session_points
from .rows import SessionRow, waiting_keys


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
    tenant_id, key = command.tenant_id, command.key
    collections = (TURNS, LABELS, WORKING, HOLDINGS)
    points = await session_points(command, collections, store=store, calls=calls)
    removed = {each: len(points.get(each, ())) for each in collections}
    writes = [DeletePoints(collection=name, tenant_id=tenant_id, ids=found) for name, found in points.items() if found]
    rows = tuple(
        dict.fromkeys((*rows_of_lane(args.row_keys, key), *waiting_keys(session, key), *_index_rows(session, key), key))
    )
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
