"""Restore of an owner's exported records (docs/design/import.md). The function returns writes; the caller executes
them.

A record keeps its id, its version and its times. Its vector is computed again. A record that the store has is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from qdrant_client import models

from ....adapters.ports import Payload
from ....adapters.vectors.conditions import any_of, equals, is_empty
from ....memory.secrets.secret_filter import at_least
from ....memory.trust.rendered_text import find_unsafe_text, observed_rule
from ....schemas import ids
from ....schemas.base import Contract
from ....schemas.blocks import MemoryBlock, OwnerBlock, StoredBlock
from ....schemas.collections import BLOCKS, EPISODES, FACTS, GROUPS, TASKS
from ....schemas.episodes import Episode, StoredEpisode
from ....schemas.export import ExportedEpisode, ExportedFact, ExportRecord
from ....schemas.facts import FactUpdated, StoredFact
from ....schemas.groups import MemoryGroup, StoredGroup
from ....schemas.outcomes import InsertPoints, OutPoint, OutRecord
from ....schemas.prospective import ProspectiveTask, StoredTask
from ....schemas.restore import RecordsRestore
from ...common.restored import RestoreCount, decoded_records, is_of_owner, restored_cause
from ..messages import restored_event
from ..timers import TIMERS_MAX, TaskTimers, TimerRows
from .scope import NOT_EMBEDDED, OwnerEditResult, OwnerEditScope

FACT_TEXT: Final = ("subject", "content_hash")
EPISODE_TEXT: Final = ("subject", "content_hash", "occurred_at")
"""Fields that an equal fact or episode has in common. A text may happen twice, so episodes have their time here."""
NOT_DERIVED: Final = "its id is not a UUID: restore the line as the export has it"


async def restore(args: RecordsRestore, scope: OwnerEditScope) -> OwnerEditResult:
    """Restore facts, changes of facts, episodes, blocks, tasks and groups of one owner."""
    count = RestoreCount()
    tenant_id, owner = scope.command.tenant_id, scope.owner
    records = list(decoded_records(args, "reflector", lambda each: is_of_owner(each, tenant_id, owner), count))
    known = await _known(args, [record for _, record in records], scope)
    texts = [each.content for _, each in records if isinstance(each, ExportedFact | ExportedEpisode)]
    vectors = await scope.embed_accepted(texts)
    restored = _Restored(args, scope, count, known, vectors, TaskTimers.of(scope.rows, scope.owner_key))
    for line, record in records:
        restored.add(line, record)
    rows = TimerRows.changed(scope.owner_key, TaskTimers.of(scope.rows, scope.owner_key), restored.timers)
    return OwnerEditResult(
        result=count.result(),
        episodes=len(restored.points[EPISODES]),
        writes=tuple(
            InsertPoints(collection=name, points=tuple(points)) for name, points in restored.points.items() if points
        ),
        records=tuple(restored.events),
        state_ids=tuple(each.id for each in restored.points[FACTS]),
        after=rows.after,
        cleanup=rows.cleanup,
    )


@dataclass(slots=True)
class _Known:
    """Rows of the records in the store, by collection and id, and the equal texts of other records."""

    rows: Mapping[str, Mapping[str, Payload]]
    texts: Mapping[str, frozenset[tuple[str, ...]]]
    """The texts of other records, by collection: subject and hash, of an episode also its time."""


@dataclass(slots=True)
class _Restored:
    """The effects of one command."""

    args: RecordsRestore
    scope: OwnerEditScope
    count: RestoreCount
    known: _Known
    vectors: Mapping[str, Sequence[float]]
    timers: TaskTimers
    points: dict[str, list[OutPoint]] = field(
        default_factory=lambda: {name: [] for name in (FACTS, EPISODES, BLOCKS, TASKS, GROUPS)}
    )
    events: list[OutRecord] = field(default_factory=list)
    here: set[str] = field(default_factory=set)
    """Ids of the records that this command restores."""

    def add(self, line: int, record: ExportRecord) -> None:
        match record:
            case ExportedFact():
                self._fact(line, record)
            case FactUpdated():
                self._change(line, record)
            case ExportedEpisode():
                self._episode(line, record)
            case OwnerBlock():
                self._block(line, record)
            case ProspectiveTask():
                self._task(line, record)
            case MemoryGroup():
                self._group(line, record)

    # -------------------------------------------------------------------------------------------- kinds
    def _fact(self, line: int, fact: ExportedFact) -> None:
        text = (fact.subject, fact.content_hash) if fact.state == "active" else ()
        if self._is_known(FACTS, fact.fact_id, text):
            return
        evidence = tuple(each for each in fact.evidence if not self.scope.is_erased(each.session_id, each.user_id))
        if fact.evidence and not evidence:
            self.count.refuse(line, "fact: its session was erased")
            return
        stored = StoredFact(
            **fact.model_dump(exclude={"embedding", "evidence"}),
            evidence=evidence,
            owner_key=self.scope.owner_key,
            applied=(self.scope.command.command_id,),
        )
        rule = observed_rule(fact.subject, fact.content, fact.trust)
        waits = rule is not None and fact.state in ("active", "pending") and not fact.is_approved
        stored = stored.model_copy(
            update={
                "embedder": self.scope.facts.stamp.embedder,
                "sensitivity": self._sensitivity(fact, fact.content, fact.subject, *_quotes(fact)),
                "state": "quarantined" if waits else fact.state,
            }
        )
        self._insert(line, FACTS, fact.fact_id, stored, text=fact.content)

    def _change(self, line: int, event: FactUpdated) -> None:
        """Publish a change again. A change of a fact that another import or a turn has made is skipped: subscribers
        know the fact by other changes."""
        fact = event.fact
        if event.event_id != ids.event_id(fact.fact_id, fact.version):
            self.count.refuse(line, "fact_change: event_id is not the id of this version of the fact")
            return
        row = self.known.rows[FACTS].get(fact.fact_id)
        if fact.fact_id not in self.here and not self._is_of_this_import(row):
            self.count.skipped += 1
            return
        self.count.imported += 1
        self.events.append(restored_event(event))

    def _episode(self, line: int, episode: ExportedEpisode) -> None:
        if self._is_known(EPISODES, episode.episode_id, _text_of(episode.to_payload(), *EPISODE_TEXT)):
            return
        if self.scope.is_erased(episode.session_id, episode.user_id):
            self.count.refuse(line, "episode: its session was erased")
            return
        unsafe = None if episode.deleted_at else find_unsafe_text(Episode, episode.to_payload())
        if unsafe is not None:
            self.count.refuse(line, f"episode: {unsafe.message}")
            return
        label = self._sensitivity(episode, episode.content, episode.subject, episode.evidence)
        stored = StoredEpisode(
            **episode.model_dump(exclude={"embedding"}) | {"sensitivity": label}, owner_key=self.scope.owner_key
        )
        self._insert(line, EPISODES, episode.episode_id, stored, text=episode.content)

    def _block(self, line: int, block: OwnerBlock) -> None:
        if block.block_id != ids.block_id(self.scope.owner_key, block.name):
            self.count.refuse(line, "block: block_id is not the id of this owner's block of this name")
            return
        if self._is_known(BLOCKS, block.block_id):
            return
        unsafe = find_unsafe_text(MemoryBlock, block.to_payload(), by_person=block.trust == "user")
        if unsafe is not None:
            self.count.refuse(line, f"block: {unsafe.message}")
            return
        label = self._sensitivity(block, block.name, block.value, block.description)
        self._insert(line, BLOCKS, block.block_id, StoredBlock(**self._versioned(block, sensitivity=label)))

    def _task(self, line: int, task: ProspectiveTask) -> None:
        if self._is_known(TASKS, task.task_id):
            return
        unsafe = find_unsafe_text(ProspectiveTask, task.to_payload(), by_person=task.trust == "user")
        if unsafe is not None:
            self.count.refuse(line, f"task: {unsafe.message}")
            return
        if task.state == "open" and task.due_at is not None:
            if len(self.timers.timers) >= TIMERS_MAX:
                self.count.refuse(line, f"task: an owner has at most {TIMERS_MAX} tasks with a due time")
                return
            self.timers = self.timers.add(task.task_id, task.due_at)
        label = self._sensitivity(task, task.content, task.condition, task.subject)
        stored = StoredTask(**self._versioned(task, sensitivity=label), content_hash=ids.content_hash(task.content))
        self._insert(line, TASKS, task.task_id, stored)

    def _group(self, line: int, group: MemoryGroup) -> None:
        record_id = ids.group_record_id(self.scope.owner_key)
        if self._is_known(GROUPS, record_id):
            return
        unsafe = find_unsafe_text(MemoryGroup, group.to_payload())
        if unsafe is not None:
            self.count.refuse(line, f"group: {unsafe.message}")
            return
        members = tuple(each.key(group.tenant_id) for each in group.members)
        stored = StoredGroup(**self._versioned(group), record_id=record_id, member_keys=members)
        self._insert(line, GROUPS, record_id, stored)

    # -------------------------------------------------------------------------------------------- within
    def _is_known(self, collection: str, record_id: str, text: tuple[str, ...] = ()) -> bool:
        """Return whether memory has the record, or an equal text under another id. Count it as skipped."""
        known = record_id in self.known.rows[collection] or record_id in self.here
        equal = text in self.known.texts.get(collection, frozenset())
        self.count.skipped += known or equal
        return known or equal

    def _is_of_this_import(self, row: Payload | None) -> bool:
        return row is not None and _has_cause(row, restored_cause(self.args.source))

    def _sensitivity(self, record: Any, *texts: str | None) -> str:
        sensitivity: str = at_least(record.sensitivity, self.scope.secrets.label(*texts))
        return sensitivity

    def _versioned(self, record: Contract, **changed: str) -> dict[str, Any]:
        return {
            **record.model_dump(),
            **changed,
            "owner_key": self.scope.owner_key,
            "applied": (self.scope.command.command_id,),
        }

    def _insert(self, line: int, collection: str, record_id: str, stored: Contract, *, text: str | None = None) -> None:
        if not ids.is_derived(record_id):
            self.count.refuse(line, NOT_DERIVED)
            return
        if text is not None and text not in self.vectors:
            self.count.refuse(line, NOT_EMBEDDED)
            return
        self.here.add(record_id)
        self.count.imported += 1
        vector = None if text is None else self.vectors[text]
        self.points[collection].append(OutPoint(id=record_id, payload=stored.to_payload(), dense=vector, text=text))


def _quotes(fact: ExportedFact) -> tuple[str, ...]:
    return tuple(each.quote for each in fact.evidence)


# ------------------------------------------------------------------------------------------------ the store
async def _known(args: RecordsRestore, records: Sequence[ExportRecord], scope: OwnerEditScope) -> _Known:
    """Read the rows that these records already have, and the equal texts of records of other origin."""
    facts = [each.fact_id for each in records if isinstance(each, ExportedFact)]
    changed = [each.fact.fact_id for each in records if isinstance(each, FactUpdated)]
    wanted = {
        FACTS: [*facts, *changed],
        EPISODES: [each.episode_id for each in records if isinstance(each, ExportedEpisode)],
        BLOCKS: [each.block_id for each in records if isinstance(each, OwnerBlock)],
        TASKS: [each.task_id for each in records if isinstance(each, ProspectiveTask)],
        GROUPS: [ids.group_record_id(scope.owner_key) for each in records if isinstance(each, MemoryGroup)],
    }
    rows = {name: await _rows(name, named, scope) for name, named in wanted.items()}
    texts: dict[str, frozenset[tuple[str, ...]]] = {}
    if args.dedup:
        active = [each.content_hash for each in records if isinstance(each, ExportedFact) and each.state == "active"]
        lived = [each.content_hash for each in records if isinstance(each, ExportedEpisode)]
        cause = restored_cause(args.source)
        equal = await _equal(FACTS, active, [equals("state", "active")], scope)
        texts[FACTS] = frozenset(_text_of(each, *FACT_TEXT) for each in equal if not _has_cause(each, cause))
        equal = await _equal(EPISODES, lived, [is_empty("deleted_at")], scope)
        texts[EPISODES] = frozenset(_text_of(each, *EPISODE_TEXT) for each in equal)
    return _Known(rows, texts)


async def _rows(collection: str, named: Sequence[str], scope: OwnerEditScope) -> Mapping[str, Payload]:
    tenant_id = scope.command.tenant_id
    wanted = [each for each in dict.fromkeys(named) if ids.is_derived(each)]
    if not wanted or not await scope.calls.call("store", lambda: scope.store.exists(collection)):
        return {}
    found = await scope.calls.call("store", lambda: scope.store.get(collection, tenant_id=tenant_id, ids=wanted))
    return {record_id: point.payload for record_id, point in found.items()}


async def _equal(
    collection: str, hashes: Sequence[str], among: Sequence[models.Condition], scope: OwnerEditScope
) -> Sequence[Payload]:
    """Return the owner's records with these texts."""
    if not hashes or not await scope.calls.call("store", lambda: scope.store.exists(collection)):
        return ()
    mine = equals("owner_key", scope.owner_key)
    where = models.Filter(must=[mine, any_of("content_hash", dict.fromkeys(hashes)), *among])
    tenant_id = scope.command.tenant_id
    found = await scope.calls.call("store", lambda: scope.store.select(collection, tenant_id=tenant_id, where=where))
    return [each.payload for each in found]


def _text_of(payload: Payload, *fields: str) -> tuple[str, ...]:
    return tuple(str(payload[name]) for name in fields)


def _has_cause(payload: Payload, cause: str) -> bool:
    """Return whether a command of this import has written the record. An export may have a fact twice, so such a
    record is not a duplicate."""
    applied = payload.get("applied")
    return isinstance(applied, list) and any(str(each).startswith(cause) for each in applied)
