"""Facts of one subject that say the same become one: the step merge of a maintenance run. No model is asked.

A near vector is not enough: "likes tea" and "no longer likes tea" are near in every embedding. So the conflict pipeline
decides what it would make of the younger fact if it were said now, beside the older one. The facts are merged when the
younger one is a duplicate of the older one, or adds detail to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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
from ....memory.policies import ConflictPolicy, HygienePolicy
from ....schemas.collections import FACTS
from ....schemas.commands import Change
from ....schemas.facts import StoredFact
from ..owner_reads import OwnerReader, of_owner
from ..rows import PartName, ProgressRow
from .base import RunRequest, StepResult

LOOKED_AT: Final = 200
"""Facts whose neighbours one run looks at: the youngest. Earlier runs have looked at the older ones."""
NEIGHBOURS: Final = 4


@dataclass(frozen=True, slots=True)
class MergeStep:
    """Proposes merges, at most `policy.at_once` in a run."""

    reader: OwnerReader
    policy: HygienePolicy
    conflict: ConflictPolicy
    part: PartName = "hygiene"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        """Propose merges. A fact is merged once in a run, so a chain of three facts takes two runs."""
        facts = await self.reader.facts(request)
        single = {subject for subject, n in Counter(fact.subject for fact in facts).items() if n == 1}
        known = {fact.fact_id: fact for fact in facts}
        young = [fact for fact in reversed(facts) if fact.subject not in single][:LOOKED_AT]
        vectors = await self._vectors(request, [fact.fact_id for fact in young])
        merged: set[str] = set()
        changes: list[Change] = []
        for fact in young:
            found = vectors.get(fact.fact_id)
            if fact.fact_id in merged or found is None or found.dense is None or len(changes) == self.policy.at_once:
                continue
            near = await self._near(request, fact, found.dense)
            free = [each for each in near if each.id not in merged]
            change = merge_change(fact, free, known, self.policy, self.conflict, now=request.now)
            if change is not None:
                merged.update(change.source_fact_ids)
                changes.append(change)
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
    known: Mapping[str, StoredFact],
    policy: HygienePolicy,
    conflict: ConflictPolicy,
    *,
    now: datetime,
) -> Change | None:
    """Propose to merge the fact with the nearest older one that says the same, or adds to it; None: there is none."""
    for each in near:
        older = known.get(each.id)
        if older is None or each.score is None or each.score < policy.merge_similarity:
            continue
        if older.fact_id == younger.fact_id or _age(older) >= _age(younger):
            continue
        neighbours = Neighbours(near=(NearFact(older, each.score),))
        kind = resolve(statement_from_fact(younger), neighbours, conflict, now=now).kind
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
