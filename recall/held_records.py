"""Records that a context shows without a search: blocks, active procedures, due tasks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..memory.recall.context import ContextItem, WorkingBlock
from ..memory.recall.task_conditions import meets_condition
from ..schemas import ids
from ..schemas.blocks import MemoryBlock, NamedRecord, OwnerBlock
from ..schemas.procedures import Procedure
from ..schemas.turns import Owner, Sensitivity
from .record_filters import RecordSelection
from .record_reader import RecordReader
from .request import ReadSession


async def session_blocks(
    held: RecordReader, tenant_id: str, session: ReadSession, *, ceiling: Sensitivity
) -> tuple[WorkingBlock, ...]:
    """Return a session's own blocks, the owners' blocks that are attached to it, and its active procedures.

    Records of a group, and records of other users shared by a group, are shown only to members of the group.
    """
    holdings = await held.holdings(tenant_id, session.user_id, session.session_id, ceiling=ceiling)
    if holdings is None:
        return ()
    named = (*holdings.attached, *holdings.procedures)
    group_ids = {each.owner.id for each in named if each.owner.scope == "group"}
    member = Owner(scope="user", id=session.user_id)
    left = await held.left_groups(tenant_id, member, group_ids)
    attached = await held.blocks_by_name(tenant_id, _without(holdings.attached, left), ceiling=ceiling)
    procedures = await _shared(held, tenant_id, member, _without(holdings.procedures, left))
    active = await held.procedures_by_name(tenant_id, procedures, ceiling=ceiling)
    own = (_block(each, each.name) for each in holdings.blocks)
    return (*own, *map(_owner_block, attached), *map(_procedure_block, active))


async def owner_blocks(
    held: RecordReader, tenant_id: str, owner: Owner, *, ceiling: Sensitivity
) -> tuple[WorkingBlock, ...]:
    """Return the first page of an owner's blocks."""
    page = await held.blocks(RecordSelection(tenant_id=tenant_id, owner=owner, ceiling=ceiling))
    return tuple(map(_owner_block, page.items))


async def tasks_to_do(
    held: RecordReader, tenant_id: str, owner: Owner, *, cue: str | None, locale: str, ceiling: Sensitivity
) -> tuple[ContextItem, ...]:
    """Return the owner's newest due tasks, and the open tasks whose condition the cue meets."""
    tasks = await held.pending_tasks(tenant_id, owner, ceiling=ceiling)
    return tuple(
        ContextItem(
            each.content,
            subject=each.subject,
            sensitivity=each.sensitivity,
            id=each.task_id,
            day=each.due_at,
            by_person=each.trust == "user",
        )
        for each in tasks
        if each.state == "due"
        or (each.condition is not None and meets_condition(cue or "", each.condition, locale=locale))
    )


def _without(named: Sequence[NamedRecord], groups: Collection[str]) -> Sequence[NamedRecord]:
    """Return the records that do not belong to these groups."""
    return [each for each in named if each.owner.scope != "group" or each.owner.id not in groups]


async def _shared(
    held: RecordReader, tenant_id: str, member: Owner, named: Sequence[NamedRecord]
) -> Sequence[NamedRecord]:
    """Return the procedures, except other users' procedures that no group shares with the member."""
    foreign = [each for each in named if each.owner.scope == "user" and each.owner != member]
    if not foreign:
        return named
    groups = await held.groups_of(tenant_id, member)
    shared = {each for group in groups for each in group.procedure_ids}
    return [
        each
        for each in named
        if each not in foreign or ids.procedure_id(each.owner.key(tenant_id), each.name) in shared
    ]


def _owner_block(block: OwnerBlock) -> WorkingBlock:
    return _block(block, block.block_id)


def _block(block: MemoryBlock, identity: str) -> WorkingBlock:
    by_person = block.trust == "user"
    return WorkingBlock(block.name, block.value, block.sensitivity, identity, by_person=by_person)


def _procedure_block(procedure: Procedure) -> WorkingBlock:
    text = "\n".join((f"Applies – {procedure.trigger}", *procedure.steps))
    by_person = procedure.trust == "user"
    return WorkingBlock(procedure.name, text, procedure.sensitivity, procedure.procedure_id, by_person=by_person)
