"""Erasure of a user from the memory that the reflector writes (docs/design/erasure.md).

The command `owners.erase` runs in the lane of one owner. If the owner is the erased user, everything of the owner goes.
Otherwise the owner's memory is shared: the user's episodes go, facts lose the user's evidence, and a fact without
other evidence goes. Each batch is an outcome of its own. A repeated command erases the rest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from qdrant_client import models

from ...adapters.ports import StoredPoint
from ...adapters.vectors.conditions import any_of, equals
from ...memory.facts.erasures import ERASED_TEXT, erase_fact, is_erased_form, without_evidence
from ...memory.facts.transitions import Stamp, Transition
from ...schemas import ids
from ...schemas.collections import BLOCKS, EPISODES, FACTS, GROUPS, TASKS
from ...schemas.facts import Evidence, FactCause, StoredFact
from ...schemas.groups import StoredGroup
from ...schemas.outcomes import Outcome, OutPoint, OutRecord, SwapPoint, Write
from ...schemas.row_keys import index_key
from ...schemas.turns import Owner
from ...streams.engine.decision import StageDecision
from ..common.erased_events import rows_of_lane
from ..common.owner_erasure import ErasedOwner
from .edits.versioned import write_record
from .messages import applied_result, erased_state, fact_updated
from .rows import LedgerRow
from .timers import TASKS as TASK_INDEX
from .timers import timers_key

BATCH: Final = 100
"""Facts of one outcome. Each has an event of about a kilobyte, and the outcome must fit into a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerErasure(ErasedOwner):
    """One command `owners.erase`."""

    row: LedgerRow | None
    """The owner's row; None if it has none."""
    stamp: Stamp

    @property
    def _is_of_a_user(self) -> bool:
        return self.command.owner is not None and self.command.owner.scope == "user"

    async def decisions(self) -> AsyncIterator[StageDecision]:
        """Yield the outcomes of the command; the last one has its result."""
        removed = {FACTS: 0, EPISODES: 0, BLOCKS: 0, TASKS: 0, GROUPS: 0}
        episode_ids: frozenset[str] = frozenset()
        for collection in (EPISODES, BLOCKS, TASKS) if self.is_own else (EPISODES,):
            while found := await self.next_ids(collection):
                removed[collection] += len(found)
                episode_ids |= frozenset(found)
                yield self._decision(self.deletion(collection, found))
        async for decision, facts in self._facts(episode_ids):
            removed[FACTS] += facts
            yield decision
        group = await self._group()
        if group is not None:
            removed[GROUPS] = 1
        yield self._last(removed, () if group is None else (group,))

    # ------------------------------------------------------------------------------------------------ facts
    async def _facts(self, episode_ids: frozenset[str]) -> AsyncIterator[tuple[StageDecision, int]]:
        """Yield an outcome, and the number of facts that it deletes or takes evidence from, until the owner has no fact
        with the user's evidence. A fact to erase gets the erased form, and the next outcome deletes it."""
        while found := await self._named_facts():
            facts = [(each, StoredFact.from_payload(each.payload)) for each in found]
            gone = tuple(fact.fact_id for _, fact in facts if is_erased_form(fact))
            writes: list[Write] = [self.deletion(FACTS, gone)] if gone else []
            records = [erased_state(self.command.tenant_id, each) for each in gone]
            changed = []
            for point, fact in facts:
                if is_erased_form(fact):
                    continue
                change = self._change(fact, episode_ids)
                writes.append(self._swap(point, fact, change))
                records.append(self._event(change))
                changed.append(change)
            kept = sum(each.action != "erased" for each in changed)
            ids_of = tuple(each.fact.fact_id for each in changed)
            yield self._decision(*writes, records=tuple(records), state_ids=ids_of), len(gone) + kept

    def _change(self, fact: StoredFact, episode_ids: frozenset[str]) -> Transition:
        kept = None if self.is_own else without_evidence(fact, self._is_erased, episode_ids, self.stamp)
        return kept or erase_fact(fact, self.stamp)

    def _is_erased(self, evidence: Evidence) -> bool:
        """Return whether the user gave this evidence. Evidence of earlier versions names the session only."""
        if evidence.user_id is not None:
            return evidence.user_id == self.args.user_id
        named = evidence.session_id in self.args.session_ids
        return named and evidence.command_id is None and not self._is_of_a_user

    async def _named_facts(self) -> Sequence[StoredPoint]:
        """Return the next facts to erase or to change, at most `BATCH`."""
        if self.is_own:
            return await self.select(FACTS, (), limit=BATCH)
        named: list[models.Condition] = [
            equals("content_hash", ids.content_hash(ERASED_TEXT)),
            equals("evidence[].user_id", self.args.user_id),
        ]
        if self.args.session_ids:
            named.append(any_of("evidence[].session_id", list(self.args.session_ids)))
        found = await self.select(FACTS, [models.Filter(should=named)])
        touched = [each for each in found if self._is_touched(StoredFact.from_payload(each.payload))][:BATCH]
        dense = await self.calls.call(
            "store",
            lambda: self.store.get(
                FACTS, tenant_id=self.command.tenant_id, ids=[each.id for each in touched], with_dense=True
            ),
        )
        return [dense[each.id] for each in touched if each.id in dense]

    def _is_touched(self, fact: StoredFact) -> bool:
        return is_erased_form(fact) or any(map(self._is_erased, fact.evidence))

    def _swap(self, point: StoredPoint, before: StoredFact, change: Transition) -> SwapPoint:
        has_new_text = change.action == "erased"
        made = OutPoint(
            id=before.fact_id,
            payload=change.fact.to_payload(),
            dense=None if has_new_text else point.dense,
            text=change.fact.content,
            reembed=has_new_text,
        )
        return SwapPoint(collection=FACTS, point=made, expected_version=before.version, cause=self.stamp.cause)

    def _event(self, change: Transition) -> OutRecord:
        cause = FactCause(command_id=self.command.command_id, issued_by=self.command.issued_by)
        return fact_updated(change, cause=cause, at=self.stamp.now)

    # ------------------------------------------------------------------------------------------------ other records
    async def _group(self) -> Write | None:
        """Return the write that takes the user and missing records out of the owner's group, or None."""
        record_id, tenant_id = ids.group_record_id(self.owner_key), self.command.tenant_id
        found = await self.record(GROUPS, record_id)
        if found is None:
            return None
        group = StoredGroup.from_payload(found.payload)
        user = Owner(scope="user", id=self.args.user_id)
        facts = await self.calls.call("store", lambda: self.store.get(FACTS, tenant_id=tenant_id, ids=group.fact_ids))
        members = tuple(each for each in group.members if each != user)
        kept = tuple(each for each in group.fact_ids if each in facts)
        if (members, kept) == (group.members, group.fact_ids):
            return None
        after = group.model_copy(
            update={
                "members": members,
                "member_keys": tuple(each.key(tenant_id) for each in members),
                "fact_ids": kept,
                "version": group.version + 1,
                "updated_at": self.stamp.now,
                "reason": "",
            }
        )
        return write_record(GROUPS, record_id, after.to_payload(), cause=self.stamp.cause)

    # ------------------------------------------------------------------------------------------------ outcomes
    def _decision(
        self, *writes: Write, records: tuple[OutRecord, ...] = (), state_ids: tuple[str, ...] = ()
    ) -> StageDecision:
        """Return an outcome in the owner's row. It replaces the row's last outcome, which may have content."""
        outcome = Outcome(
            source=self.source,
            writes=writes,
            records=records,
            tenant_id=self.command.tenant_id,
            state_ids=state_ids,
        )
        return self._row().decision(self.owner_key, outcome)

    def _row(self) -> LedgerRow:
        if self.is_own or self.row is None:
            return LedgerRow()
        requests = tuple(each for each in self.row.requests if each.user_id != self.args.user_id)
        return self.row.model_copy(update={"requests": requests})

    def _last(self, removed: dict[str, int], writes: tuple[Write, ...]) -> StageDecision:
        """Return the outcome that ends the command: rows are deleted after all other effects."""
        rows = rows_of_lane(self.args.row_keys, self.owner_key)
        if self.is_own:
            own = (timers_key(self.owner_key), index_key(TASK_INDEX, self.owner_key), self.owner_key)
            rows = (*(each for each in rows if each not in own), *own)
        else:
            rows = tuple(each for each in rows if each != self.owner_key)
        result = applied_result(self.command, {**removed}, at=self.stamp.now)
        outcome = Outcome(
            source=self.source, writes=writes, records=(result,), cleanup=rows, tenant_id=self.command.tenant_id
        )
        if not self.is_own and self.row is None and not any(removed.values()):
            return StageDecision(outcome)  # an owner that memory does not know gets no row
        return self._row().decision(self.owner_key, outcome)
