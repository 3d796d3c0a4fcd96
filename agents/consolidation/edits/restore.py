"""Restore of an owner's exported archive, digest and procedures (docs/design/import.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....memory.secrets.secret_filter import at_least
from ....memory.trust.rendered_text import UnsafeText, find_unsafe_text
from ....schemas import ids
from ....schemas.archive import ArchivedText
from ....schemas.base import Contract
from ....schemas.collections import ARCHIVE, DIGESTS, PROCEDURES
from ....schemas.digests import Digest, StoredDigest
from ....schemas.export import ExportedLinks, ExportRecord
from ....schemas.outcomes import InsertPoints, OutPoint
from ....schemas.procedures import Procedure, StoredProcedure
from ....schemas.restore import RecordsRestore
from ...common.restored import RestoreCount, decoded_records, is_of_owner
from .scope import UpkeepEditResult, UpkeepEditScope


async def restore(args: RecordsRestore, scope: UpkeepEditScope) -> UpkeepEditResult:
    """Restore archived texts, the digest and procedures. A record that the store has is skipped."""
    count = RestoreCount()
    tenant_id, owner = scope.command.tenant_id, scope.owner
    points: dict[str, list[OutPoint]] = {ARCHIVE: [], DIGESTS: [], PROCEDURES: []}
    records = []
    for line, record in decoded_records(args, "consolidation", lambda each: is_of_owner(each, tenant_id, owner), count):
        if isinstance(record, ExportedLinks):
            count.refuse(line, "links: restore.upkeep takes no links: send them with restore.links")
        else:
            records.append((line, record))
    known = {name: await _known(name, _ids(name, records), scope) for name in points}
    for line, record in records:
        name, record_id, derived = _place(record, scope.owner_key)
        unsafe = _unsafe(record)
        if record_id != derived:
            count.refuse(line, f"{name}: its id is not derived from its owner: restore the line as the export has it")
        elif record_id in known[name] or any(each.id == record_id for each in points[name]):
            count.skipped += 1
        elif unsafe is not None:
            count.refuse(line, f"{name}: {unsafe.message}")
        else:
            count.imported += 1
            points[name].append(OutPoint(id=record_id, payload=_stored(record, scope).to_payload()))
    writes = tuple(InsertPoints(collection=name, points=tuple(new)) for name, new in points.items() if new)
    return UpkeepEditResult(result=count.result(), writes=writes)


def _place(record: ExportRecord, owner_key: str) -> tuple[str, str, str]:
    """Return the record's collection, its id, and the id that follows from its owner."""
    match record:
        case ArchivedText():
            return ARCHIVE, record.archive_id, ids.archive_id(record.episode_id)
        case Digest():
            return DIGESTS, record.digest_id, ids.digest_id(owner_key)
        case Procedure():
            return PROCEDURES, record.procedure_id, ids.procedure_id(owner_key, record.name)
        case _:
            raise AssertionError("links are restored by restore.links")


def _unsafe(record: ExportRecord) -> UnsafeText | None:
    if isinstance(record, Procedure):
        return find_unsafe_text(Procedure, record.to_payload(), by_person=record.trust == "user")
    return find_unsafe_text(Digest, record.to_payload()) if isinstance(record, Digest) else None


def _stored(record: ExportRecord, scope: UpkeepEditScope) -> Contract:
    match record:
        case Digest():
            label = scope.secrets.label(record.text)
            changed = record.model_copy(update={"sensitivity": at_least(record.sensitivity, label)})
            return StoredDigest(**changed.model_dump(), owner_key=scope.owner_key)
        case Procedure():
            label = scope.secrets.label(record.name, record.trigger, *record.steps)
            named = record.model_copy(update={"sensitivity": at_least(record.sensitivity, label)})
            return StoredProcedure(**named.model_dump(), owner_key=scope.owner_key)
        case ArchivedText():
            label = scope.secrets.label(record.content)
            return record.model_copy(update={"sensitivity": at_least(record.sensitivity, label)})
        case _:
            raise AssertionError("links are restored by restore.links")


def _ids(name: str, records: Sequence[tuple[int, ExportRecord]]) -> list[str]:
    return [place[1] for place in (_place(record, "") for _, record in records) if place[0] == name]


async def _known(name: str, named: Sequence[str], scope: UpkeepEditScope) -> Mapping[str, object]:
    store, tenant_id = scope.reader.store, scope.command.tenant_id
    wanted = [each for each in named if ids.is_derived(each)]
    if not wanted or not await scope.reader.calls.call("store", lambda: store.exists(name)):
        return {}
    return await scope.reader.calls.call("store", lambda: store.get(name, tenant_id=tenant_id, ids=wanted))
