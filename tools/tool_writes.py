"""The tools that change memory. Each tool sends an edit and waits for the result. The tool raises `WriteWaits` when the
result does not come in time."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from ..recall.record_reader import RecordReader
from ..schemas import ids
from ..schemas.base import Contract
from ..schemas.commands import Command
from ..schemas.edits import blocks, episodes, facts, procedures, prospective
from ..schemas.episodes import Episode
from ..schemas.facts import Fact, Trust
from ..schemas.procedures import Procedure, ProcedureText
from ..schemas.prospective import ProspectiveTask
from ..schemas.tools import (
    ActiveProcedure,
    BlockEdited,
    FactReplaced,
    FactTold,
    Forgotten,
    MemoryAdd,
    MemoryDelete,
    MemoryMerge,
    MemoryReflect,
    MemoryUpdate,
    ReflectCounts,
    ToolBlockAppend,
    ToolBlockReplace,
    ToolBlockRethink,
    ToolFactForget,
    ToolFactRemember,
    ToolFactSupersede,
    ToolProcedureActivate,
    TraceAdded,
    TraceDeleted,
    TracesMerged,
    TraceUpdated,
)
from ..schemas.turns import Owner
from ..streams.senders.commands import CommandPort
from .audit import audit
from .editor import EditRefused, EditTarget, MemoryEditor
from .tool_call import Call, WriteWaits, record_id, trace_id
from .tool_port import ToolError

R = TypeVar("R", bound=Contract)
Trace = Fact | Episode | Procedure | ProspectiveTask
"""A record that a trace id names."""
PROCEDURE_NAME_MAX = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolWrites:
    editor: MemoryEditor
    commands: CommandPort
    records: RecordReader
    now: Callable[[], datetime]

    # ------------------------------------------------------------------------------------------------ any memory
    async def add(self, args: MemoryAdd, call: Call) -> TraceAdded:
        owner, session = call.owner(args.scope), call.session_id(args.scope)
        match args.type:
            case "episodic":
                added = await self._edit(
                    "episodes.add",
                    episodes.EpisodeAdd(
                        content=args.content,
                        tags=args.tags,
                        user_id=call.identity.user_id,
                        session_id=session,
                        trust=call.identity.trust,
                    ),
                    episodes.EpisodeAdded,
                    call,
                    owner,
                )
                return TraceAdded(trace_id=trace_id(added.episode_id), existing=added.existing)
            case "semantic":
                remembered = await self._edit(
                    "facts.remember",
                    facts.FactRemember(
                        content=args.content, tags=args.tags, session_id=session, trust=call.identity.trust
                    ),
                    facts.FactRemembered,
                    call,
                    owner,
                )
                return TraceAdded(trace_id=trace_id(remembered.fact_id), existing=remembered.decision == "dedup")
            case "procedural":
                defined = await self._edit(
                    "procedures.define",
                    _procedure(args.content, call.identity.trust),
                    procedures.ProcedureChanged,
                    call,
                    owner,
                )
                return TraceAdded(trace_id=trace_id(defined.procedure_id), existing=not defined.changed)
            case "prospective":
                task = await self._edit(
                    "tasks.add",
                    prospective.TaskAdd(
                        content=args.content,
                        condition=args.content.strip()[:500],
                        tags=args.tags,
                        trust=call.identity.trust,
                    ),
                    prospective.TaskChanged,
                    call,
                    owner,
                )
                return TraceAdded(trace_id=trace_id(task.task_id), existing=not task.changed)

    async def update(self, args: MemoryUpdate, call: Call) -> TraceUpdated:
        if args.content is None and args.tags is None:
            raise ToolError("memory_update needs content, tags, or both")
        found = await self._found(args.trace_id, call)
        match found:
            case None:
                return TraceUpdated(updated=False)
            case Fact():
                edited: facts.FactEdited | episodes.EpisodeEdited = await self._edit(
                    "facts.update",
                    facts.FactEdit(
                        fact_id=found.fact_id, content=args.content, tags=args.tags, trust=call.identity.trust
                    ),
                    facts.FactEdited,
                    call,
                    found.owner,
                )
            case Episode():
                edited = await self._edit(
                    "episodes.update",
                    episodes.EpisodeEdit(
                        episode_id=found.episode_id, content=args.content, tags=args.tags, trust=call.identity.trust
                    ),
                    episodes.EpisodeEdited,
                    call,
                    found.owner,
                )
            case Procedure():
                return await self._reworded(found, args, call)
            case ProspectiveTask():
                raise ToolError("a task cannot be reworded: delete it, and add a new one")
        return TraceUpdated(updated=edited.changed)

    async def _reworded(self, found: Procedure, args: MemoryUpdate, call: Call) -> TraceUpdated:
        """Define the next version of a procedure; its name stays."""
        if args.content is None or args.tags is not None:
            raise ToolError("a procedure has no tags: give its content alone, when it applies and then the steps")
        edit = _procedure(args.content, call.identity.trust).model_copy(update={"name": found.name})
        defined = await self._edit("procedures.define", edit, procedures.ProcedureChanged, call, found.owner)
        return TraceUpdated(updated=defined.changed)

    async def delete(self, args: MemoryDelete, call: Call) -> TraceDeleted:
        found = await self._found(args.trace_id, call)
        match found:
            case None:
                return TraceDeleted(deleted=False)
            case Fact():
                gone = await self._edit(
                    "facts.forget",
                    facts.FactForget(fact_id=found.fact_id),
                    facts.FactForgotten,
                    call,
                    found.owner,
                )
                return TraceDeleted(deleted=gone.forgotten)
            case Episode():
                deleted = await self._edit(
                    "episodes.forget",
                    episodes.EpisodeForget(episode_id=found.episode_id),
                    episodes.EpisodeEdited,
                    call,
                    found.owner,
                )
                return TraceDeleted(deleted=deleted.changed)
            case Procedure():
                removal = procedures.ProcedureRemove(name=found.name)
                removed = await self._edit("procedures.remove", removal, procedures.ProcedureChanged, call, found.owner)
                return TraceDeleted(deleted=removed.changed)
            case ProspectiveTask():
                cancel = prospective.TaskRef(task_id=found.task_id)
                cancelled = await self._edit("tasks.cancel", cancel, prospective.TaskChanged, call, found.owner)
                return TraceDeleted(deleted=cancelled.changed)

    async def merge(self, args: MemoryMerge, call: Call) -> TracesMerged:
        found = await asyncio.gather(*(self._found(each, call) for each in args.trace_ids))
        for given, each in zip(args.trace_ids, found, strict=True):
            if each is None:
                raise ToolError(f"there is no memory {given[:80]!r} of this user: search for its id")
        all_facts = [each for each in found if isinstance(each, Fact)]
        all_episodes = [each for each in found if isinstance(each, Episode)]
        if len(found) not in (len(all_facts), len(all_episodes)):
            raise ToolError("only facts or only episodes can be merged: give the ids of one type")
        if all_facts:
            merged = await self._edit(
                "facts.merge",
                facts.FactMerge(
                    fact_ids=tuple(each.fact_id for each in all_facts), content=args.content, trust=call.identity.trust
                ),
                facts.FactsMerged,
                call,
                all_facts[0].owner,
            )
            return TracesMerged(merged_trace_id=trace_id(merged.fact_id), sources_deleted=len(merged.merged_fact_ids))
        joined = await self._edit(
            "episodes.merge",
            episodes.EpisodesMerge(
                episode_ids=tuple(each.episode_id for each in all_episodes),
                content=args.content,
                trust=call.identity.trust,
            ),
            episodes.EpisodesMerged,
            call,
            all_episodes[0].owner,
        )
        return TracesMerged(merged_trace_id=trace_id(joined.episode_id), sources_deleted=len(joined.merged_episode_ids))

    async def reflect(self, args: MemoryReflect, call: Call) -> ReflectCounts:
        """Run maintenance of the memory of the user now. All counts are zero when another run is in progress."""
        identity = call.identity
        command = Command(
            command_id=str(uuid.uuid4()),
            kind="hygiene",
            tenant_id=identity.tenant_id,
            owner=identity.user,
            args={"run": "reflect"},
            issued_by=identity.caller[:128],
            issued_at=self.now(),
        )
        status = "failed"
        try:
            result = await self.commands.ask(command, patience=call.patience)
            status = "accepted" if result is None else result.status
        finally:
            audit(
                "reflect",
                who=identity.caller,
                tenant_id=identity.tenant_id,
                owner=identity.user,
                result=status,
                command_id=command.command_id,
            )
        if result is None:
            raise WriteWaits(command.command_id)
        if result.status != "applied":
            why = result.error.message if result.error is not None else result.status
            raise EditRefused(result.status, f"memory was not maintained: {why}")
        counts = result.result or {}
        return ReflectCounts.from_payload({name: counts.get(name, 0) for name in ReflectCounts.model_fields})

    # ------------------------------------------------------------------------------------------------ facts
    async def remember_fact(self, args: ToolFactRemember, call: Call) -> FactTold:
        session = call.identity.session_id
        remembered = await self._edit(
            "facts.remember",
            facts.FactRemember(
                content=args.content,
                subject=args.subject,
                category=args.category,
                valid_from=args.valid_from,
                tags=args.tags,
                session_id=session,
                trust=call.identity.trust,
            ),
            facts.FactRemembered,
            call,
            call.identity.user,
        )
        return FactTold(decision=remembered.decision, fact_id=remembered.fact_id, reason=remembered.reason)

    async def supersede_fact(self, args: ToolFactSupersede, call: Call) -> FactReplaced:
        fact = await self._fact(args.fact_id, call)
        replaced = await self._edit(
            "facts.supersede",
            facts.FactSupersede(fact_id=fact.fact_id, content=args.content, trust=call.identity.trust),
            facts.FactSuperseded,
            call,
            fact.owner,
        )
        return FactReplaced(old_fact_id=replaced.old_fact_id, fact_id=replaced.fact_id)

    async def forget_fact(self, args: ToolFactForget, call: Call) -> Forgotten:
        fact = await self._fact(args.fact_id, call)
        gone = await self._edit(
            "facts.forget",
            facts.FactForget(fact_id=fact.fact_id, because=args.because, reason=args.reason),
            facts.FactForgotten,
            call,
            fact.owner,
        )
        return Forgotten(forgotten=gone.forgotten, restored_fact_ids=gone.restored_fact_ids)

    # ------------------------------------------------------------------------------------------------ the session
    async def append_to_block(self, args: ToolBlockAppend, call: Call) -> BlockEdited:
        return await self._edit_block(
            "blocks.append", blocks.BlockAppend(name=args.name, text=args.text, trust=call.identity.trust), call
        )

    async def replace_in_block(self, args: ToolBlockReplace, call: Call) -> BlockEdited:
        edit = blocks.BlockReplace(name=args.name, old=args.old, new=args.new, trust=call.identity.trust)
        return await self._edit_block("blocks.replace", edit, call)

    async def rethink_block(self, args: ToolBlockRethink, call: Call) -> BlockEdited:
        return await self._edit_block(
            "blocks.rethink", blocks.BlockRethink(name=args.name, value=args.value, trust=call.identity.trust), call
        )

    async def activate_procedure(self, args: ToolProcedureActivate, call: Call) -> ActiveProcedure:
        identity, wanted = call.identity, ids.canonical(args.name)
        known = await self.records.procedures_for(identity.tenant_id, identity.user, ceiling=identity.ceiling)
        found = next((each for each in known if ids.canonical(each.name) == wanted), None)
        if found is None:
            raise ToolError(f"there is no procedure {args.name!r}: procedure_list names them")
        edit = procedures.ProcedureActivate(name=found.name, owner=found.owner)
        done = await self._edit("procedures.activate", edit, procedures.ProcedureActivated, call)
        return ActiveProcedure(name=done.name, steps=found.steps, active=done.active)

    async def _edit_block(self, kind: str, args: Contract, call: Call) -> BlockEdited:
        """Edit a block of the session, or of the user when the connection names no session."""
        owner = None if call.identity.session is not None else call.identity.user
        changed = await self._edit(kind, args, blocks.BlockChanged, call, owner)
        return BlockEdited(name=changed.name, value=changed.value, characters=changed.characters, limit=changed.limit)

    # ------------------------------------------------------------------------------------------------ helpers
    async def _edit(self, kind: str, args: Contract, result: type[R], call: Call, owner: Owner | None = None) -> R:
        """Send an edit whose target is `owner`, or the session of the call when `owner` is None."""
        session = None if owner is not None else call.session
        answer = await self.editor.edit(
            kind,
            args,
            target=EditTarget(call.identity.tenant_id, owner=owner, session=session),
            caller=call.identity.caller,
            patience=call.patience,
            idempotency_key=call.key,
        )
        if answer.result is None:
            raise WriteWaits(answer.command_id)
        assert isinstance(answer.result, result)
        return answer.result

    async def _found(self, given: str, call: Call) -> Trace | None:
        """Return the record of the user that a trace id names, in any state."""
        identity, wanted = call.identity, record_id(given)
        fact = await self.records.fact(identity.tenant_id, wanted, sees=call.may_change, ceiling=identity.ceiling)
        if fact is not None:
            return fact
        reads = (self.records.episode, self.records.procedure_by_id, self.records.task)
        for read in reads:
            found = await read(identity.tenant_id, wanted, sees=call.may_change, ceiling=identity.ceiling)
            if found is not None:
                return found
        return None

    async def _fact(self, given: str, call: Call) -> Fact:
        found = await self._found(given, call)
        if not isinstance(found, Fact):
            raise ToolError(f"there is no fact {given[:80]!r} of this user: fact_search finds ids")
        return found


def _procedure(content: str, trust: Trust) -> procedures.ProcedureDefine:
    """Parse a procedure from a text. The first line is its name and says when it applies; the other lines are the
    steps."""
    first, *rest = [line.strip(" -*\t") for line in content.splitlines() if line.strip(" -*\t")] or [""]
    steps: list[ProcedureText] = [line[:500] for line in rest] or [first[:500]]
    return procedures.ProcedureDefine(
        name=first[:PROCEDURE_NAME_MAX].strip(), trigger=first[:500], steps=tuple(steps), trust=trust
    )
