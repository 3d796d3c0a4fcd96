"""Edits of an owner's blocks (docs/reference/edits.md). The functions return writes; the caller executes them."""

from __future__ import annotations

from qdrant_client import models

from ....adapters.vectors.conditions import equals
from ....memory.blocks import BlockEdit, BlockRefused, edit_block
from ....memory.secrets.secret_filter import at_least
from ....schemas import ids
from ....schemas.blocks import MemoryBlock, StoredBlock
from ....schemas.collections import BLOCKS
from ....schemas.edits.blocks import BLOCKS_MAX, BlockChanged, BlockRemove, BlockRemoved
from ....schemas.outcomes import DeletePoints
from .scope import OwnerEditResult, OwnerEditScope, refused
from .versioned import read_record, write_record


async def edit(args: BlockEdit, scope: OwnerEditScope) -> OwnerEditResult:
    """Define a block of the owner or change its text."""
    block_id = ids.block_id(scope.owner_key, args.name)
    stored = await read_record(BLOCKS, block_id, StoredBlock, scope)
    before = None if stored is None else MemoryBlock.from_payload(stored.to_payload())
    try:
        after = edit_block(before, args, limit=scope.policy.blocks.limit, now=scope.now)
    except BlockRefused as refusal:
        return refused(refusal.code, str(refusal))
    if before is None and await _count(scope) >= BLOCKS_MAX:
        return refused("too_many", f"an owner has at most {BLOCKS_MAX} blocks: remove one")
    result = BlockChanged(name=after.name, value=after.value, characters=len(after.value), limit=after.limit)
    if after == before:
        return OwnerEditResult(result=result)
    label = scope.secrets.label(after.name, after.value, after.description)
    payload = StoredBlock(
        **after.model_copy(update={"sensitivity": at_least(after.sensitivity, label)}).model_dump(),
        block_id=block_id,
        tenant_id=scope.command.tenant_id,
        owner=scope.owner,
        owner_key=scope.owner_key,
        applied=() if stored is None else stored.applied,
    ).to_payload()
    write = write_record(BLOCKS, block_id, payload, cause=scope.command.command_id)
    return OwnerEditResult(result=result, writes=(write,))


async def remove(args: BlockRemove, scope: OwnerEditScope) -> OwnerEditResult:
    block_id = ids.block_id(scope.owner_key, args.name)
    stored = await read_record(BLOCKS, block_id, StoredBlock, scope)
    gone = DeletePoints(collection=BLOCKS, tenant_id=scope.command.tenant_id, ids=(block_id,))
    result = BlockRemoved(name=args.name, removed=stored is not None)
    return OwnerEditResult(result=result, writes=() if stored is None else (gone,))


async def _count(scope: OwnerEditScope) -> int:
    tenant_id = scope.command.tenant_id
    where = models.Filter(must=[equals("owner_key", scope.owner_key)])
    return await scope.calls.call("store", lambda: scope.store.count(BLOCKS, tenant_id=tenant_id, where=where))
