"""Hygiene step: a visit of the janitor, or a maintenance run for `{"run": "reflect"}`.

The module also schedules the visits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ....memory.policies import HygienePolicy
from ..rows import FollowUp, PartName, ProgressRow
from ..step import RunRequest, StepResult
from .janitor import JanitorStep
from .maintenance import MaintenanceStep

REFLECT = "reflect"


@dataclass(frozen=True, slots=True)
class HygieneStep:
    """A step that executes the janitor or the maintenance run, depending on the command."""

    janitor: JanitorStep
    maintenance: MaintenanceStep
    part: PartName = "hygiene"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        name = request.args.get("run")
        if name == REFLECT:
            return await self.maintenance.run(request, row)
        if name is not None:
            return StepResult("nothing", row, why=f"there is no run {str(name)[:50]!r}; known: {REFLECT}")
        return await self.janitor.run(request, row)


def with_visits(policy: HygienePolicy, *, consolidates: bool) -> HygienePolicy:
    """Return the policy with scheduled visits when the janitor would otherwise wait for a run that never completes."""
    if consolidates or policy.janitor != "consolidation" or not policy.cull_unconsolidated:
        return policy
    return replace(policy, janitor="schedule")


def after_turn(
    row: ProgressRow, *, at: int, run_id: Callable[[], str], policy: HygienePolicy, now: datetime
) -> ProgressRow:
    """Count a turn on the owner's clock, and schedule the janitor's next visit if it depends on turns or hours.

    `at`: timestamp of the turn's record. `run_id()` returns the id of the visit.
    """
    if not policy.enabled:
        return row
    clock = row.upkeep.clock.ticked(at, span=policy.episode_turns)
    row = row.model_copy(update={"upkeep": row.upkeep.model_copy(update={"clock": clock})})
    if policy.janitor not in ("capture", "schedule") or any(each.kind == "hygiene" for each in row.errands):
        return row
    not_before = now
    if policy.janitor == "schedule":
        not_before = max(now, (row.upkeep.visited_at or now) + timedelta(hours=policy.every_hours))
    visit = FollowUp(kind="hygiene", run_id=run_id(), not_before=not_before)
    return row.model_copy(update={"errands": (*row.errands, visit)})
