"""`memory_reflect`: six steps in one run, for one owner (memory-model §7).

    prune       episodes of which next to nothing is left are culled             by strength
    merge       facts of one subject that say the same become one                proposals; merging.py
    strengthen  links of what was recalled together                              grown since the last run; recalled.py
    derive      insights from clusters of episodes                               by the model, where it may be asked
    compact     old, often recalled episodes become facts                        proposals
    re-index    the engine is asked to optimise                                  0: both engines do it by themselves

One run at a time: the owner's lane sees to that. A call that was issued before the last run's end is answered with
zeros, not run after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from ....memory.policies import HygienePolicy
from ....memory.upkeep.hygiene import is_forgotten
from ....schemas.outcomes import Write
from ..owner_reads import OwnerReader, as_episode
from ..rows import PartName, ProgressRow
from .base import RunRequest, Step, StepResult
from .janitor import deleted, may_go

COUNTS: Final = ("pruned", "merged", "strengthened", "derived", "compacted", "reindexed", "duration_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceStep:
    """`proposing`: the steps that propose changes of facts, by the count that tells how many."""

    lookup: OwnerReader
    policy: HygienePolicy
    proposing: Mapping[str, Step]
    monotonic: Callable[[], float] = time.monotonic
    part: PartName = "hygiene"

    async def run(self, asked: RunRequest, row: ProgressRow) -> StepResult:
        none = dict.fromkeys(COUNTS, 0)
        if not self.policy.enabled:
            return StepResult("nothing", row, none, why="hygiene is off")
        last = row.upkeep.reflected_at
        if last is not None and asked.issued_at is not None and asked.issued_at < last:
            return StepResult("nothing", row, none, why="a run was going on when this one was asked for")
        began = self.monotonic()
        gone, writes = await self._pruned(asked, row)
        counts = none | {"pruned": gone, "strengthened": asked.links.grown_since(last)}
        also: list[StepResult] = []
        for name, step in self.proposing.items():
            did = await step.run(asked, row)
            if did.status == "done":  # one that may not ask, or whose model is away, is left out
                row = did.row
                also.append(replace(did, counts={}))
                counts[name] = len(did.changes)
        worked = any(counts.values())
        seconds = self.monotonic() - began
        kept = row.upkeep.model_copy(update={"reflected_at": asked.now + timedelta(seconds=seconds)})
        return StepResult(
            "done" if worked else "nothing",
            row.model_copy(update={"upkeep": kept}),
            counts | {"duration_ms": round(seconds * 1_000)},
            writes=writes,
            also=tuple(also),
        )

    async def _pruned(self, asked: RunRequest, row: ProgressRow) -> tuple[int, tuple[Write, ...]]:
        standing = (as_episode(each) for each in await self.lookup.episodes(asked))
        gone = [
            each for each in standing if is_forgotten(each, now=asked.now, policy=self.policy) and may_go(each, row)
        ]
        return len(gone), deleted(gone, asked)
