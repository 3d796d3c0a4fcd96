"""Maintenance run (`memory_reflect`): six steps in one run, for one owner.

    prune       deletes episodes with almost no strength left                by strength
    merge       merges equivalent facts of one subject                       proposals; merge.py
    strengthen  counts the links that have grown since the last run          recall_counts.py
    derive      finds insights in clusters of episodes                       by the model, when the tier allows it
    compact     turns old, often recalled episodes into facts                proposals; promote.py
    re-index    always 0: both engines optimise automatically

The owner's lane executes one run at a time. A command that was issued before the last run ended starts no run; its
result has zeros.
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
from ..step import RunRequest, Step, StepResult
from .janitor import delete_episodes, may_delete

COUNTS: Final = ("pruned", "merged", "strengthened", "derived", "compacted", "reindexed", "duration_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceStep:
    """The maintenance run. `proposing`: the steps that propose fact changes, by the name of their count."""

    reader: OwnerReader
    policy: HygienePolicy
    proposing: Mapping[str, Step]
    consolidates: bool = True
    """False when no run will ever read the unconsolidated episodes."""
    monotonic: Callable[[], float] = time.monotonic
    part: PartName = "hygiene"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        none = dict.fromkeys(COUNTS, 0)
        if not self.policy.enabled:
            return StepResult("nothing", row, none, why="hygiene is off")
        last = row.upkeep.reflected_at
        if last is not None and request.issued_at is not None and request.issued_at < last:
            return StepResult("nothing", row, none, why="another run was active when the command was issued")
        began = self.monotonic()
        pruned, writes = await self._prune(request, row)
        counts = none | {"pruned": pruned, "strengthened": request.links.grown_since(last)}
        also: list[StepResult] = []
        for name, step in self.proposing.items():
            result = await step.run(request, row)
            if result.status in ("done", "nothing"):  # a step that got no answer changes nothing
                row = result.row
            if result.status == "done":
                also.append(replace(result, counts={}))
                counts[name] = len(result.changes)
        worked = any(counts.values())
        seconds = self.monotonic() - began
        upkeep = row.upkeep.model_copy(update={"reflected_at": request.now + timedelta(seconds=seconds)})
        return StepResult(
            "done" if worked else "nothing",
            row.model_copy(update={"upkeep": upkeep}),
            counts | {"duration_ms": round(seconds * 1_000)},
            writes=writes,
            also=tuple(also),
        )

    async def _prune(self, request: RunRequest, row: ProgressRow) -> tuple[int, tuple[Write, ...]]:
        """Return the number of deleted episodes, and the writes that delete them."""
        episodes = (as_episode(each) for each in await self.reader.episodes(request))
        forgotten = [
            each
            for each in episodes
            if is_forgotten(each, now=request.now, policy=self.policy) and may_delete(each, row, self.consolidates)
        ]
        return len(forgotten), delete_episodes(forgotten, request)
