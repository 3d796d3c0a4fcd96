"""Reader of stored records: facts, episodes, the digest, the working set, the session log. Used by CLI, HTTP and tools.

Pages are bounded (paging.py). The `every_…` methods read all matching records, for commands that print them. A missing
collection counts as empty.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from qdrant_client import models

from ..adapters.ports import Payload, VectorStore
from ..adapters.vectors.conditions import after, any_of, equals, until
from ..memory.facts.belief import DENIED
from ..schemas.base import Contract
from ..schemas.blocks import NamedRecord, OwnerBlock, SessionHoldings, StoredBlock, StoredHoldings
from ..schemas.collections import BLOCKS, DIGESTS, EPISODES, FACTS, GROUPS, HOLDINGS, PROCEDURES, TASKS, TURNS, WORKING
from ..schemas.digests import Digest, StoredDigest
from ..schemas.edits.prospective import PENDING, TASKS_MAX, TaskState
from ..schemas.episodes import Episode, StoredEpisode
from ..schemas.facts import Fact, StoredFact
from ..schemas.groups import MemoryGroup, StoredGroup
from ..schemas.ids import block_id as block_id_of
from ..schemas.ids import digest_id as digest_id_of
from ..schemas.ids import group_record_id, session_key
from ..schemas.ids import holdings_id as holdings_id_of
from ..schemas.ids import procedure_id as procedure_id_of
from ..schemas.procedures import Procedure, StoredProcedure
from ..schemas.prospective import ProspectiveTask, StoredTask
from ..schemas.turns import Owner, Sensitivity, up_to
from ..schemas.working_set import ENTRIES_MAX, StoredMessage, StoredWorkingEntry
from .collection_cache import CollectionCache
from .paging import PAGE_MAX, Page, read_page
from .record_filters import (
    RecordSelection,
    digests_filter,
    episodes_filter,
    facts_filter,
    first_messages_filter,
    member_filter,
    messages_filter,
    owned_filter,
    procedures_filter,
    procedures_of_filter,
    tasks_due_filter,
    tasks_waiting_filter,
    working_filter,
)
from .request import GROUPS_MAX

PAGE_DEFAULT = 50
TO_DO_MAX = 10
"""Maximum number of due tasks in a context."""
TURNS_MAX = 50
"""Maximum number of turns in a page of the session log. A turn has up to 64 messages and 256 KiB."""
R = TypeVar("R", bound=Contract)
L = TypeVar("L", OwnerBlock, Procedure, ProspectiveTask)
Sees = Callable[[Owner], bool]
"""Function that returns whether the caller may see an owner's records."""


def sees_all(owner: Owner) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class LoggedTurn:
    """A turn with its messages in order, in their exact words."""

    user_id: str
    session_id: str
    turn_id: str
    occurred_at: datetime
    messages: tuple[StoredMessage, ...]


@dataclass(frozen=True, slots=True)
class _Kind(Generic[R]):
    """The collection of one kind of record, with its filter, decoder and order."""

    collection: str
    where: Callable[[RecordSelection], models.Filter]
    record: Callable[[Payload], R]
    order_by: str | None


_FACT: _Kind[Fact] = _Kind(FACTS, facts_filter, lambda each: StoredFact.from_payload(each).public(), "recorded_at")
_EPISODE: _Kind[Episode] = _Kind(
    EPISODES, episodes_filter, lambda each: StoredEpisode.from_payload(each).public(), "occurred_at"
)
_ENTRY: _Kind[StoredWorkingEntry] = _Kind(WORKING, working_filter, StoredWorkingEntry.from_payload, None)
_DIGEST: _Kind[Digest] = _Kind(DIGESTS, digests_filter, lambda each: StoredDigest.from_payload(each).public(), None)
_PROCEDURE: _Kind[Procedure] = _Kind(
    PROCEDURES, procedures_filter, lambda each: StoredProcedure.from_payload(each).public(), None
)
_BLOCK: _Kind[OwnerBlock] = _Kind(BLOCKS, owned_filter, lambda each: StoredBlock.from_payload(each).public(), None)
_GROUP: _Kind[MemoryGroup] = _Kind(GROUPS, member_filter, lambda each: StoredGroup.from_payload(each).public(), None)
_TASK: _Kind[ProspectiveTask] = _Kind(TASKS, owned_filter, lambda each: StoredTask.from_payload(each).public(), None)
_MESSAGE: _Kind[StoredMessage] = _Kind(TURNS, messages_filter, StoredMessage.from_payload, "occurred_at")


class RecordReader:
    """The reader. One instance serves concurrent reads. Raises Transient when the store does not answer."""

    def __init__(self, *, store: VectorStore) -> None:
        self._store = store
        self._existing = CollectionCache(store=store)

    # -------------------------------------------------------------------------------------------- pages
    async def facts(
        self, selection: RecordSelection, *, limit: int = PAGE_DEFAULT, cursor: str | None = None
    ) -> Page[Fact]:
        """Read a page of facts, most recently recorded first."""
        return await self._page(_FACT, selection, limit, cursor)

    async def episodes(
        self, selection: RecordSelection, *, limit: int = PAGE_DEFAULT, cursor: str | None = None
    ) -> Page[Episode]:
        """Read a page of episodes, newest `occurred_at` first."""
        return await self._page(_EPISODE, selection, limit, cursor)

    async def working(
        self, selection: RecordSelection, *, limit: int = ENTRIES_MAX, cursor: str | None = None
    ) -> Page[StoredWorkingEntry]:
        """Read a page of working entries. The pages are in the order of the ids. Inside a page, the entries are sorted
        by session, the most salient entry first. The entries of one session fit into one page."""
        page = await self._page(_ENTRY, selection, limit, cursor)
        return Page(tuple(sorted(page.items, key=_salience_first)), page.next)

    async def procedures(
        self, selection: RecordSelection, *, limit: int = PAGE_DEFAULT, cursor: str | None = None
    ) -> Page[Procedure]:
        """Read a page of procedures by id."""
        return await self._page(_PROCEDURE, selection, limit, cursor)

    async def blocks(
        self, selection: RecordSelection, *, limit: int = PAGE_DEFAULT, cursor: str | None = None
    ) -> Page[OwnerBlock]:
        """Read a page of the owners' blocks by id. A session's own blocks are in its holdings."""
        return await self._page(_BLOCK, selection, limit, cursor)

    async def log(self, selection: RecordSelection, *, limit: int = 20, cursor: str | None = None) -> Page[LoggedTurn]:
        """Read a page of at most 50 turns, newest first. All messages of a turn are in one page."""
        if not 1 <= limit <= TURNS_MAX:
            raise ValueError(f"the limit must be 1 to {TURNS_MAX} turns, not {limit}")
        if not await self._existing.has(TURNS):
            return Page(())
        heads = await read_page(
            self._store,
            TURNS,
            tenant_id=selection.tenant_id,
            where=first_messages_filter(selection),
            order_by=_MESSAGE.order_by,
            limit=limit,
            cursor=cursor,
        )
        turns: dict[tuple[str, str, str], list[StoredMessage]] = {}
        for head in heads.items:
            message = StoredMessage.from_payload(head.payload)
            turns[_turn(message)] = [message]
        for message in await self._further(selection, messages_filter(selection), turns):
            turns[_turn(message)].append(message)
        return Page(tuple(_logged(messages) for messages in turns.values()), heads.next)

    # -------------------------------------------------------------------------------------------- one, or all
    async def fact(
        self, tenant_id: str, fact_id: str, *, sees: Sees = sees_all, ceiling: Sensitivity = "internal"
    ) -> Fact | None:
        """Return a fact in any state, or None when it does not exist or the caller may not read it. `sees` checks the
        owner of the fact."""
        if not await self._existing.has(FACTS):
            return None
        found = await self._store.get(FACTS, tenant_id=tenant_id, ids=[fact_id])
        if fact_id not in found:
            return None
        fact = _FACT.record(found[fact_id].payload)
        return fact if fact.sensitivity in up_to(ceiling) and sees(fact.owner) else None

    async def facts_by_id(
        self,
        tenant_id: str,
        fact_ids: Sequence[str],
        *,
        sees: Sees = sees_all,
        ceiling: Sensitivity = "internal",
    ) -> Mapping[str, Fact]:
        """Return the facts with these ids that the caller may read, by id."""
        if not fact_ids or not await self._existing.has(FACTS):
            return {}
        found = await self._store.get(FACTS, tenant_id=tenant_id, ids=fact_ids)
        facts = (_FACT.record(each.payload) for each in found.values())
        return {fact.fact_id: fact for fact in facts if fact.sensitivity in up_to(ceiling) and sees(fact.owner)}

    async def episode(
        self, tenant_id: str, episode_id: str, *, sees: Sees = sees_all, ceiling: Sensitivity = "internal"
    ) -> Episode | None:
        """Return an episode, even if deleted, or None when it does not exist or the caller may not read it."""
        if not await self._existing.has(EPISODES):
            return None
        found = await self._store.get(EPISODES, tenant_id=tenant_id, ids=[episode_id])
        if episode_id not in found:
            return None
        episode = _EPISODE.record(found[episode_id].payload)
        return episode if episode.sensitivity in up_to(ceiling) and sees(episode.owner) else None

    async def procedure(
        self, tenant_id: str, owner: Owner, name: str, *, ceiling: Sensitivity = "internal"
    ) -> Procedure | None:
        """Return an owner's procedure by name, or None when it does not exist or the caller may not read it."""
        if not await self._existing.has(PROCEDURES):
            return None
        procedure_id = procedure_id_of(owner.key(tenant_id), name)
        found = await self._store.get(PROCEDURES, tenant_id=tenant_id, ids=[procedure_id])
        if procedure_id not in found:
            return None
        procedure = _PROCEDURE.record(found[procedure_id].payload)
        shown = procedure.removed_at is None and procedure.sensitivity in up_to(ceiling)
        return procedure if shown else None

    async def procedure_by_id(
        self, tenant_id: str, procedure_id: str, *, sees: Sees = sees_all, ceiling: Sensitivity = "internal"
    ) -> Procedure | None:
        """Return a procedure, or None when it does not exist, was removed, or the caller may not read it."""
        found = await self._by_ids(_PROCEDURE, tenant_id, [procedure_id], ceiling)
        return next((each for each in found if each.removed_at is None and sees(each.owner)), None)

    async def task(
        self, tenant_id: str, task_id: str, *, sees: Sees = sees_all, ceiling: Sensitivity = "internal"
    ) -> ProspectiveTask | None:
        """Return a task in any state, or None when it does not exist or the caller may not read it."""
        found = await self._by_ids(_TASK, tenant_id, [task_id], ceiling)
        return next((each for each in found if sees(each.owner)), None)

    async def procedures_for(
        self, tenant_id: str, member: Owner, *, ceiling: Sensitivity = "internal"
    ) -> tuple[Procedure, ...]:
        """Return at most 200 procedures of a user or agent: first its own procedures, then the procedures that its
        groups own or share."""
        if not await self._existing.has(PROCEDURES):
            return ()
        groups = await self.groups_of(tenant_id, member)
        owners = [member.key(tenant_id), *(Owner(scope="group", id=each.group_id).key(tenant_id) for each in groups)]
        shared = [procedure_id for each in groups for procedure_id in each.procedure_ids]
        where = procedures_of_filter(RecordSelection(tenant_id=tenant_id, ceiling=ceiling), owners, shared)
        found = await self._store.select(PROCEDURES, tenant_id=tenant_id, where=where, limit=PAGE_MAX)
        procedures = [_PROCEDURE.record(each.payload) for each in found]
        return tuple(sorted(procedures, key=lambda each: (each.owner != member, each.name, each.procedure_id)))

    async def blocks_by_name(
        self, tenant_id: str, named: Sequence[NamedRecord], *, ceiling: Sensitivity = "internal"
    ) -> tuple[OwnerBlock, ...]:
        """Return the named blocks that exist and that the caller may read, in the given order."""
        wanted = [block_id_of(each.owner.key(tenant_id), each.name) for each in named]
        return await self._by_ids(_BLOCK, tenant_id, wanted, ceiling)

    async def procedures_by_name(
        self, tenant_id: str, named: Sequence[NamedRecord], *, ceiling: Sensitivity = "internal"
    ) -> tuple[Procedure, ...]:
        """Return the named procedures that exist and that the caller may read, in the given order."""
        wanted = [procedure_id_of(each.owner.key(tenant_id), each.name) for each in named]
        found = await self._by_ids(_PROCEDURE, tenant_id, wanted, ceiling)
        return tuple(each for each in found if each.removed_at is None)

    async def tasks(
        self,
        selection: RecordSelection,
        *,
        states: Collection[TaskState] = (),
        limit: int = PAGE_DEFAULT,
        cursor: str | None = None,
    ) -> Page[ProspectiveTask]:
        """Read a page of tasks by id. Without `states`, read open and due tasks."""
        wanted = any_of("state", tuple(states) or PENDING)
        return await self._page(_TASK, selection, limit, cursor, wanted)

    async def pending_tasks(
        self, tenant_id: str, owner: Owner, *, ceiling: Sensitivity = "internal"
    ) -> tuple[ProspectiveTask, ...]:
        """Return the owner's due tasks, newest first and at most 10, then the tasks that wait for a condition."""
        if not await self._existing.has(TASKS):
            return ()
        selection = RecordSelection(tenant_id=tenant_id, owner=owner, ceiling=ceiling)
        due, waiting = tasks_due_filter(selection), tasks_waiting_filter(selection)
        found = await asyncio.gather(
            self._store.last(TASKS, tenant_id=tenant_id, where=due, order_by="due_at", limit=TO_DO_MAX),
            self._store.select(TASKS, tenant_id=tenant_id, where=waiting, limit=TASKS_MAX),
        )
        return tuple(_TASK.record(each.payload) for points in found for each in points)

    async def groups(
        self, selection: RecordSelection, *, limit: int = PAGE_DEFAULT, cursor: str | None = None
    ) -> Page[MemoryGroup]:
        """Read a page of groups by id: all groups of the tenant, or the groups with `selection.owner` as a member."""
        return await self._page(_GROUP, selection, limit, cursor)

    async def groups_of(self, tenant_id: str, member: Owner) -> tuple[MemoryGroup, ...]:
        """Return the groups of which a user or an agent is a member, at most 32."""
        if not await self._existing.has(GROUPS):
            return ()
        where = member_filter(RecordSelection(tenant_id=tenant_id, owner=member))
        found = await self._store.select(GROUPS, tenant_id=tenant_id, where=where, limit=GROUPS_MAX)
        return tuple(_GROUP.record(each.payload) for each in found)

    async def left_groups(self, tenant_id: str, member: Owner, group_ids: Collection[str]) -> frozenset[str]:
        """Return the ids of the groups that exist but do not have this member. The member may not see records of these
        groups."""
        groups = await self._groups_by_id(tenant_id, group_ids)
        return frozenset(each.group_id for each in groups if member not in each.members)

    async def joined_groups(self, tenant_id: str, member: Owner, group_ids: Collection[str]) -> frozenset[str]:
        """Return the ids of the groups that exist and have this member."""
        groups = await self._groups_by_id(tenant_id, group_ids)
        return frozenset(each.group_id for each in groups if member in each.members)

    async def _groups_by_id(self, tenant_id: str, group_ids: Collection[str]) -> Sequence[MemoryGroup]:
        if not group_ids or not await self._existing.has(GROUPS):
            return ()
        owners = (Owner(scope="group", id=each) for each in group_ids)
        wanted = [group_record_id(owner.key(tenant_id)) for owner in owners]
        found = await self._store.get(GROUPS, tenant_id=tenant_id, ids=wanted)
        return [_GROUP.record(each.payload) for each in found.values()]

    async def holdings(
        self, tenant_id: str, user_id: str, session_id: str, *, ceiling: Sensitivity = "internal"
    ) -> SessionHoldings | None:
        """Return a session's blocks, attachments and active procedures, without blocks that the caller may not read.

        Return None when the session never had a block, an attachment or a procedure.
        """
        if not await self._existing.has(HOLDINGS):
            return None
        holdings_id = holdings_id_of(session_key(tenant_id, user_id, session_id))
        found = await self._store.get(HOLDINGS, tenant_id=tenant_id, ids=[holdings_id])
        if holdings_id not in found:
            return None
        held = StoredHoldings.from_payload(found[holdings_id].payload).public()
        shown = tuple(block for block in held.blocks if block.sensitivity in up_to(ceiling))
        return held.model_copy(update={"blocks": shown})

    async def digest(self, tenant_id: str, owner: Owner, *, ceiling: Sensitivity = "internal") -> Digest | None:
        """Return the owner's digest, or None when it does not exist or the caller may not read it."""
        if not await self._existing.has(DIGESTS):
            return None
        digest_id = digest_id_of(owner.key(tenant_id))
        found = await self._store.get(DIGESTS, tenant_id=tenant_id, ids=[digest_id])
        if digest_id not in found:
            return None
        digest = _DIGEST.record(found[digest_id].payload)
        return digest if digest.sensitivity in up_to(ceiling) else None

    async def is_outdated(self, digest: Digest) -> bool:
        """Return whether a fact that was known when the digest was written is not believed any more."""
        closed = [after(name, digest.at) for name in ("closed_at", "expired_at")]
        conditions: list[models.Condition] = [
            equals("owner_key", digest.owner.key(digest.tenant_id)),
            any_of("state", DENIED),
            until("recorded_at", digest.at),
            models.Filter(should=closed),
        ]
        if not await self._existing.has(FACTS):
            return False
        where = models.Filter(must=conditions)
        found = await self._store.select(FACTS, tenant_id=digest.tenant_id, where=where, limit=1, fields=("state",))
        return bool(found)

    async def every_digest(self, selection: RecordSelection) -> list[Digest]:
        """Read all digests, sorted by owner."""
        found = await self._every(_DIGEST, selection)
        return sorted(found, key=lambda each: each.owner.key(each.tenant_id))

    async def every_fact(self, selection: RecordSelection) -> list[Fact]:
        """Read all facts, oldest first."""
        return sorted(await self._every(_FACT, selection), key=lambda each: (each.recorded_at, each.fact_id))

    async def every_episode(self, selection: RecordSelection) -> list[Episode]:
        """Read all episodes, oldest first."""
        found = await self._every(_EPISODE, selection)
        return sorted(found, key=lambda each: (each.occurred_at, each.recorded_at, each.episode_id))

    async def every_entry(self, selection: RecordSelection) -> list[StoredWorkingEntry]:
        """Read all working entries, sorted by session, most salient first."""
        return sorted(await self._every(_ENTRY, selection), key=_salience_first)

    async def every_message(self, selection: RecordSelection) -> list[StoredMessage]:
        """Read all messages, oldest first, with the messages of a turn together."""
        return sorted(await self._every(_MESSAGE, selection), key=said_in_order)

    # -------------------------------------------------------------------------------------------- within
    async def _page(
        self,
        kind: _Kind[R],
        selection: RecordSelection,
        limit: int,
        cursor: str | None,
        *further: models.Condition,
    ) -> Page[R]:
        if not await self._existing.has(kind.collection):
            return Page(())
        page = await read_page(
            self._store,
            kind.collection,
            tenant_id=selection.tenant_id,
            where=models.Filter(must=[kind.where(selection), *further]),
            order_by=kind.order_by,
            limit=limit,
            cursor=cursor,
        )
        return Page(tuple(kind.record(each.payload) for each in page.items), page.next)

    async def _by_ids(
        self, kind: _Kind[L], tenant_id: str, wanted: Sequence[str], ceiling: Sensitivity
    ) -> tuple[L, ...]:
        if not wanted or not await self._existing.has(kind.collection):
            return ()
        found = await self._store.get(kind.collection, tenant_id=tenant_id, ids=wanted)
        records = (kind.record(found[each].payload) for each in wanted if each in found)
        return tuple(each for each in records if each.sensitivity in up_to(ceiling))

    async def _every(self, kind: _Kind[R], selection: RecordSelection) -> list[R]:
        if not await self._existing.has(kind.collection):
            return []
        found = await self._store.select(kind.collection, tenant_id=selection.tenant_id, where=kind.where(selection))
        return [kind.record(each.payload) for each in found]

    async def _further(
        self, selection: RecordSelection, where: models.Filter, turns: dict[tuple[str, str, str], list[StoredMessage]]
    ) -> list[StoredMessage]:
        """Read all messages of these turns except the first message of each turn."""
        if not turns:
            return []
        users, sessions, turn_ids = zip(*turns, strict=True)
        of_turns = [any_of("user_id", users), any_of("session_id", sessions), any_of("turn_id", turn_ids)]
        later = models.FieldCondition(key="message_index", range=models.Range(gt=0))
        found = await self._store.select(
            TURNS,
            tenant_id=selection.tenant_id,
            where=models.Filter(must=[where, *of_turns, later]),
        )
        messages = [StoredMessage.from_payload(each.payload) for each in found]
        return [message for message in messages if _turn(message) in turns]


def said_in_order(message: StoredMessage) -> tuple[datetime, str, str, int]:
    return (message.occurred_at, message.session_id, message.turn_id, message.message_index)


def _turn(message: StoredMessage) -> tuple[str, str, str]:
    return (message.user_id, message.session_id, message.turn_id)


def _logged(messages: list[StoredMessage]) -> LoggedTurn:
    first = messages[0]
    ordered = tuple(sorted(messages, key=lambda each: each.message_index))
    return LoggedTurn(first.user_id, first.session_id, first.turn_id, first.occurred_at, ordered)


def _salience_first(entry: StoredWorkingEntry) -> tuple[str, str, float, str]:
    return (entry.user_id, entry.session_id, -entry.salience, entry.entry_id)
