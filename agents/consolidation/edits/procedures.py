"""Edits of procedures (docs/reference/edits.md). The functions return writes; the caller executes them."""

from __future__ import annotations

from qdrant_client import models

from ....adapters.vectors.conditions import equals, is_empty
from ....memory.secrets.secret_filter import at_least
from ....memory.trust.rendered_text import find_unsafe_text
from ....schemas import ids
from ....schemas.collections import PROCEDURES
from ....schemas.edits.procedures import ProcedureChanged, ProcedureDefine, ProcedureRemove
from ....schemas.outcomes import OutPoint, PutPoints
from ....schemas.procedures import PROCEDURES_MAX, Procedure, StoredProcedure, earlier_versions
from .scope import UpkeepEditResult, UpkeepEditScope, refused


async def define(args: ProcedureDefine, scope: UpkeepEditScope) -> UpkeepEditResult:
    """Create a procedure, or a new version of the procedure with this name. An identical text changes nothing."""
    procedure_id = ids.procedure_id(scope.owner_key, args.name)
    known = await _read(procedure_id, scope)
    stands = known is not None and known.removed_at is None
    texts = args.to_payload() if known is None else {"trigger": args.trigger, "steps": args.steps}
    if (unsafe := find_unsafe_text(Procedure, texts, by_person=args.trust == "user")) is not None:
        return refused(unsafe.code, unsafe.message)
    if not stands and await _count(scope) >= PROCEDURES_MAX:
        return refused("too_many", f"an owner has at most {PROCEDURES_MAX} procedures: remove one")
    if known is not None and stands and (known.trigger, known.steps) == (args.trigger, args.steps):
        return _changed(known, changed=False)
    label = scope.secrets.label(args.name, args.trigger, *args.steps)
    procedure = StoredProcedure(
        procedure_id=procedure_id,
        tenant_id=scope.command.tenant_id,
        owner=scope.owner,
        owner_key=scope.owner_key,
        name=args.name,
        trigger=args.trigger,
        steps=args.steps,
        at=scope.now,
        sensitivity=at_least(args.sensitivity, label),
        version=1 if known is None else known.version + 1,
        command_id=scope.command.command_id,
        reason=args.reason,
        trust="user" if args.trust == "user" else None,
        earlier=() if known is None else earlier_versions(known),
    )
    return _changed(procedure, changed=True, put=procedure)


async def remove(args: ProcedureRemove, scope: UpkeepEditScope) -> UpkeepEditResult:
    """Remove a procedure from all reads. Its versions stay in the store."""
    known = await _read(ids.procedure_id(scope.owner_key, args.name), scope)
    if known is None:
        procedure_id = ids.procedure_id(scope.owner_key, args.name)
        return UpkeepEditResult(
            result=ProcedureChanged(procedure_id=procedure_id, name=args.name, version=0, changed=False)
        )
    if known.removed_at is not None:
        return _changed(known, changed=False)
    gone = known.model_copy(
        update={"removed_at": scope.now, "command_id": scope.command.command_id, "reason": args.reason}
    )
    return _changed(gone, changed=True, put=gone)


def _changed(procedure: StoredProcedure, *, changed: bool, put: StoredProcedure | None = None) -> UpkeepEditResult:
    result = ProcedureChanged(
        procedure_id=procedure.procedure_id, name=procedure.name, version=procedure.version, changed=changed
    )
    points = () if put is None else (OutPoint(id=put.procedure_id, payload=put.to_payload()),)
    return UpkeepEditResult(result=result, writes=(PutPoints(collection=PROCEDURES, points=points),) if points else ())


async def _read(procedure_id: str, scope: UpkeepEditScope) -> StoredProcedure | None:
    store, tenant_id = scope.reader.store, scope.command.tenant_id
    found = await scope.reader.calls.call(
        "store", lambda: store.get(PROCEDURES, tenant_id=tenant_id, ids=[procedure_id])
    )
    return StoredProcedure.from_payload(found[procedure_id].payload) if procedure_id in found else None


async def _count(scope: UpkeepEditScope) -> int:
    store, tenant_id = scope.reader.store, scope.command.tenant_id
    where = models.Filter(must=[equals("owner_key", scope.owner_key), is_empty("removed_at")])
    return await scope.reader.calls.call("store", lambda: store.count(PROCEDURES, tenant_id=tenant_id, where=where))
