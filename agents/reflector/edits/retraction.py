"""Retraction of a turn from an owner's facts and tasks (docs/design/retraction.md). The function returns changes; the
caller writes them.

The row of owner and session remembers the turn, because its record on memory.observations may come later.
"""

from __future__ import annotations

from collections.abc import Sequence

from qdrant_client import models

from ....adapters.vectors.conditions import any_of, equals
from ....memory.facts.retractions import TAKEN_BACK, is_given_in, retract_evidence
from ....schemas import ids
from ....schemas.collections import EPISODES, FACTS, TASKS
from ....schemas.command_kinds import RETRACT_EPISODES
from ....schemas.commands import Command
from ....schemas.edits.prospective import PENDING
from ....schemas.edits.turns import EpisodesRetract, FactsRetract, FactsRetracted
from ....schemas.facts import Evidence, FactCause
from ....schemas.prospective import StoredTask
from ....streams.senders.commands import command_record
from ..messages import SOURCE
from ..rows import session_row_key, turns_of
from ..timers import TaskTimers, TimerRows
from .scope import OwnerEditResult, OwnerEditScope
from .tasks import derived_ids, task_in_state, task_write


async def retract_from_facts(args: FactsRetract, scope: OwnerEditScope) -> OwnerEditResult:
    """Take a turn out of the owner's facts, cancel its tasks, and send the command that takes it out of the
    episodes."""
    session_key = ids.session_key(scope.command.tenant_id, args.user_id, args.session_id)
    turns = turns_of(scope.rows, scope.owner_key, session_key)

    def is_of_turn(evidence: Evidence) -> bool:
        in_session = is_given_in(evidence, scope.owner, user_id=args.user_id, session_id=args.session_id)
        return in_session and evidence.turn_id == args.turn_id and evidence.command_id is None

    fact_ids = await _ids(FACTS, "evidence[].", args, scope)
    known = await scope.facts.overlay.by_ids(fact_ids)
    episode_ids = frozenset(await _ids(EPISODES, "", args, scope))
    transitions = [
        change
        for fact in known.values()
        if (change := retract_evidence(fact, is_of_turn, episode_ids, scope.facts.stamp, reason=args.reason))
        is not None
    ]
    cause = FactCause(turn_ids=(args.turn_id,), command_id=scope.command.command_id, issued_by=scope.command.issued_by)
    changes = scope.facts.change(transitions, cause, {})
    invalidated = sum(each.action == "invalidated" for each in transitions)
    scope.facts.overlay.requests = tuple(
        each for each in scope.facts.overlay.requests if not each.is_of(args.user_id, args.session_id, args.turn_id)
    )
    tasks = await _tasks(args, session_key, scope)
    timers_before = timers = TaskTimers.of(scope.rows, scope.owner_key)
    for each in tasks:
        timers = timers.remove(each.task_id)
    timer_rows = TimerRows.changed(scope.owner_key, timers_before, timers)
    at = max(turns.last_at, int(scope.now.timestamp()))
    remembering = turns.with_retracted(args.turn_id).model_copy(update={"last_at": at})
    for_episodes = _for_episodes(args, scope, facts=len(transitions))
    return OwnerEditResult(
        result=FactsRetracted(
            changed=len(transitions) - invalidated,
            invalidated=invalidated,
            cancelled=len(tasks),
            command_id=for_episodes.command_id,
        ),
        changes=changes,
        writes=tuple(task_write(each, cause=scope.command.command_id) for each in tasks),
        records=(command_record(for_episodes, source=SOURCE),),
        after={
            **scope.sessions.rows_of(session_row_key(scope.owner_key, session_key), turns, remembering),
            **timer_rows.after,
        },
        cleanup=timer_rows.cleanup,
    )


async def _ids(collection: str, prefix: str, args: FactsRetract, scope: OwnerEditScope) -> Sequence[str]:
    """Return the ids of the owner's records that name the turn."""
    if not await scope.calls.call("store", lambda: scope.store.exists(collection)):
        return ()
    named = (("session_id", args.session_id), ("turn_id", args.turn_id))
    conditions: list[models.Condition] = [equals(f"{prefix}{name}", value) for name, value in named]
    where = models.Filter(must=[equals("owner_key", scope.owner_key), *conditions])
    found = await scope.calls.call(
        "store",
        lambda: scope.store.select(
            collection, tenant_id=scope.command.tenant_id, where=where, fields=("owner_key", "user_id")
        ),
    )
    return [each.id for each in found if each.payload.get("user_id") in (None, args.user_id)]


async def _tasks(args: FactsRetract, session_key: str, scope: OwnerEditScope) -> list[StoredTask]:
    """Return the owner's pending tasks of the turn, cancelled. A task does not name its turn."""
    if not await scope.calls.call("store", lambda: scope.store.exists(TASKS)):
        return []
    tenant_id = scope.command.tenant_id
    where = models.Filter(must=[equals("owner_key", scope.owner_key), any_of("state", PENDING)])
    found = await scope.calls.call("store", lambda: scope.store.select(TASKS, tenant_id=tenant_id, where=where))
    tasks = [StoredTask.from_payload(each.payload) for each in found]

    mine = (each for each in tasks if each.observation_id in derived_ids(each, session_key, args.turn_id))
    reason = args.reason or TAKEN_BACK
    return [task_in_state(each, "cancelled", reason, scope) for each in mine]


def _for_episodes(args: FactsRetract, scope: OwnerEditScope, *, facts: int) -> Command:
    return Command(
        command_id=ids.retraction_command_id(scope.owner_key, scope.command.command_id),
        kind=RETRACT_EPISODES,
        tenant_id=scope.command.tenant_id,
        owner=scope.owner,
        args=EpisodesRetract(**args.model_dump(), facts=facts).to_payload(),
        issued_by=scope.command.issued_by,
        issued_at=scope.now,
    )
