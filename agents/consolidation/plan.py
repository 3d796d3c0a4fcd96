"""Which steps each kind of run has, in their order. A run asks a model at most `CALLS_MAX` times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...memory.policies import MemoryPolicy
from ..spending import Phase
from .asking import Asking
from .facts import FactsFromEpisodes
from .looking import Lookup
from .pending import Judge, Settle
from .rows import Kind
from .steps import Step

CALLS_MAX: Final = 4
"""One a step at most: with a minute's patience each, a run ends within minutes, and holds up its owner alone."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The one place that says what a run is made of."""

    lookup: Lookup
    asking: Asking
    policy: MemoryPolicy

    @property
    def after_run(self) -> tuple[Kind, ...]:
        """What follows a `consolidate` that did something, in this order (memory-model §8)."""
        return ()

    def of(self, kind: Kind, phases: frozenset[Phase]) -> Sequence[Step]:
        match kind:
            case "consolidate":
                return [step for step in self._phases(phases) if step.part in phases]
            case _:
                return ()

    def _phases(self, phases: frozenset[Phase]) -> tuple[Step, ...]:
        lookup, asking, policy = self.lookup, self.asking, self.policy.consolidation
        return (
            Settle(lookup),
            FactsFromEpisodes(lookup, asking, policy),
            # A tier without a deep phase judges all the same: who waits to be judged is not believed meanwhile.
            Judge(lookup, asking, policy, "deep" if "deep" in phases else "standard"),
        )
