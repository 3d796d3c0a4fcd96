"""Edits of memory over HTTP: facts, episodes, working sets, blocks, procedures, tasks.

Each call waits for the stage that applies the edit, and returns the result. If there is no result in time, the call
returns `Accepted`: the edit is in the log and waits. `fields` are the fields of the route: tenant_id, user_id, reason,
wait … After a connection error the client repeats a call with the same idempotency key, so the edit is applied once.

Raises Refused, with the reason, if memory refuses the edit, and NotFound if there is no such record.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, JsonValue

from ..schemas.blocks import OwnerBlock, SessionHoldings
from ..schemas.edits.blocks import BlockAttached, BlockChanged, BlockRemoved
from ..schemas.edits.episodes import EpisodeAdded, EpisodeEdited, EpisodesMarked, EpisodesMerged
from ..schemas.edits.facts import FactEdited, FactForgotten, FactRemembered, FactsMerged, FactSuperseded
from ..schemas.edits.groups import GroupChanged
from ..schemas.edits.procedures import ProcedureActivated, ProcedureChanged
from ..schemas.edits.prospective import TaskChanged
from ..schemas.edits.sessions import SessionErased
from ..schemas.edits.turns import TurnRetracted
from ..schemas.edits.working import WorkingChanged
from ..schemas.facts import FactState
from ..schemas.groups import MemoryGroup
from ..schemas.procedures import Procedure
from ..schemas.prospective import ProspectiveTask
from .answers import decode, long_names
from .errors import NotFound

KEY_HEADER = "Idempotency-Key"
WAIT_SHARE, WAIT_MAX = 0.8, 20.0
"""Time that the server waits for a result: a share of the call's timeout, and a maximum in seconds."""
R = TypeVar("R", bound=BaseModel)


class Accepted(BaseModel):
    """The edit is in the log and waits for its stage. Its result will be on memory.commands.results."""

    command_id: str


class ReviewedFact(BaseModel):
    """State of a fact after a decision, and the ids of all changed facts."""

    fact_id: str
    state: FactState
    changed_fact_ids: tuple[str, ...]


class Reflected(BaseModel):
    """Counts of a maintenance run. All are zero if there was nothing to do."""

    run_id: str
    pruned: int = 0
    merged: int = 0
    strengthened: int = 0
    derived: int = 0
    compacted: int = 0
    reindexed: int = 0
    duration_ms: int = 0


class BlockPage(BaseModel):
    items: tuple[OwnerBlock, ...]
    next: str | None = None


class ProcedurePage(BaseModel):
    items: tuple[Procedure, ...]
    next: str | None = None


class GroupPage(BaseModel):
    items: tuple[MemoryGroup, ...]
    next: str | None = None


class TaskPage(BaseModel):
    items: tuple[ProspectiveTask, ...]
    next: str | None = None


class Edits(ABC):
    """Edits of memory, and reads of records that people write by hand. `Api` has these calls."""

    timeout: float
    """Seconds for one call including its retries."""

    @abstractmethod
    async def call(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Send a request and return the answer."""

    # ------------------------------------------------------------------------------------------------ facts
    async def remember(self, /, content: str, **fields: JsonValue) -> FactRemembered | Accepted:
        """Remember a statement, written in the third person. The new fact closes facts that it contradicts, unless
        `as_it_is=True`."""
        return await self._edit(FactRemembered, "POST", "/v1/facts", {"content": content, **fields})

    async def update_fact(self, /, fact_id: str, **fields: JsonValue) -> FactEdited | Accepted:
        """Change content, category, tags or metadata of a fact."""
        return await self._edit(FactEdited, "PATCH", _one("facts", fact_id), fields)

    async def reinforce_fact(self, /, fact_id: str, **fields: JsonValue) -> FactEdited | Accepted:
        """Confirm a fact."""
        return await self._edit(FactEdited, "POST", _one("facts", fact_id, "reinforce"), fields)

    async def pin_fact(self, /, fact_id: str, **fields: JsonValue) -> FactEdited | Accepted:
        """Pin a fact: each context of its owner has it."""
        return await self._edit(FactEdited, "POST", _one("facts", fact_id, "pin"), fields)

    async def unpin_fact(self, /, fact_id: str, **fields: JsonValue) -> FactEdited | Accepted:
        return await self._edit(FactEdited, "POST", _one("facts", fact_id, "unpin"), fields)

    async def supersede_fact(self, /, fact_id: str, content: str, **fields: JsonValue) -> FactSuperseded | Accepted:
        """Replace a fact with a new one. The old fact stays in the history."""
        path = _one("facts", fact_id, "supersede")
        return await self._edit(FactSuperseded, "POST", path, {"content": content, **fields})

    async def merge_facts(
        self, /, fact_id: str, fact_ids: Sequence[str], **fields: JsonValue
    ) -> FactsMerged | Accepted:
        """Merge other facts into a fact."""
        path = _one("facts", fact_id, "merge")
        return await self._edit(FactsMerged, "POST", path, {"fact_ids": [*fact_ids], **fields})

    async def forget_fact(self, /, fact_id: str, **fields: JsonValue) -> FactForgotten | Accepted:
        """Forget a fact. No read returns it any more; the log keeps it."""
        return await self._edit(FactForgotten, "DELETE", _one("facts", fact_id), fields)

    async def approve_fact(self, /, fact_id: str, **fields: JsonValue) -> ReviewedFact | Accepted:
        """Approve a quarantined or pending fact."""
        return await self._edit(ReviewedFact, "POST", _one("facts", fact_id, "approve"), fields)

    async def reject_fact(self, /, fact_id: str, **fields: JsonValue) -> ReviewedFact | Accepted:
        """Reject a quarantined or pending fact."""
        return await self._edit(ReviewedFact, "POST", _one("facts", fact_id, "reject"), fields)

    async def reflect(self, /, **fields: JsonValue) -> Reflected | Accepted:
        """Maintain an owner's memory now."""
        return await self._edit(Reflected, "POST", "/v1/reflect", fields)

    # ------------------------------------------------------------------------------------------------ episodes
    async def add_episode(self, /, content: str, **fields: JsonValue) -> EpisodeAdded | Accepted:
        """Add an episode: something that happened."""
        return await self._edit(EpisodeAdded, "POST", "/v1/episodes", {"content": content, **fields})

    async def update_episode(self, /, episode_id: str, **fields: JsonValue) -> EpisodeEdited | Accepted:
        """Change content, tags or importance of an episode."""
        return await self._edit(EpisodeEdited, "PATCH", _one("episodes", episode_id), fields)

    async def forget_episode(self, /, episode_id: str, **fields: JsonValue) -> EpisodeEdited | Accepted:
        return await self._edit(EpisodeEdited, "DELETE", _one("episodes", episode_id), fields)

    async def merge_episodes(
        self, /, episode_id: str, episode_ids: Sequence[str], **fields: JsonValue
    ) -> EpisodesMerged | Accepted:
        """Merge other episodes into an episode."""
        path = _one("episodes", episode_id, "merge")
        return await self._edit(EpisodesMerged, "POST", path, {"episode_ids": [*episode_ids], **fields})

    async def mark_consolidated(self, /, episode_id: str, **fields: JsonValue) -> EpisodesMarked | Accepted:
        """Mark an episode as consolidated, so that no run reads it again."""
        return await self._edit(EpisodesMarked, "POST", _one("episodes", episode_id, "mark-consolidated"), fields)

    # ------------------------------------------------------------------------------------------------ turns
    async def retract_turn(self, /, session_id: str, turn_id: str, **fields: JsonValue) -> TurnRetracted | Accepted:
        """Take a turn back: its messages, its episodes and its evidence of facts go. The turn has no effect if it
        arrives again. Facts, tasks and episodes follow by the commands that the result names."""
        path = f"/v1/turns/{quote(turn_id, safe='')}"
        return await self._in_session(TurnRetracted, "DELETE", path, session_id, fields)

    async def erase_session(self, /, session_id: str, **fields: JsonValue) -> SessionErased | Accepted:
        """Take a session back for ever: its messages, working set, episodes and tasks are deleted, and facts lose its
        evidence. No later turn of the session has an effect. Facts, tasks and episodes follow by the commands that the
        result names."""
        return await self._in_session(SessionErased, "DELETE", "/v1/sessions", session_id, fields)

    # ------------------------------------------------------------------------------------------------ working set
    async def add_entry(self, /, session_id: str, content: str, **fields: JsonValue) -> WorkingChanged | Accepted:
        """Add an entry to a session's working set."""
        return await self._in_session(WorkingChanged, "POST", "/v1/working", session_id, {"content": content, **fields})

    async def evict_entry(self, /, session_id: str, entry_id: str, **fields: JsonValue) -> WorkingChanged | Accepted:
        return await self._in_session(WorkingChanged, "DELETE", _one("working", entry_id), session_id, fields)

    async def pin_entry(self, /, session_id: str, entry_id: str, **fields: JsonValue) -> WorkingChanged | Accepted:
        return await self._in_session(WorkingChanged, "POST", _one("working", entry_id, "pin"), session_id, fields)

    async def unpin_entry(self, /, session_id: str, entry_id: str, **fields: JsonValue) -> WorkingChanged | Accepted:
        return await self._in_session(WorkingChanged, "POST", _one("working", entry_id, "unpin"), session_id, fields)

    async def refresh_entry(self, /, session_id: str, entry_id: str, **fields: JsonValue) -> WorkingChanged | Accepted:
        return await self._in_session(WorkingChanged, "POST", _one("working", entry_id, "refresh"), session_id, fields)

    async def advance_turns(self, /, session_id: str, turns: int = 1, **fields: JsonValue) -> WorkingChanged | Accepted:
        """Advance the turn counter of the session. The salience of entries decays by this counter."""
        return await self._in_session(
            WorkingChanged, "POST", "/v1/working/advance", session_id, {"turns": turns, **fields}
        )

    async def holdings(self, /, session_id: str, **fields: JsonValue) -> SessionHoldings | None:
        """Read a session's own blocks, attached blocks and active procedures. Return None if the session has none of
        these."""
        path = f"/v1/sessions/{quote(session_id, safe='')}/holdings"
        try:
            return decode(SessionHoldings, await self.call("GET", path, params=long_names(fields)))
        except NotFound:
            return None

    # ------------------------------------------------------------------------------------------------ blocks
    async def define_block(self, /, name: str, value: str = "", **fields: JsonValue) -> BlockChanged | Accepted:
        """Define a block: a block of the session if `session_id` is given, else a block of the owner."""
        return await self._block("define", {"name": name, "value": value, **fields})

    async def append_to_block(self, /, name: str, text: str, **fields: JsonValue) -> BlockChanged | Accepted:
        return await self._block("append", {"name": name, "text": text, **fields})

    async def replace_in_block(self, /, name: str, old: str, new: str, **fields: JsonValue) -> BlockChanged | Accepted:
        """Replace a part of the text that occurs exactly once."""
        return await self._block("replace", {"name": name, "old": old, "new": new, **fields})

    async def rethink_block(self, /, name: str, value: str, **fields: JsonValue) -> BlockChanged | Accepted:
        """Replace the whole text of a block. Define the block if it does not exist."""
        return await self._block("rethink", {"name": name, "value": value, **fields})

    async def remove_block(self, /, name: str, **fields: JsonValue) -> BlockRemoved | Accepted:
        return await self._edit(BlockRemoved, "POST", "/v1/blocks/remove", {"name": name, **fields})

    async def attach_block(self, /, session_id: str, name: str, **fields: JsonValue) -> BlockAttached | Accepted:
        """Show an owner's block in the session's context. `owner` is the session's user by default."""
        return await self._in_session(BlockAttached, "POST", "/v1/blocks/attach", session_id, {"name": name, **fields})

    async def detach_block(self, /, session_id: str, name: str, **fields: JsonValue) -> BlockAttached | Accepted:
        return await self._in_session(BlockAttached, "POST", "/v1/blocks/detach", session_id, {"name": name, **fields})

    async def blocks(self, /, **fields: JsonValue) -> BlockPage:
        """Read a page of an owner's blocks."""
        return decode(BlockPage, await self.call("GET", "/v1/blocks", params=long_names(fields)))

    # ------------------------------------------------------------------------------------------------ procedures
    async def define_procedure(
        self, /, name: str, trigger: str, steps: Sequence[str], **fields: JsonValue
    ) -> ProcedureChanged | Accepted:
        """Define a procedure. If the name exists, this is the next version of the procedure."""
        given: dict[str, JsonValue] = {"name": name, "trigger": trigger, "steps": [*steps], **fields}
        return await self._edit(ProcedureChanged, "POST", "/v1/procedures/define", given)

    async def remove_procedure(self, /, name: str, **fields: JsonValue) -> ProcedureChanged | Accepted:
        return await self._edit(ProcedureChanged, "POST", "/v1/procedures/remove", {"name": name, **fields})

    async def activate_procedure(
        self, /, session_id: str, name: str, **fields: JsonValue
    ) -> ProcedureActivated | Accepted:
        """Show a procedure in the session's context."""
        path = "/v1/procedures/activate"
        return await self._in_session(ProcedureActivated, "POST", path, session_id, {"name": name, **fields})

    async def deactivate_procedure(
        self, /, session_id: str, name: str, **fields: JsonValue
    ) -> ProcedureActivated | Accepted:
        path = "/v1/procedures/deactivate"
        return await self._in_session(ProcedureActivated, "POST", path, session_id, {"name": name, **fields})

    async def procedures(self, /, **fields: JsonValue) -> ProcedurePage:
        """Read a page of an owner's procedures, with their earlier versions."""
        return decode(ProcedurePage, await self.call("GET", "/v1/procedures", params=long_names(fields)))

    # ------------------------------------------------------------------------------------------------ groups
    async def define_group(self, /, group_id: str, **fields: JsonValue) -> GroupChanged | Accepted:
        """Define a group, or change its `description`."""
        return await self._group("define", {"group_id": group_id, **fields})

    async def attach_to_group(self, /, group_id: str, **fields: JsonValue) -> GroupChanged | Accepted:
        """Add `members` ({scope, id}), and share `fact_ids` and `procedure_ids` with them."""
        return await self._group("attach", {"group_id": group_id, **fields})

    async def detach_from_group(self, /, group_id: str, **fields: JsonValue) -> GroupChanged | Accepted:
        """Remove members and shared records from a group. The next read no longer returns them."""
        return await self._group("detach", {"group_id": group_id, **fields})

    async def remove_group(self, /, group_id: str, **fields: JsonValue) -> GroupChanged | Accepted:
        """Remove all members and shared records from a group. The group's own memory stays."""
        return await self._group("remove", {"group_id": group_id, **fields})

    async def groups(self, /, **fields: JsonValue) -> GroupPage:
        """Read a page of groups of the tenant or, with `user_id`, of the groups of this user."""
        return decode(GroupPage, await self.call("GET", "/v1/groups", params=long_names(fields)))

    # ------------------------------------------------------------------------------------------------ tasks
    async def add_task(self, /, content: str, **fields: JsonValue) -> TaskChanged | Accepted:
        """Add a task with `due_at` (RFC 3339) or `condition`."""
        return await self._edit(TaskChanged, "POST", "/v1/tasks", {"content": content, **fields})

    async def finish_task(self, /, task_id: str, **fields: JsonValue) -> TaskChanged | Accepted:
        """Mark a task as done."""
        return await self._edit(TaskChanged, "POST", _one("tasks", task_id, "done"), fields)

    async def cancel_task(self, /, task_id: str, **fields: JsonValue) -> TaskChanged | Accepted:
        return await self._edit(TaskChanged, "POST", _one("tasks", task_id, "cancel"), fields)

    async def tasks(self, /, **fields: JsonValue) -> TaskPage:
        """Read a page of an owner's tasks in one `state`; by default the tasks that are open or due."""
        return decode(TaskPage, await self.call("GET", "/v1/tasks", params=long_names(fields)))

    # ------------------------------------------------------------------------------------------------ helpers
    async def _group(self, what: str, fields: Mapping[str, JsonValue]) -> GroupChanged | Accepted:
        return await self._edit(GroupChanged, "POST", f"/v1/groups/{what}", fields)

    async def _block(self, what: str, fields: Mapping[str, JsonValue]) -> BlockChanged | Accepted:
        return await self._edit(BlockChanged, "POST", f"/v1/blocks/{what}", fields)

    async def _in_session(
        self, result: type[R], method: str, path: str, session_id: str, fields: Mapping[str, JsonValue]
    ) -> R | Accepted:
        return await self._edit(result, method, path, {"session_id": session_id, **fields})

    async def _edit(self, result: type[R], method: str, path: str, fields: Mapping[str, JsonValue]) -> R | Accepted:
        given = long_names(fields)
        given.setdefault("wait", min(WAIT_SHARE * self.timeout, WAIT_MAX))
        key = str(given.pop("idempotency_key", None) or uuid.uuid4())
        body: dict[str, Any] = {"params": given} if method == "DELETE" else {"json": given}
        answer = await self.call(method, path, headers={KEY_HEADER: key}, **body)
        if answer.status_code == HTTPStatus.ACCEPTED:
            return decode(Accepted, answer)
        return decode(result, answer)


def _one(collection: str, record_id: str, what: str = "") -> str:
    """Return the path of one record. The prefix `mt_`, which tools put before an id, is removed."""
    name = quote(record_id.removeprefix("mt_"), safe="")
    return f"/v1/{collection}/{name}" + (f"/{what}" if what else "")
