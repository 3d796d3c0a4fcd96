"""Commands of the kind `hygiene`: a visit of the janitor, or with `{"run": "reflect"}` the maintenance run; and when a
visit comes by itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from ....memory.policies import HygienePolicy
from ..rows import FollowUp, PartName, ProgressRow
from .base import RunRequest, StepResult
from .janitor import JanitorStep
from .maintenance import MaintenanceStep

REFLECT = "reflect"


@dataclass(frozen=True, slots=True)
class HygieneStep:
    janitor: JanitorStep
    maintenance: MaintenanceStep
    part: PartName = "hygiene"

    async def run(self, asked: RunRequest, row: ProgressRow) -> StepResult:
        wanted = asked.args.get("run")
        if wanted == REFLECT:
            return await self.maintenance.run(asked, row)
        if wanted is not None:
            return StepResult("nothing", row, why=f"there is no run {str(wanted)[:50]!r}; known: {REFLECT}")
        return await self.janitor.run(asked, row)


def after_turn(row: ProgressRow, *, at: int, run_id: str, policy: HygienePolicy, now: datetime) -> ProgressRow:
    """One more turn on the owner's clock (`at`: its record's timestamp), and the janitor's next visit where it comes
    after captured turns or by the hour. `run_id` names the visit."""
    if not policy.enabled:
        return row
    clock = row.upkeep.clock.ticked(at, span=policy.episode_turns)
    row = row.model_copy(update={"upkeep": row.upkeep.model_copy(update={"clock": clock})})
    if policy.janitor not in ("capture", "schedule") or any(errand.kind == "hygiene" for errand in row.errands):
        return row
    due = now
    if policy.janitor == "schedule":
        due = max(now, (row.upkeep.visited_at or now) + timedelta(hours=policy.every_hours))
    return row.model_copy(update={"errands": (*row.errands, FollowUp(kind="hygiene", run_id=run_id, not_before=due))})
