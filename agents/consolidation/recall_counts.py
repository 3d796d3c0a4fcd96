"""Recall counters on the recalled records, and links between records that are recalled together. No model is called.

Each owner has a separate row for recalls, so that a recall does not rewrite the whole owner row. The row is on the
owner's partition and recalls run in the owner's lane, so no run is active at the same time. Record fields are set to
numbers and never incremented, so a repeated write has no further effect. The row keeps the ids of the last recalls, so
each recall counts once. Readers find the links in one point per owner in the collection `links`.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue, ValidationError

from ...adapters.ports import StoredPoint, VectorStore
from ...memory.recall.links import Links, packed_links, strengthen_links
from ...memory.recall.recall_counters import episode_recall_fields, fact_recall_fields
from ...memory.tenant_policies import TenantPolicies
from ...memory.upkeep.gist import access_fields
from ...schemas import ids
from ...schemas.archive import ArchivedText
from ...schemas.base import REASON_MAX, explain
from ...schemas.collections import ARCHIVE, EPISODES, FACTS, LINKS
from ...schemas.command_kinds import RESTORE_LINKS
from ...schemas.commands import CommandResult, ResultError
from ...schemas.episodes import StoredEpisode
from ...schemas.export import ExportedLinks
from ...schemas.facts import StoredFact
from ...schemas.links import StoredLinks
from ...schemas.outcomes import Outcome, OutPoint, PutPoints, SetFields
from ...schemas.recall import RecalledRef, RecallReport, Tier
from ...schemas.restore import RecordsRestore
from ...streams.engine.decision import Rows, StageDecision
from ...streams.engine.handler import source_of
from ...streams.engine.metrics import StageMetrics
from ...streams.engine.retry import Calls
from ...streams.log.port import Record
from ...streams.senders.commands import result_record
from ..common.handled_until import HandledUntil
from ..common.outcomes import OutcomeRow
from ..common.owner_routing import OwnerCommand
from ..common.restored import RestoreCount, decoded_records, is_of_owner
from ..common.seen_ids import SeenIds
from .messages import SOURCE

SEEN = 256
"""Number of recall ids kept per owner. It is larger than the number of unacknowledged recalls, so every redelivered
recall is recognised."""
COUNTED: Mapping[Tier, str] = {"semantic": FACTS, "episodic": EPISODES}
"""Tiers whose records have recall counters. Messages and the working set have none."""


class RecallRow(OutcomeRow):
    """An owner's links and the ids of the last recalls."""

    links: Links = Links()
    seen: SeenIds = SeenIds()
    until: Annotated[HandledUntil, Field(exclude_if=operator.not_)] = HandledUntil()
    """Marks that recognise redelivered recalls after `seen` has dropped their ids."""
    links_changed: bool = False
    """True when the last outcome writes the owner's point of links. The point is built from `links`, because a second
    copy in the outcome would double the size of the row."""

    def effects(self, last: Outcome, owner_key: str) -> Outcome:
        """Return the last outcome with all its writes."""
        if not self.links_changed:
            return last
        stored = StoredLinks(
            links_id=ids.links_id(owner_key),
            tenant_id=ids.split(owner_key)[0],
            owner_key=owner_key,
            packed=self.links.packed,
        )
        put = PutPoints(collection=LINKS, points=(OutPoint(id=stored.links_id, payload=stored.to_payload()),))
        return last.model_copy(update={"writes": (*last.writes, put)})


def recall_row_key(owner_key: str) -> str:
    """Return the row key. It has four parts; an owner key has three and a session row key has six."""
    return f"{owner_key}/recalled"


def recall_row(rows: Rows, owner_key: str) -> RecallRow:
    return RecallRow.load(rows, recall_row_key(owner_key))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallCounters:
    """Counters of recalls. A recall changes the recalled records, the owner's links and the archived texts."""

    store: VectorStore
    calls: Calls
    metrics: StageMetrics
    policies: TenantPolicies

    def last(self, owner_key: str, rows: Rows) -> StageDecision | None:
        key = recall_row_key(owner_key)
        raw = rows.row(key)
        row = RecallRow() if raw is None else RecallRow.read(raw)
        return None if row.last is None else StageDecision(row.effects(row.last, owner_key), key, raw)

    async def decide(
        self, recall: RecallReport, owner_key: str, record: Record, rows: Rows, *, now: datetime
    ) -> StageDecision | None:
        """Count one recall. Return None when it was counted before, or when the policy counts no recalls.

        Raises Transient when the store is unreachable. A recall time later than `now` is replaced by `now`.
        """
        policy = self.policies.of(recall.tenant_id).hygiene
        if not policy.enabled and recall.kind == "recalled":  # rehydrations are counted under every policy
            return None
        row = recall_row(rows, owner_key)
        source = source_of(record, recall.recall_id)
        if row.has_handled(source):
            return None
        if recall.recall_id in row.seen or row.until.has(record):
            self.metrics.counted("duplicate")
            return None
        at = min(recall.at, now)
        found = await self._recalled_records(recall, owner_key)
        outcome = Outcome(
            source=source,
            writes=(
                *self._counter_writes(recall.tenant_id, found, at),
                *await self._archive_writes(recall, owner_key, at),
            ),
            tenant_id=recall.tenant_id,
        )
        links = strengthen_links(
            row.links,
            [item.id for item in _best_first(recall) if item.id in found][: policy.links_together],
            at=at,
            step=policy.link_step,
            keep=policy.links_kept,
        )
        self.metrics.counted("recalled", len(found))
        row = RecallRow(
            links=links,
            seen=row.seen.add(recall.recall_id, kept=SEEN),
            until=row.until.add(record, now=now, ids_kept=SEEN),
            last=outcome,
            links_changed=not links.weighs_as(row.links),
        )
        return StageDecision(row.effects(outcome, owner_key), recall_row_key(owner_key), row.to_bytes())

    def restore(self, work: OwnerCommand, record: Record, rows: Rows, *, now: datetime) -> StageDecision | None:
        """Restore the links of an export, if the owner has no links. Return None when the command was applied before.

        The row of recalls has the outcome, because each recall rewrites this row.
        """
        command, count = work.command, RestoreCount()
        row = recall_row(rows, work.owner_key)
        source = source_of(record, command.command_id)
        if row.has_handled(source):
            return None
        links = row.links
        try:
            links = _restored_links(RecordsRestore.from_payload(command.args), work, links, count)
        except ValidationError as why:
            error = ResultError(code="invalid_args", message=explain(why)[:REASON_MAX])
            result = CommandResult(command_id=command.command_id, status="refused", error=error, at=now)
        else:
            restored = count.result().to_payload()
            result = CommandResult(command_id=command.command_id, status="applied", result=restored, at=now)
        outcome = Outcome(
            source=source,
            records=(result_record(result, of=command, source=SOURCE),),
            tenant_id=command.tenant_id,
        )
        row = row.model_copy(update={"links": links, "last": outcome, "links_changed": count.imported > 0})
        return StageDecision(row.effects(outcome, work.owner_key), recall_row_key(work.owner_key), row.to_bytes())

    async def _recalled_records(self, recall: RecallReport, owner_key: str) -> dict[str, tuple[str, StoredPoint]]:
        """Return the recalled records of this owner by id, with their collections.

        Ids of other owners are ignored, because a producer can name any id.
        """
        found: dict[str, tuple[str, StoredPoint]] = {}
        for tier, collection in COUNTED.items():
            named = [item.id for item in recall.items if item.tier == tier]
            if named:
                rows = await self.calls.call(
                    "store",
                    lambda c=collection, n=named: self.store.get(c, tenant_id=recall.tenant_id, ids=n),  # type: ignore[misc]
                )
                mine = {each: row for each, row in rows.items() if row.payload.get("owner_key") == owner_key}
                found |= {each: (collection, row) for each, row in mine.items()}
        return found

    async def _archive_writes(self, recall: RecallReport, owner_key: str, at: datetime) -> list[SetFields]:
        """Restart the retention period of archived texts that a rehydration has read."""
        if recall.kind != "rehydrated":
            return []
        named = [ids.archive_id(item.id) for item in recall.items if item.tier == "episodic"]
        found = await self.calls.call("store", lambda: self.store.get(ARCHIVE, tenant_id=recall.tenant_id, ids=named))
        rows = [ArchivedText.from_payload(each.payload) for each in found.values()]
        return [
            SetFields(
                collection=ARCHIVE, tenant_id=recall.tenant_id, ids=(row.archive_id,), fields=access_fields(row, at=at)
            )
            for row in rows
            if row.owner_key == owner_key
        ]

    def _counter_writes(
        self, tenant_id: str, found: Mapping[str, tuple[str, StoredPoint]], at: datetime
    ) -> Iterable[SetFields]:
        """Yield the writes of recall fields. Records of a collection that get equal fields share one write."""
        growth = self.policies.of(tenant_id).recall.stability_growth
        together: dict[tuple[str, str], list[str]] = {}
        for identity, (collection, row) in found.items():
            fields = _fields(collection, row, at, growth=growth)
            together.setdefault((collection, json.dumps(fields)), []).append(identity)
        for (collection, fields_json), named in together.items():
            yield SetFields(
                collection=collection, tenant_id=tenant_id, ids=tuple(named), fields=json.loads(fields_json)
            )


def _restored_links(args: RecordsRestore, work: OwnerCommand, known: Links, count: RestoreCount) -> Links:
    tenant_id, owner = work.command.tenant_id, work.command.owner
    assert owner is not None  # route refuses a command without an owner
    links = known
    for line, record in decoded_records(args, "consolidation", lambda each: is_of_owner(each, tenant_id, owner), count):
        if not isinstance(record, ExportedLinks):
            count.refuse(line, f"{RESTORE_LINKS} takes links only")
            continue
        try:
            packed = packed_links((each.one, each.other, each.weight, each.grown_at) for each in record.links)
        except ValueError as error:
            count.refuse(line, f"links: {error}")
            continue
        if links.packed:
            count.skipped += 1
        else:
            links, count.imported = packed, count.imported + 1
    return links


def _fields(collection: str, row: StoredPoint, at: datetime, *, growth: float) -> dict[str, JsonValue]:
    """Return the record's fields after a recall. `growth`: growth factor of an episode's stability."""
    if collection == FACTS:
        return fact_recall_fields(StoredFact.from_payload(row.payload), at=at)
    return episode_recall_fields(StoredEpisode.from_payload(row.payload), at=at, growth=growth)


def _best_first(recall: RecallReport) -> Sequence[RecalledRef]:
    return sorted(recall.items, key=lambda item: item.rank)
