"""Merge step of a maintenance run: merges equivalent facts of one subject, without a model call.

Similar vectors are not sufficient: "likes tea" and "no longer likes tea" are similar in every embedding. So the
conflict pipeline compares the younger fact with the older fact, as if the younger fact were a new statement. The step
merges the two facts when the younger fact is a duplicate of the older fact or adds detail to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from qdrant_client import models

from ....adapters.ports import StoredPoint
from ....adapters.vectors.conditions import equals
from ....memory.facts.conflict import Neighbours, resolve
from ....memory.facts.similarity import NearFact
from ....memory.facts.statements import statement_from_fact
from ....memory.facts.trust_order import outranks
from ....memory.policies import HygienePolicy, MemoryPolicy
from ....schemas.collections import FACTS
from ....schemas.commands import Change
from ....schemas.facts import StoredFact
from ..owner_reads import OwnerReader, of_owner
from ..rows import PartName, ProgressRow
from ..step import RunRequest, StepResult

LOOKED_AT: Final = 200
"""Number of youngest facts, and number of facts on a page, whose neighbours one run searches."""
NEIGHBOURS: Final = 4


@dataclass(frozen=True, slots=True)
class MergeStep:
    """A step that proposes at most `policy.at_once` merges.

    It searches the neighbours of the youngest facts, because new duplicates are among them. It also searches the
    neighbours of one page of facts, in id order. The next run takes the next page, so after some runs every fact was
    compared with the other facts of its subject.
    """

    reader: OwnerReader
    policy: HygienePolicy
    memory: MemoryPolicy
    looked_at: int = LOOKED_AT
    part: PartName = "hygiene"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        """Propose merges. A run merges a fact only once, so three equivalent facts need two runs."""
        where = models.Filter(must=[of_owner(request), equals("state", "active")])
        begun = row.upkeep.merged_from
        page, next_from = await self.reader.page(request, FACTS, where, after=begun, size=self.looked_at)
        is_whole = not begun and not next_from
        young = [] if is_whole else await self.reader.youngest_facts(request, limit=self.looked_at)
        facts = {each.id: StoredFact.from_payload(each.payload) for each in (*page, *young)}
        if is_whole:  # a fact that is alone in its subject has no duplicate
            subjects = Counter(fact.subject for fact in facts.values())
            facts = {fact_id: fact for fact_id, fact in facts.items() if subjects[fact.subject] > 1}
        in_turn = {each.id for each in page}
        vectors = await self._vectors(request, list(facts))
        merged: set[str] = set()
        changes: list[Change] = []
        for fact_id, fact in facts.items():
            if len(changes) == self.policy.at_once:
                if fact_id in in_turn:
                    next_from = fact_id
                break
            found = vectors.get(fact_id)
            if fact.is_pinned or fact_id in merged or found is None or found.dense is None:
                continue
            near = await self._near(request, fact, found.dense)
            free = [each for each in near if each.id not in merged]
            change = merge_change(fact, free, self.policy, self.memory, now=request.now)
            if change is not None:
                merged.update(change.source_fact_ids)
                changes.append(change)
        upkeep = row.upkeep.model_copy(update={"merged_from": next_from})
        row = row.model_copy(update={"upkeep": upkeep})
        return StepResult("done" if changes else "nothing", row, {"merged": len(changes)}, changes=tuple(changes))

    async def _vectors(self, request: RunRequest, fact_ids: Sequence[str]) -> dict[str, StoredPoint]:
        if not fact_ids:
            return {}
        store = self.reader.store
        return await self.reader.calls.call(
            "store", lambda: store.get(FACTS, tenant_id=request.tenant_id, ids=fact_ids, with_dense=True)
        )

    async def _near(self, request: RunRequest, fact: StoredFact, dense: Sequence[float]) -> list[StoredPoint]:
        store = self.reader.store
        where = models.Filter(must=[of_owner(request), equals("state", "active"), equals("subject", fact.subject)])
        return await self.reader.calls.call(
            "store",
            lambda: store.nearest(FACTS, tenant_id=request.tenant_id, dense=dense, where=where, limit=NEIGHBOURS + 1),
        )


def merge_change(
    younger: StoredFact,
    near: Sequence[StoredPoint],
    policy: HygienePolicy,
    memory: MemoryPolicy,
    *,
    now: datetime,
) -> Change | None:
    """Return the merge with the nearest older fact that is equivalent or less detailed, or None when there is none. A
    pinned fact is not merged."""
    for each in near:
        if each.score is None or each.score < policy.merge_similarity:
            continue
        older = StoredFact.from_payload(each.payload)
        if older.is_pinned or older.fact_id == younger.fact_id or _age(older) >= _age(younger):
            continue
        neighbours = Neighbours(near=(NearFact(older, each.score),))
        kind = resolve(statement_from_fact(younger), neighbours, memory, now=now).kind
        if kind in ("dedup", "detail"):
            return Change(
                action="merge",
                source_fact_ids=(older.fact_id, younger.fact_id),
                expected_version=older.version,
                content=older.content if kind == "dedup" and not outranks(younger, older) else younger.content,
                reason=f"hygiene: both say the same (similarity {each.score:.3f})",
            )
    return None


def _age(fact: StoredFact) -> tuple[object, ...]:
    return (fact.recorded_at, fact.fact_id)
