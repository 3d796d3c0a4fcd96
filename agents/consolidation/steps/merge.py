"""Facts of one subject that say the same become one (maintenance, step 2). No model.

Near in meaning alone is not the same: "likes tea" and "no longer likes tea" are near in every embedding. So the
conflict pipeline is asked what it would make of the younger fact if it were said now, beside the older one: what it
would take as a duplicate, or as more detail, is merged.
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
from ....memory.policies import ConflictPolicy, HygienePolicy
from ....schemas.collections import FACTS
from ....schemas.commands import Change
from ....schemas.facts import StoredFact
from ..owner_reads import OwnerReader, of_owner
from ..rows import PartName, ProgressRow
from .base import RunRequest, StepResult

LOOKED_AT: Final = 200
"""Facts whose neighbours one run looks at, the youngest: older ones were looked at by the runs before."""
NEIGHBOURS: Final = 4


@dataclass(frozen=True, slots=True)
class MergeStep:
    lookup: OwnerReader
    policy: HygienePolicy
    conflict: ConflictPolicy
    part: PartName = "hygiene"

    async def run(self, asked: RunRequest, row: ProgressRow) -> StepResult:
        """A fact is merged once in a run: a chain of three takes two runs."""
        facts = await self.lookup.facts(asked)
        alone = {subject for subject, n in Counter(fact.subject for fact in facts).items() if n == 1}
        known = {fact.fact_id: fact for fact in facts}
        young = [fact for fact in reversed(facts) if fact.subject not in alone][:LOOKED_AT]
        vectors = await self._vectors(asked, [fact.fact_id for fact in young])
        taken: set[str] = set()
        changes: list[Change] = []
        for fact in young:
            found = vectors.get(fact.fact_id)
            if fact.fact_id in taken or found is None or found.dense is None or len(changes) == self.policy.at_once:
                continue
            near = await self._near(asked, fact, found.dense)
            free = [each for each in near if each.id not in taken]
            change = merger(fact, free, known, self.policy, self.conflict, now=asked.now)
            if change is not None:
                taken.update(change.source_fact_ids)
                changes.append(change)
        return StepResult("done" if changes else "nothing", row, {"merged": len(changes)}, changes=tuple(changes))

    async def _vectors(self, asked: RunRequest, wanted: Sequence[str]) -> dict[str, StoredPoint]:
        if not wanted:
            return {}
        store = self.lookup.store
        return await self.lookup.calls.call(
            "store", lambda: store.get(FACTS, tenant_id=asked.tenant_id, ids=wanted, with_dense=True)
        )

    async def _near(self, asked: RunRequest, fact: StoredFact, dense: Sequence[float]) -> list[StoredPoint]:
        store = self.lookup.store
        where = models.Filter(must=[of_owner(asked), equals("state", "active"), equals("subject", fact.subject)])
        return await self.lookup.calls.call(
            "store",
            lambda: store.nearest(FACTS, tenant_id=asked.tenant_id, dense=dense, where=where, limit=NEIGHBOURS + 1),
        )


def merger(
    younger: StoredFact,
    near: Sequence[StoredPoint],
    known: Mapping[str, StoredFact],
    policy: HygienePolicy,
    conflict: ConflictPolicy,
    *,
    now: datetime,
) -> Change | None:
    """The change that makes the fact one with the nearest older one that says the same, or more, or less."""
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
                content=older.content if kind == "dedup" else younger.content,
                reason=f"hygiene: both say the same (similarity {each.score:.3f})",
            )
    return None


def _age(fact: StoredFact) -> tuple[object, ...]:
    return (fact.recorded_at, fact.fact_id)
