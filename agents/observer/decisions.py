"""Decisions of the observer, as outcomes. Pure functions.

Each function takes the session's row and returns the next row and the decision: the row to write, the points of the
collection `working`, the records to send.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from pydantic import JsonValue

from ...memory.policies import MemoryPolicy
from ...schemas import ids
from ...schemas.blocks import StoredHoldings
from ...schemas.cloudevents import CloudEvent, rfc3339
from ...schemas.collections import HOLDINGS, WORKING
from ...schemas.commands import Command, CommandResult, ResultError
from ...schemas.errors import Poison
from ...schemas.observations import Observed
from ...schemas.outcomes import DeletePoints, Outcome, OutPoint, OutRecord, PutPoints, Source, Write
from ...schemas.topics import OBSERVATIONS
from ...schemas.turns import Owner
from ...streams.engine.dead_letters import dead_letter
from ...streams.engine.decision import StageDecision
from ...streams.log.port import Record
from ...streams.senders.commands import command_record, result_record
from ..common.handled_until import HandledUntil
from .batch import Batch, BatchTurn, UndecodableTurn
from .commands import SOURCE, answer_records
from .edits.scope import SessionEditResult
from .labels import label_writes
from .rows import REFUSED_KEPT, SessionRow, WaitingTurn, refused_mark, waiting_key

Step = tuple[SessionRow, StageDecision]
"""The session row after a decision, and the decision."""


def observed(
    before: SessionRow,
    key: str,
    batch: Batch,
    turns: Sequence[BatchTurn],
    *,
    source: Source,
    policy: MemoryPolicy,
    now: datetime,
) -> Step:
    """Return the decision for an observed batch: one record per turn, or none when the working set is the only tier."""
    last = turns[-1]
    owner = None if last.owner == Owner(scope="user", id=last.turn.user_id) else last.owner
    after = batch.session.model_copy(update={"owner": owner, "timeouts": 0})
    outcome = Outcome(
        source=source,
        cleanup=_waiting_keys(key, turns),
        writes=(
            *_projection(before, after, key, now=now),
            *label_writes(batch.observed, turns, now=now),
        ),
        records=() if policy.tiers.working_only else _observed_records(batch.observed, now=now),
        tenant_id=last.turn.tenant_id,
    )
    return _decision(_with_handled(_without_waiting(after, turns), turns, now=now), key, outcome)


def refused(
    before: SessionRow,
    key: str,
    turn: BatchTurn | UndecodableTurn,
    poison: Poison,
    *,
    source: Source,
    now: datetime,
) -> Step:
    """Return the decision that makes a turn a dead letter, with the coordinates of the turn's record.

    The turn gets no number, and its id is removed from the seen ids, so that the turn can be sent again.
    """
    position = turn.record.position
    session = _without_waiting(before, (turn,)).model_copy(
        update={
            "turns_until": _turns_until(before, (turn,), now=now),
            "seen": before.seen.remove(turn.turn_id),
            "timeouts": before.timeouts if turn.n is None and before.waiting else 0,
            "refused": (*before.refused, refused_mark(turn.turn_id, position.offset))[-REFUSED_KEPT:],
        }
    )
    outcome = Outcome(
        source=source,
        cleanup=_waiting_keys(key, (turn,)),
        records=(dead_letter(turn.record, stage="observer", reason=poison.reason, error=poison, attempts=1),),
        tenant_id=ids.split(key)[0],
    )
    return _decision(session, key, outcome)


def timed_out(before: SessionRow, key: str, *, source: Source) -> Step:
    """Return the decision that counts a call without an answer in time. It has no other effect."""
    session = before.model_copy(update={"timeouts": before.timeouts + 1})
    return _decision(session, key, Outcome(source=source, tenant_id=ids.split(key)[0]))


def deferred(before: SessionRow, key: str, turn: BatchTurn, *, source: Source, now: datetime) -> Step:
    """Return the decision that defers a turn. The turn's row is written before the session's row, which counts it."""
    row_key = waiting_key(key, before.waiting_next)
    session = _with_handled(before, (turn,), now=now).model_copy(
        update={
            "waiting_next": before.waiting_next + 1,
            "waiting_tokens": before.waiting_tokens + turn.tokens,
            "waiting_ends": before.waiting_ends or turn.turn.ends_session,
            "waiting_last": turn.turn_id,
        }
    )
    outcome = Outcome(source=source, before=(row_key,), tenant_id=turn.turn.tenant_id)
    waiting = WaitingTurn.of(turn.record, turn_id=turn.turn_id, deferred_at=now, reading=turn.reading)
    return _decision(session, key, outcome, before={row_key: waiting.to_bytes()})


def answered(
    before: SessionRow,
    key: str,
    command: Command,
    record: Record,
    *,
    source: Source,
    policy: MemoryPolicy,
    now: datetime,
) -> Step:
    """Return the decision with a command's result, and the commands of a flush to the reflector."""
    session = before.with_command(command, record, now=now)
    outcome = Outcome(
        source=source,
        records=answer_records(command, before, policy, now=now),
        tenant_id=command.tenant_id,
    )
    return _decision(session, key, outcome)


def sent_again(before: SessionRow, key: str, command: Command, *, source: Source) -> Step:
    """Return the decision that sends the command again.

    This event may make no further model call, and turns of the session still wait.
    """
    record = command_record(command, source=SOURCE)
    return _decision(before, key, Outcome(source=source, records=(record,), tenant_id=command.tenant_id))


def edited(
    before: SessionRow,
    key: str,
    command: Command,
    record: Record,
    edit: SessionEditResult,
    *,
    source: Source,
    now: datetime,
    rows: Mapping[str, bytes] | None = None,
) -> Step:
    """Return the decision that applies or refuses a manual edit, with its result. `rows`: rows of waiting turns, which
    are written first."""
    before_rows = rows or {}
    error, applied = (edit.result, None) if isinstance(edit.result, ResultError) else (None, edit.result.to_payload())
    result = CommandResult(
        command_id=command.command_id,
        status="applied" if error is None else "refused",
        error=error,
        result=applied,
        at=now,
    )
    session = edit.session.with_command(command, record, now=now).model_copy(
        update={"results": edit.session.results.add(result, of=command)}
    )
    projections = (
        *(_projection(before, session, key, now=now) if session.working != before.working else ()),
        *_holdings(before, session, key, now=now),
    )
    outcome = Outcome(
        source=source,
        writes=(*(projections if edit.writes is None else edit.writes), *edit.more_writes),
        before=tuple(before_rows),
        cleanup=edit.cleanup,
        records=(*edit.records, result_record(result, of=command, source=SOURCE)),
        tenant_id=command.tenant_id,
    )
    return _decision(session, key, outcome, before=before_rows)


def answered_again(before: SessionRow, key: str, command: Command, *, source: Source) -> Step:
    """Return the decision that sends the stored result of an edit, because the sender has sent the command again."""
    answer = result_record(before.results.again(command), of=command, source=SOURCE)
    return _decision(before, key, Outcome(source=source, records=(answer,), tenant_id=command.tenant_id))


def _decision(
    session: SessionRow,
    key: str,
    outcome: Outcome,
    *,
    before: Mapping[str, bytes] | None = None,
) -> Step:
    return session.decide(key, outcome, before=before)


def _with_handled(session: SessionRow, turns: Sequence[BatchTurn], *, now: datetime) -> SessionRow:
    """Return the session with the ids and marks of new turns added.

    Waiting turns were added when they were deferred.
    """
    new = [turn.turn_id for turn in turns if turn.n is None]
    update = {"seen": session.seen.add(*new), "turns_until": _turns_until(session, turns, now=now)}
    return session.model_copy(update=update) if new else session


def _turns_until(session: SessionRow, turns: Sequence[BatchTurn | UndecodableTurn], *, now: datetime) -> HandledUntil:
    until = session.turns_until
    for turn in turns:
        if turn.n is None:
            until = until.add(turn.record, now=now)
    return until


def _without_waiting(session: SessionRow, turns: Sequence[BatchTurn | UndecodableTurn]) -> SessionRow:
    waited = [turn for turn in turns if turn.n is not None]
    return session.without_waiting(len(waited), tokens=sum(turn.tokens for turn in waited))


def _waiting_keys(key: str, turns: Sequence[BatchTurn | UndecodableTurn]) -> tuple[str, ...]:
    return tuple(waiting_key(key, turn.n) for turn in turns if turn.n is not None)


def _observed_records(observed: Sequence[Observed], *, now: datetime) -> tuple[OutRecord, ...]:
    """Return one record per turn for memory.observations, keyed by owner."""
    records = []
    for item in observed:
        session_key = ids.session_key(item.tenant_id, item.user_id, item.session_id)
        owner_key = item.owner.key(item.tenant_id)
        event = CloudEvent(
            id=ids.observed_id(session_key, item.turn_id),
            source=SOURCE,
            type="memstream.turn.observed.v1",
            subject=owner_key,
            time=now,
        )
        records.append(OutRecord.of(OBSERVATIONS.name, owner_key, item, event))
    return tuple(records)


def _projection(before: SessionRow, after: SessionRow, key: str, *, now: datetime) -> tuple[Write, ...]:
    """Return the writes that update the working set in Qdrant: put all current entries, delete removed entries."""
    tenant_id, user_id, session_id = ids.split(key)
    owner = after.owner or Owner(scope="user", id=user_id)
    common: dict[str, JsonValue] = {
        "tenant_id": tenant_id,
        "owner_key": owner.key(tenant_id),
        "user_id": user_id,
        "session_id": session_id,
        "turn_number": after.working.turn,
        "updated_at": rfc3339(now),
    }  # fields of StoredWorkingEntry that an entry lacks; all were validated when the event was decoded
    entries = after.working.entries
    writes: list[Write] = []
    points = tuple(OutPoint(id=entry.entry_id, payload=entry.to_payload() | common) for entry in entries)
    if points:
        writes.append(PutPoints(collection=WORKING, points=points))
    present = {entry.entry_id for entry in entries}
    gone = tuple(entry.entry_id for entry in before.working.entries if entry.entry_id not in present)
    if gone:
        writes.append(DeletePoints(collection=WORKING, tenant_id=tenant_id, ids=gone))
    return tuple(writes)


def _holdings(before: SessionRow, after: SessionRow, key: str, *, now: datetime) -> tuple[Write, ...]:
    """Return the write that updates the session's blocks and procedures in Qdrant, if an edit changed them."""
    fields = ("blocks", "attached", "procedures")
    if all(getattr(before, name) == getattr(after, name) for name in fields):
        return ()
    tenant_id, user_id, session_id = ids.split(key)
    stored = StoredHoldings(
        holdings_id=ids.holdings_id(key),
        tenant_id=tenant_id,
        user_id=user_id,
        session_id=session_id,
        blocks=after.blocks,
        attached=after.attached,
        procedures=after.procedures,
        updated_at=now,
    )
    return (PutPoints(collection=HOLDINGS, points=(OutPoint(id=stored.holdings_id, payload=stored.to_payload()),)),)
