"""Observed turns of one owner that are decided together: one embedder call, one row, one write per fact.

They are reflected in order over one overlay, so each turn sees the changes of earlier turns. Each turn keeps its own
policy, cause, events and record for consolidation (docs/adr/0047-a-lane-decides-its-queue-together.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...adapters.ports import VectorStore
from ...memory.facts.namesakes import Namesakes
from ...memory.facts.subject_names import USER
from ...schemas.collections import TASKS
from ...schemas.episodes import StoredEpisode
from ...schemas.errors import Poison
from ...schemas.observations import Observed
from ...schemas.outcomes import InsertPoints, Outcome, OutPoint, OutRecord
from ...streams.engine.decision import Rows, StageDecision
from ...streams.engine.handler import source_of
from ...streams.engine.lane_events import QueuedEvents
from ...streams.engine.retry import Calls
from ...streams.faust.table import MAX_VALUE
from ...streams.log.port import Record
from ..common.handled_sessions import HandledSessions
from ..common.outcomes import row_size
from .episodes import Episodes
from .events import ObservedTurn, ReflectorEvent
from .fact_changes import FactChange, FactChanger, changed_ids
from .fact_overlay import FactOverlay, Vector
from .messages import episodes_recorded, fact_events
from .observed_tasks import observed_tasks
from .observed_turns import RoutedObservations, reflect
from .rows import LedgerRow, ReflectedTurns, session_row_key, turns_of
from .timers import TaskTimers, TimerRows

TOGETHER_MAX: Final = 8
"""Maximum number of queued turns decided with the current turn. More turns of one owner are rare, and the first turn
waits for the effects of all turns."""
TOGETHER_BYTES: Final = MAX_VALUE // 8
"""Size in bytes of the owner's row above which fewer turns are decided together, because the owner's next event must
read the row."""
TOGETHER_RECORD_BYTES: Final = TOGETHER_BYTES // 8
"""Size in bytes of the records above which no further turn is decided together. An outcome has six to eight times the
bytes of its record. Without this limit, a group of large turns is decided several times, because it does not fit."""
TurnRecord = tuple[ObservedTurn, Record]
Counting = Callable[[str], None]
"""Function that adds one to the metric with this name."""
FactsOfTurn = Callable[[Observed, FactOverlay, Counting], FactChanger]
"""Function that makes the fact changer for one turn, with the turn's policy."""


@dataclass(frozen=True, slots=True)
class DecidedTurns:
    """The decision, and the changes and metrics to report with it. `counted`: metrics by name."""

    decision: StageDecision
    changes: tuple[FactChange, ...]
    counted: Mapping[str, int]


def turns_together(work: ObservedTurn, record: Record, queued: QueuedEvents[ReflectorEvent]) -> list[TurnRecord]:
    """Return the current turn and the queued turns behind it, up to a command or another turn with the same id.

    The records have at most `TOGETHER_RECORD_BYTES` together, or the current turn is alone.
    """
    found, size = [(work, record)], record.size()
    numbers = {(work.session_key, work.event_id): work.observed.number}
    for next_record, each in queued.next(TOGETHER_MAX):
        if not isinstance(each, ObservedTurn):
            break
        number = each.observed.number
        if numbers.setdefault((each.session_key, each.event_id), number) != number:
            break  # both turns have the same observation ids, so the first turn must be stored before
        size += next_record.size()
        if size > TOGETHER_RECORD_BYTES:
            break
        found.append((each, next_record))
    return found


@dataclass(frozen=True, slots=True)
class TurnDecider:
    """Decider for turns of one owner."""

    facts: FactsOfTurn
    embed: Callable[[str, Sequence[str]], Awaitable[Mapping[str, Vector]]]
    episodes: Episodes
    sessions: HandledSessions
    store: VectorStore
    calls: Calls

    async def decide(self, turns: Sequence[TurnRecord], row: LedgerRow, rows: Rows) -> DecidedTurns:
        """Decide the first turn and as many other turns as fit into the row.

        Raises Poison when the first turn alone is too large for the table.
        """
        count = len(turns)
        decided = await self._decide(turns, row, rows)
        while count > 1 and row_size(decided.decision) > TOGETHER_BYTES:
            count //= 2
            decided = await self._decide(turns[:count], row, rows)
        if (size := row_size(decided.decision)) > MAX_VALUE:
            raise Poison("oversized", f"its outcome has {size} bytes; at most {MAX_VALUE} fit")
        return decided

    async def _decide(self, turns: Sequence[TurnRecord], row: LedgerRow, rows: Rows) -> DecidedTurns:
        work, record = turns[0]
        tenant_id, owner_key = work.observed.tenant_id, work.owner_key
        overlay = FactOverlay(
            store=self.store, calls=self.calls, tenant_id=tenant_id, owner_key=owner_key, requests=row.requests
        )
        counted: Counter[str] = Counter()
        routed, after = await self._route(turns, rows, overlay, counted)
        vectors = await self.embed(tenant_id, list(dict.fromkeys(text for turn in routed for text in turn.texts())))
        looks = [look for turn in routed for look in turn.looks(vectors)]
        await overlay.look(looks, may_be_new=row.changes == 0)
        timers_before = timers = TaskTimers.of(rows, owner_key)
        tasks: list[OutPoint] = []
        episodes: list[StoredEpisode] = []
        changes: list[FactChange] = []
        records: list[OutRecord] = []
        for turn in routed:
            now = turn.facts.stamp.now
            reflection = await reflect(turn, vectors)
            told = await observed_tasks(
                turn.observed,
                timers,
                turn.facts.policy,
                added=len(tasks),
                store=self.store,
                calls=self.calls,
                now=now,
            )
            timers = told.timers
            tasks += told.points
            counted["tasks_skipped"] += told.skipped
            episodes += reflection.episodes
            changes += reflection.changes
            records += fact_events(reflection.changes, at=now)
            records.append(episodes_recorded(turn.observed, reflection.episodes, reflection.changes, at=now))
        timer_rows = TimerRows.changed(owner_key, timers_before, timers)
        added = await replace(self.episodes, count=lambda what, n: counted.update({what: n})).writes(
            episodes, vectors, tenant_id=tenant_id, owner_key=owner_key, recorded=row.episodes
        )
        new_tasks = (InsertPoints(collection=TASKS, points=tuple(tasks)),) if tasks else ()
        outcome = Outcome(
            source=source_of(record, work.event_id),
            after={**after, **timer_rows.after},
            cleanup=timer_rows.cleanup,
            writes=(*added, *new_tasks, *await overlay.writes(vectors)),
            records=tuple(records),
            tenant_id=tenant_id,
            state_ids=changed_ids(changes),
        )
        row = row.model_copy(
            update={
                "turns": row.turns + len(routed),
                "episodes": row.episodes + len(episodes),
                "changes": row.changes + len(changes),
                "requests": overlay.requests,
            }
        )
        decision = replace(row.decision(owner_key, outcome), covers=len(turns) - 1)
        return DecidedTurns(decision, tuple(changes), counted)

    async def _route(
        self, turns: Sequence[TurnRecord], rows: Rows, overlay: FactOverlay, counted: Counter[str]
    ) -> tuple[list[RoutedObservations], dict[str, bytes]]:
        """Return the turns that are not yet reflected, with their routes, and the rows of their sessions.

        A statement about a namesake gets a subject of its own, by the relations that are stored and that earlier turns
        state.
        """
        namesakes = Namesakes()
        if any(each.subject != USER for work, _ in turns for each in work.observed.observations):
            namesakes.know(await overlay.relations())
        before: dict[str, ReflectedTurns] = {}
        reflected: dict[str, ReflectedTurns] = {}
        routed: list[RoutedObservations] = []
        for work, record in turns:
            observed, key = work.observed, session_row_key(work.owner_key, work.session_key)
            if key not in before:
                before[key] = reflected[key] = turns_of(rows, work.owner_key, work.session_key)
            if reflected[key].has(observed.number):
                counted["duplicate"] += 1
                continue
            reflected[key] = self.sessions.added(reflected[key], observed.number, record)
            if reflected[key].took_back(observed.turn_id):
                counted["retracted"] += 1
                observed = observed.model_copy(update={"observations": (), "evicted": ()})
            observed = observed.model_copy(update={"observations": namesakes.named(observed.observations)})
            facts = self.facts(observed, overlay, lambda name: counted.update({name: 1}))
            routed.append(await RoutedObservations.of(observed, facts))
        after: dict[str, bytes] = {}
        for key, changed in reflected.items():
            if changed is not before[key]:
                after |= self.sessions.rows_of(key, before[key], changed)
        return routed, after
