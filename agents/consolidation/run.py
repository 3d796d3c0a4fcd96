"""A run: its steps one after the other, each seeing the row as the one before left it. Nothing is written here.

The first step that may not ask, or whose model is away, ends the run: what was done before it stands, the rest waits.
A step whose answer is of no use is recorded, and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...memory.policies.budget import Phase
from ...schemas.errors import Poison
from ...schemas.observations import TokenUsage
from ...schemas.outcomes import Write
from ..common.tier_spending import TierSpending
from .rows import Kind, Part, PartName, ProgressRow, RunStatus, StepStatus
from .steps.base import RunRequest, Step, StepResult

Plan = Callable[[Kind, frozenset[Phase]], Sequence[Step]]
"""The steps of a kind of run where these phases are allowed."""
WORST_FIRST: Final[tuple[StepStatus, ...]] = ("failed", "deferred", "paused", "done", "nothing")


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run as it stands when its decisions are made; `did` in the order of the steps."""

    kind: Kind
    status: RunStatus
    row: ProgressRow
    did: tuple[tuple[PartName, StepResult], ...] = ()
    why: str = ""

    @property
    def parts(self) -> tuple[Part, ...]:
        """For the run's record: one entry a phase."""
        return tuple(_part(name, [did for part, did in self.did if part == name]) for name in self._names())

    @property
    def counts(self) -> dict[str, int]:
        return _added(did.counts for _, did in self.did)

    @property
    def dropped(self) -> dict[str, int]:
        return _added(did.dropped for _, did in self.did)

    @property
    def writes(self) -> tuple[Write, ...]:
        return tuple(write for _, did in self.did for write in did.writes)

    @property
    def poison(self) -> Poison | None:
        return next((did.poison for _, did in self.did if did.poison is not None), None)

    @property
    def retry_after(self) -> float | None:
        return next((did.retry_after for _, did in self.did if did.retry_after is not None), None)

    @property
    def usage(self) -> TokenUsage:
        return TokenUsage(
            calls=sum(did.usage.calls for _, did in self.did),
            input_tokens=sum(did.usage.input_tokens for _, did in self.did),
            output_tokens=sum(did.usage.output_tokens for _, did in self.did),
        )

    def _names(self) -> tuple[PartName, ...]:
        return tuple(dict.fromkeys(part for part, _ in self.did))


@dataclass(frozen=True, slots=True)
class RunExecutor:
    plan: Plan
    spending: TierSpending

    async def run(self, kind: Kind, asked: RunRequest, row: ProgressRow) -> RunResult:
        """Raises Fatal, and Transient where the store is away."""
        phases = self.spending.phases
        did: list[tuple[PartName, StepResult]] = []
        for step in self.plan(kind, phases):
            one = await step.run(asked, row)
            row = one.row
            did += [(step.part, each) for each in (one, *one.also)]
            if one.status in ("deferred", "paused"):
                return RunResult(kind, one.status, row, tuple(did), one.why)
        if kind == "consolidate" and "standard" not in phases:
            paused = self.spending.paused("consolidation")
            why = str(paused) if paused else "the tier leaves out the phase standard"
            return RunResult(kind, "paused", row, tuple(did), why)
        return RunResult(kind, _status(kind, did), row, tuple(did))


def _status(kind: Kind, did: Sequence[tuple[PartName, StepResult]]) -> RunStatus:
    """Of a run that came to its end: failed where its own task did. What goes with it (light, deep) fails alone."""
    if any(one.status == "failed" for part, one in did if kind != "consolidate" or part == "standard"):
        return "failed"
    return "done" if any(one.status == "done" for _, one in did) else "nothing"


def _part(name: PartName, did: Sequence[StepResult]) -> Part:
    status = min((one.status for one in did), key=WORST_FIRST.index)
    why = next((one.why for one in did if one.status == status and one.why), "")
    return Part(name=name, status=status, counts=_added(one.counts for one in did), why=why[:300])


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in counts:
        for name, n in each.items():
            total[name] = total.get(name, 0) + n
    return total
