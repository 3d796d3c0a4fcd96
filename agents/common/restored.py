"""Records of an export in a command: decoded, checked against the command's target, and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue, ValidationError

from ...schemas.archive import ArchivedText
from ...schemas.base import COUNTER_MAX, REASON_MAX, RECORD_DEPTH_MAX, explain, why_unstorable
from ...schemas.blocks import OwnerBlock, SessionHoldings
from ...schemas.digests import Digest
from ...schemas.episodes import Episode
from ...schemas.export import RECORD_OF, ExportedLinks, ExportRecord
from ...schemas.facts import Fact, FactUpdated
from ...schemas.groups import MemoryGroup
from ...schemas.procedures import Procedure
from ...schemas.prospective import ProspectiveTask
from ...schemas.restore import RESTORED_BY, RecordsRestore, RecordsRestored, RefusedRecord
from ...schemas.topics import StageName
from ...schemas.turns import Owner
from ...schemas.working_set import StoredWorkingEntry


def restored_cause(source: str) -> str:
    """Return the prefix of the ids of an import's commands. The records of the import have it in `applied`."""
    return f"restore/{source}/"


@dataclass(slots=True)
class RestoreCount:
    """The verdicts on the records of one command."""

    imported: int = 0
    skipped: int = 0
    refused: list[RefusedRecord] = field(default_factory=list)

    def refuse(self, line: int, why: str) -> None:
        self.refused.append(RefusedRecord(line=line, why=why[:REASON_MAX]))

    def result(self) -> RecordsRestored:
        return RecordsRestored(imported=self.imported, skipped=self.skipped, refused=tuple(self.refused))


def decoded_records(
    args: RecordsRestore, stage: StageName, belongs: Callable[[ExportRecord], bool], count: RestoreCount
) -> Iterator[tuple[int, ExportRecord]]:
    """Yield the valid records of this stage with their lines. Count the other records as refused."""
    for each in args.records:
        if RESTORED_BY[each.kind] != stage:
            count.refuse(each.line, f"{each.kind}: this stage does not write records of this kind")
            continue
        if (why := _why_not_stored(each.record)) is not None:
            count.refuse(each.line, f"{each.kind}: the record {why}")
            continue
        try:
            record = RECORD_OF[each.kind].from_payload(each.record)
        except ValidationError as error:
            count.refuse(each.line, f"{each.kind}: {explain(error)}")
            continue
        if belongs(record):
            yield each.line, record
        else:
            count.refuse(each.line, f"{each.kind}: it belongs to another owner or session than the command")


def _why_not_stored(record: Mapping[str, JsonValue]) -> str | None:
    """Return why no engine can store a record, now or after memory has counted on from its numbers; else None."""
    counters = (each for each in record.values() if isinstance(each, int))
    if any(each > COUNTER_MAX for each in counters):
        return f"has a number beyond {COUNTER_MAX}: restore the line as the export has it"
    return why_unstorable({**record}, RECORD_DEPTH_MAX)


def is_of_owner(record: ExportRecord, tenant_id: str, owner: Owner) -> bool:
    """Return whether a record belongs to this owner, and so does every part of it."""
    match record:
        case FactUpdated():
            parts = (record.fact, *((record.before,) if record.before else ()))
            return all((each.tenant_id, each.owner) == (tenant_id, owner) for each in (record, *parts))
        case ArchivedText():
            owned = (record.tenant_id, record.owner) == (tenant_id, owner)
            return owned and record.owner_key == owner.key(tenant_id)
        case Fact() | Episode() | Digest() | Procedure() | OwnerBlock() | ProspectiveTask():
            return (record.tenant_id, record.owner) == (tenant_id, owner)
        case ExportedLinks():
            return (record.tenant_id, record.owner_key) == (tenant_id, owner.key(tenant_id))
        case MemoryGroup():
            return (record.tenant_id, record.group_id, "group") == (tenant_id, owner.id, owner.scope)
        case _:
            return False


def is_of_session(record: ExportRecord, tenant_id: str, user_id: str, session_id: str) -> bool:
    """Return whether a record belongs to this session."""
    match record:
        case StoredWorkingEntry() | SessionHoldings():
            named = (record.tenant_id, record.user_id, record.session_id) == (tenant_id, user_id, session_id)
            return named and (isinstance(record, SessionHoldings) or _is_key_of(record.owner_key, tenant_id))
        case _:
            return False


def _is_key_of(owner_key: str, tenant_id: str) -> bool:
    """Return whether this is the key of an owner of the tenant."""
    try:
        return owner_key == Owner.of_key(owner_key).key(tenant_id)
    except ValueError:
        return False
