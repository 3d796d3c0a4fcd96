"""Execution of a run: its steps in sequence, each with the row returned by the previous step.

This module writes nothing.

The run ends at the first step that may not call the model or cannot reach it. Earlier results are kept; later steps
wait. A step with an unusable answer is recorded as failed, and the run continues.
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
from .step import RunRequest, Step, StepResult

Plan = Callable[[Kind, frozenset[Phase]], Sequence[Step]]
"""Function that returns the steps of a kind of run, limited to the allowed phases."""
WORST_FIRST: Final[tuple[StepStatus, ...]] = ("failed", "deferred", "paused", "done", "nothing")


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run. `results` has the results of its steps, in order."""

    kind: Kind
    status: RunStatus
    row: ProgressRow
    results: tuple[tuple[PartName, StepResult], ...] = ()
    why: str = ""

    @property
    def steps(self) -> tuple[StepResult, ...]:
        return tuple(result for _, result in self.results)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the run's record."""
        names = dict.fromkeys(name for name, _ in self.results)
        return tuple(_part(name, [result for part, result in self.results if part == name]) for name in names)

    @property
    def counts(self) -> dict[str, int]:
        return _sum(result.counts for result in self.steps)

    @property
    def dropped(self) -> dict[str, int]:
        return _sum(result.dropped for result in self.steps)

    @property
    def writes(self) -> tuple[Write, ...]:
        return tuple(write for result in self.steps for write in result.writes)

    @property
    def poison(self) -> Poison | None:
        return next((result.poison for result in self.steps if result.poison is not None), None)

    @property
    def retry_after(self) -> float | None:
        return next((result.retry_after for result in self.steps if result.retry_after is not None), None)

    @property
    def usage(self) -> TokenUsage:
        return TokenUsage(
            calls=sum(result.usage.calls for result in self.steps),
            input_tokens=sum(result.usage.input_tokens for result in self.steps),
            output_tokens=sum(result.usage.output_tokens for result in self.steps),
        )


@dataclass(frozen=True, slots=True)
class RunExecutor:
    """Executor of the steps of a run."""

    plan: Plan
    spending: TierSpending

    async def run(self, kind: Kind, request: RunRequest, row: ProgressRow) -> RunResult:
        """Run all steps of a kind. Raises Fatal, and Transient when the store is unreachable."""
        phases = self.spending.phases
        results: list[tuple[PartName, StepResult]] = []
        for step in self.plan(kind, phases):
            result = await step.run(request, row)
            row = result.row
            results += [(step.part, each) for each in (result, *result.also)]
            if result.status in ("deferred", "paused"):
                return RunResult(kind, result.status, row, tuple(results), result.why)
        if kind == "consolidate" and "standard" not in phases:
            paused = self.spending.paused("consolidation")
            why = str(paused) if paused else "the tier does not run the standard phase"
            return RunResult(kind, "paused", row, tuple(results), why)
        return RunResult(kind, _status(kind, results), row, tuple(results))


def _status(kind: Kind, results: Sequence[tuple[PartName, StepResult]]) -> RunStatus:
    """Return the status of a run that reached its last step.

    The run failed when a step of its main task failed. For `consolidate` the main task is the standard phase; a failed
    light or deep phase does not count.
    """
    if any(result.status == "failed" for part, result in results if kind != "consolidate" or part == "standard"):
        return "failed"
    return "done" if any(result.status == "done" for _, result in results) else "nothing"


def _part(name: PartName, results: Sequence[StepResult]) -> Part:
    status = min((result.status for result in results), key=WORST_FIRST.index)
    why = next((result.why for result in results if result.status == status and result.why), "")
    return Part(name=name, status=status, counts=_sum(result.counts for result in results), why=why[:300])


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in counts:
        for name, n in each.items():
            total[name] = total.get(name, 0) + n
    return total
