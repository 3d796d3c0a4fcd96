"""Erasure of a session from an owner's facts and tasks (docs/design/retraction.md). The function returns changes; the
caller writes them.

The row of owner and session keeps the marker, because records of the session may come later on memory.observations. A
fact is erased in two commands, one for each of its outcomes (memory/facts/erasures.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from qdrant_client import models

from ....adapters.ports import StoredPoint
from ....adapters.vectors.conditions import equals
from ....memory.facts.erasures import ERASED_TEXT, erase_fact, is_erased_form, without_evidence
from ....memory.facts.retractions import is_given_in
from ....schemas import ids
from ....schemas.collections import EPISODES, FACTS, TASKS
from ....schemas.command_kinds import ERASE_EPISODES, ERASE_FACTS
from ....schemas.commands import Command
from ....schemas.edits.sessions import EpisodesErase, FactsErase, FactsErased
from ....schemas.facts import Evidence, FactCause, StoredFact
from ....schemas.outcomes import DeletePoints
from ....schemas.prospective import StoredTask
from ....streams.senders.commands import command_record
from ..fact_changes import FactChange
from ..messages import SOURCE, erased_state
from ..rows import session_row_key, turns_of
from ..timers import TaskTimers, TimerRows
from .scope import OwnerEditResult, OwnerEditScope
from .tasks import derived_ids

TAKEN_BACK: Final = "its session was erased"
BATCH: Final = 20
"""Maximum number of facts in one outcome. With the most evidence, a fact and its event have 100 KB, and the outcome
must fit into a row. The next command changes the rest."""


async def erase_from_facts(args: FactsErase, scope: OwnerEditScope) -> OwnerEditResult:
    """Take a session out of the owner's facts, delete its tasks, and send the next command."""
    session_key = ids.session_key(scope.command.tenant_id, args.user_id, args.session_id)
    turns = turns_of(scope.rows, scope.owner_key, session_key)

    def is_erased(evidence: Evidence) -> bool:
        return is_given_in(evidence, scope.owner, user_id=args.user_id, session_id=args.session_id)

    named = [equals("evidence[].session_id", args.session_id)]
    found = [StoredFact.from_payload(each.payload) for each in await _records(FACTS, named, scope)]
    facts = [each for each in found if any(map(is_erased, each.evidence))]
    episodes = {
        each.id: str(each.payload["turn_id"])
        for each in await _records(EPISODES, [equals("session_id", args.session_id)], scope)
        if each.payload["user_id"] == args.user_id
    }
    known = await scope.facts.overlay.by_ids(each.fact_id for each in facts[:BATCH])
    changes = await _changes(known.values(), is_erased, frozenset(episodes), args, scope)
    erased = sum(each.transition.action == "erased" for each in changes)
    left = [equals("content_hash", ids.content_hash(ERASED_TEXT))]
    erased_before = tuple(
        each.id for each in await _records(FACTS, left, scope) if is_erased_form(StoredFact.from_payload(each.payload))
    )
    turn_ids = {*episodes.values(), *(each.turn_id for fact in facts for each in fact.evidence if is_erased(each))}
    tasks = await _tasks(args, session_key, turn_ids, scope)
    timers_before = timers = TaskTimers.of(scope.rows, scope.owner_key)
    for task_id in tasks:
        timers = timers.remove(task_id)
    timer_rows = TimerRows.changed(scope.owner_key, timers_before, timers)
    at = max(turns.last_at, int(scope.now.timestamp()))
    scope.facts.overlay.requests = tuple(
        each for each in scope.facts.overlay.requests if not each.is_of(args.user_id, args.session_id)
    )
    marked = turns.model_copy(update={"erased": True, "last_at": at})
    following = _next(args, scope, facts=len(known), more=erased > 0 or len(facts) > BATCH)
    return OwnerEditResult(
        result=FactsErased(
            changed=len(changes) - erased, erased=erased, tasks=len(tasks), command_id=following.command_id
        ),
        changes=changes,
        writes=tuple(
            DeletePoints(collection=name, tenant_id=scope.command.tenant_id, ids=ids_of)
            for name, ids_of in ((FACTS, erased_before), (TASKS, tasks))
            if ids_of
        ),
        records=(
            *(erased_state(scope.command.tenant_id, each) for each in erased_before),
            command_record(following, source=SOURCE),
        ),
        after={
            **scope.sessions.rows_of(session_row_key(scope.owner_key, session_key), turns, marked),
            **timer_rows.after,
        },
        cleanup=timer_rows.cleanup,
    )


async def _changes(
    facts: Iterable[StoredFact],
    is_erased: Callable[[Evidence], bool],
    episode_ids: frozenset[str],
    args: FactsErase,
    scope: OwnerEditScope,
) -> tuple[FactChange, ...]:
    """Return the changes: facts without the session's evidence, and erased facts. The events have no earlier version,
    because it has the quotes."""
    stamp, transitions = scope.facts.stamp, []
    for fact in facts:
        left = without_evidence(fact, is_erased, episode_ids, stamp, reason=args.reason or TAKEN_BACK)
        transitions.append(replace(left or erase_fact(fact, stamp), before=fact))
    has_erased = any(each.action == "erased" for each in transitions)
    vectors = await scope.embed([ERASED_TEXT]) if has_erased else {}
    cause = FactCause(command_id=scope.command.command_id, issued_by=scope.command.issued_by)
    changes = scope.facts.change(transitions, cause, vectors)
    return tuple(replace(each, transition=replace(each.transition, before=None)) for each in changes)


async def _records(collection: str, named: Sequence[models.Condition], scope: OwnerEditScope) -> Sequence[StoredPoint]:
    """Return the owner's records that meet the conditions."""
    if not await scope.calls.call("store", lambda: scope.store.exists(collection)):
        return ()
    where = models.Filter(must=[equals("owner_key", scope.owner_key), *named])
    return await scope.calls.call(
        "store", lambda: scope.store.select(collection, tenant_id=scope.command.tenant_id, where=where)
    )


async def _tasks(
    args: FactsErase, session_key: str, turn_ids: Collection[str], scope: OwnerEditScope
) -> tuple[str, ...]:
    """Return the ids of the owner's tasks of the session. A task of an earlier version does not name its session: the
    id of its observation is derived from one of these turns."""
    tasks = [StoredTask.from_payload(each.payload) for each in await _records(TASKS, (), scope)]

    def is_of_session(task: StoredTask) -> bool:
        if task.session_id is not None:
            return (task.user_id, task.session_id) == (args.user_id, args.session_id)
        return any(task.observation_id in derived_ids(task, session_key, each) for each in turn_ids)

    return tuple(each.task_id for each in tasks if is_of_session(each))


def _next(args: FactsErase, scope: OwnerEditScope, *, facts: int, more: bool) -> Command:
    command = scope.command
    contract = FactsErase if more else EpisodesErase
    return Command(
        command_id=ids.session_erasure_command_id(scope.owner_key, command.command_id),
        kind=ERASE_FACTS if more else ERASE_EPISODES,
        tenant_id=command.tenant_id,
        owner=scope.owner,
        args=contract(**args.model_dump() | {"facts": args.facts + facts}).to_payload(),
        issued_by=command.issued_by,
        issued_at=scope.now,
    )
