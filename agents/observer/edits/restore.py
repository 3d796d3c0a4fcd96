"""Restore of a session's exported working entries and holdings (docs/design/import.md).

The records keep their times. A session that has observed turns here keeps its own state: its records are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ....memory.secrets.secret_filter import at_least
from ....memory.trust.rendered_text import find_unsafe_text
from ....schemas import ids
from ....schemas.blocks import MemoryBlock, SessionHoldings, StoredHoldings
from ....schemas.collections import HOLDINGS, WORKING
from ....schemas.outcomes import InsertPoints, OutPoint, Write
from ....schemas.restore import RecordsRestore
from ....schemas.turns import Owner
from ....schemas.working_set import ENTRIES_MAX, StoredWorkingEntry, WorkingEntry, WorkingSet
from ...common.restored import RestoreCount, decoded_records, is_of_session
from ..rows import SessionRow
from .scope import SessionEditResult, SessionEditScope


def restore(args: RecordsRestore, scope: SessionEditScope) -> SessionEditResult:
    """Restore working entries, blocks, attached blocks and active procedures of one session."""
    count = RestoreCount()
    tenant_id, user_id, session_id = ids.split(scope.command.key)
    restored = _RestoredSession(scope, count, scope.session)
    for line, record in decoded_records(
        args, "observer", lambda each: is_of_session(each, tenant_id, user_id, session_id), count
    ):
        if scope.session.turns:
            count.skipped += 1
        elif isinstance(record, StoredWorkingEntry):
            restored.add_entry(line, record)
        elif isinstance(record, SessionHoldings):
            restored.hold(line, record)
    return SessionEditResult(count.result(), restored.session, tuple(restored.writes))


@dataclass(slots=True)
class _RestoredSession:
    """The session after the records so far."""

    scope: SessionEditScope
    count: RestoreCount
    session: SessionRow
    writes: list[Write] = field(default_factory=list)

    def add_entry(self, line: int, stored: StoredWorkingEntry) -> None:
        working = self.session.working
        if any(each.entry_id == stored.entry_id for each in working.entries):
            self.count.skipped += 1
            return
        unsafe = find_unsafe_text(WorkingEntry, stored.to_payload())
        if unsafe is not None:
            self.count.refuse(line, f"working: {unsafe.message}")
            return
        if len(working.entries) >= ENTRIES_MAX:
            self.count.refuse(line, f"working: a session has at most {ENTRIES_MAX} entries")
            return
        if not ids.is_derived(stored.entry_id):
            self.count.refuse(line, "working: entry_id is not a UUID: restore the line as the export has it")
            return
        owner = Owner.of_key(stored.owner_key)
        label = self.scope.secrets.label(stored.content, stored.subject)
        stored = stored.model_copy(update={"sensitivity": at_least(stored.sensitivity, label)})
        entries = sorted((*working.entries, stored.public()), key=lambda each: -each.salience)
        self.session = self.session.model_copy(
            update={
                "working": WorkingSet(turn=max(working.turn, stored.turn_number), entries=tuple(entries)),
                "owner": None if owner == Owner(scope="user", id=stored.user_id) else owner,
            }
        )
        self.count.imported += 1
        point = OutPoint(id=stored.entry_id, payload=stored.to_payload())
        self.writes.append(InsertPoints(collection=WORKING, points=(point,)))

    def hold(self, line: int, held: SessionHoldings) -> None:
        if self.session.blocks or self.session.attached or self.session.procedures:
            self.count.skipped += 1
            return
        for block in held.blocks:
            unsafe = find_unsafe_text(MemoryBlock, block.to_payload(), by_person=block.trust == "user")
            if unsafe is not None:
                self.count.refuse(line, f"holdings: block {block.name}: {unsafe.message}")
                return
        if not all(self.scope.may_hold(each.owner) for each in held.attached):
            self.count.refuse(line, "holdings: a session holds no block of another user")
            return
        blocks = tuple(self._labelled(each) for each in held.blocks)
        self.session = self.session.model_copy(
            update={"blocks": blocks, "attached": held.attached, "procedures": held.procedures}
        )
        self.count.imported += 1
        key = self.scope.command.key
        stored = StoredHoldings(**held.model_dump() | {"blocks": blocks}, holdings_id=ids.holdings_id(key))
        point = OutPoint(id=stored.holdings_id, payload=stored.to_payload())
        self.writes.append(InsertPoints(collection=HOLDINGS, points=(point,)))

    def _labelled(self, block: MemoryBlock) -> MemoryBlock:
        label = self.scope.secrets.label(block.name, block.value, block.description)
        return block.model_copy(update={"sensitivity": at_least(block.sensitivity, label)})
