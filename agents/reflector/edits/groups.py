"""Edits of groups (docs/reference/edits.md). They run in the group's lane.

The functions return writes; the caller executes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ....memory.trust.rendered_text import find_unsafe_text
from ....schemas import ids
from ....schemas.collections import FACTS, GROUPS, PROCEDURES
from ....schemas.edits.groups import (
    MEMBERS_MAX,
    SHARED_MAX,
    GroupAttach,
    GroupChanged,
    GroupDefine,
    GroupRemove,
)
from ....schemas.groups import MemoryGroup, StoredGroup
from .scope import OwnerEditResult, OwnerEditScope, refused
from .versioned import read_record, write_record

T = TypeVar("T")


async def define(args: GroupDefine, scope: OwnerEditScope) -> OwnerEditResult:
    """Define a group or change its description."""
    if scope.owner.scope != "group":
        return _no_group(scope)
    unsafe = find_unsafe_text(MemoryGroup, {"group_id": scope.owner.id, "description": args.description})
    if unsafe is not None:
        return refused(unsafe.code, unsafe.message)
    before = await _read(scope)
    after = (before or _new(scope)).model_copy(update={"description": args.description})
    return _changed(before, after, scope)


async def attach(args: GroupAttach, scope: OwnerEditScope) -> OwnerEditResult:
    """Add members and shared records of owners of this tenant. Create the group if it does not exist."""
    if scope.owner.scope != "group":
        return _no_group(scope)
    if (unsafe := find_unsafe_text(MemoryGroup, {"group_id": scope.owner.id})) is not None:
        return refused(unsafe.code, unsafe.message)
    before = await _read(scope)
    group = before or _new(scope)
    for collection, wanted, what in ((FACTS, args.fact_ids, "fact"), (PROCEDURES, args.procedure_ids, "procedure")):
        missing = await _missing(collection, wanted, scope)
        if missing is not None:
            return refused("unknown", f"there is no {what} {missing} in this tenant")
    after = group.model_copy(
        update={
            "members": _united(group.members, args.members),
            "fact_ids": _united(group.fact_ids, args.fact_ids),
            "procedure_ids": _united(group.procedure_ids, args.procedure_ids),
            "reason": args.reason,
        }
    )
    if len(after.members) > MEMBERS_MAX or max(len(after.fact_ids), len(after.procedure_ids)) > SHARED_MAX:
        return refused(
            "too_many", f"a group has at most {MEMBERS_MAX} members and {SHARED_MAX} shared records of a kind"
        )
    return _changed(before, after, scope)


async def detach(args: GroupAttach, scope: OwnerEditScope) -> OwnerEditResult:
    """Remove members and shared records. All reads omit them immediately."""
    before = await _read(scope)
    if before is None:
        return refused("unknown", f"there is no group {scope.owner.id}")
    after = before.model_copy(
        update={
            "members": _without(before.members, args.members),
            "fact_ids": _without(before.fact_ids, args.fact_ids),
            "procedure_ids": _without(before.procedure_ids, args.procedure_ids),
            "reason": args.reason,
        }
    )
    return _changed(before, after, scope)


async def remove(args: GroupRemove, scope: OwnerEditScope) -> OwnerEditResult:
    """Remove all members and shared records. Records owned by the group stay."""
    before = await _read(scope)
    if before is None:
        return refused("unknown", f"there is no group {scope.owner.id}")
    nothing = {"members": (), "fact_ids": (), "procedure_ids": (), "reason": args.reason}
    return _changed(before, before.model_copy(update=nothing), scope)


def _changed(before: StoredGroup | None, after: StoredGroup, scope: OwnerEditScope) -> OwnerEditResult:
    changed = before is None or _compared(before) != _compared(after)
    result = GroupChanged(
        group_id=after.group_id,
        members=len(after.members),
        facts=len(after.fact_ids),
        procedures=len(after.procedure_ids),
        changed=changed,
    )
    if not changed:
        return OwnerEditResult(result=result)
    written = after.model_copy(
        update={
            "version": 1 if before is None else before.version + 1,
            "updated_at": scope.now,
            "member_keys": tuple(member.key(after.tenant_id) for member in after.members),
        }
    )
    write = write_record(GROUPS, written.record_id, written.to_payload(), cause=scope.command.command_id)
    return OwnerEditResult(result=result, writes=(write,))


def _compared(group: StoredGroup) -> tuple[object, ...]:
    return (group.description, group.members, group.fact_ids, group.procedure_ids)


def _new(scope: OwnerEditScope) -> StoredGroup:
    return StoredGroup(
        tenant_id=scope.command.tenant_id,
        group_id=scope.owner.id,
        updated_at=scope.now,
        record_id=ids.group_record_id(scope.owner_key),
        owner_key=scope.owner_key,
    )


async def _read(scope: OwnerEditScope) -> StoredGroup | None:
    return await read_record(GROUPS, ids.group_record_id(scope.owner_key), StoredGroup, scope)


async def _missing(collection: str, wanted: Sequence[str], scope: OwnerEditScope) -> str | None:
    """Return the first of these ids that does not exist in the tenant, or None."""
    tenant_id = scope.command.tenant_id
    if not wanted:
        return None
    if not await scope.calls.call("store", lambda: scope.store.exists(collection)):
        return wanted[0]
    found = await scope.calls.call("store", lambda: scope.store.get(collection, tenant_id=tenant_id, ids=wanted))
    return next((each for each in wanted if each not in found), None)


def _united(known: tuple[T, ...], new: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*known, *new)))


def _without(known: tuple[T, ...], gone: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(each for each in known if each not in gone)


def _no_group(scope: OwnerEditScope) -> OwnerEditResult:
    return refused("owner", f"the owner of the command is a {scope.owner.scope}: name a group")
