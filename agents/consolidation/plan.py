"""Which steps each kind of run has, in their order. A run asks a model at most `CALLS_MAX` times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...memory.language.locales import locale
from ...memory.policies import MemoryPolicy
from ...memory.policies.budget import Phase
from ..common.model_call import ModelCaller
from .owner_reads import OwnerReader
from .rows import Kind
from .steps.base import Step
from .steps.compact import CompactStep
from .steps.digest import DigestStep
from .steps.facts import FactsStep
from .steps.gists import GistsStep
from .steps.hygiene import HygieneStep
from .steps.insights import InsightsStep
from .steps.janitor import JanitorStep
from .steps.maintenance import MaintenanceStep
from .steps.merge import MergeStep
from .steps.pending import JudgeStep, SettleStep
from .steps.procedures import ProceduresStep
from .steps.promote import PromoteStep
from .steps.prune import PruneStep
from .steps.share import ShareStep
from .steps.summaries import SummaryEpisodesStep, SummaryStep

CALLS_MAX: Final = 5
"""One a step at most: with a minute's patience each, a run ends within minutes, and holds up its owner alone."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The one place that says what a run is made of."""

    lookup: OwnerReader
    asking: ModelCaller
    policy: MemoryPolicy

    @property
    def after_run(self) -> tuple[Kind, ...]:
        """What follows a `consolidate` that did something, in this order (memory-model §8)."""
        wanted: tuple[tuple[Kind, bool], ...] = (
            ("prune", self.policy.prune.facts > 0),
            ("hygiene", self.policy.hygiene.enabled and self.policy.hygiene.janitor == "consolidation"),
            ("digest", self.policy.digest.enabled),
        )
        return tuple(kind for kind, is_wanted in wanted if is_wanted)

    def of(self, kind: Kind, phases: frozenset[Phase]) -> Sequence[Step]:
        match kind:
            case "consolidate":
                return [step for step in self._phases(phases) if step.part in phases]
            case "prune":
                return (PruneStep(self.lookup, self.asking, self.policy.prune),)
            case "hygiene":
                return (self._hygiene(phases),)
            case "digest":
                return (DigestStep(self.lookup, self.asking, self.policy.digest),)
            case "compact":
                policy = self.policy
                return (
                    CompactStep(
                        self.lookup,
                        self.asking,
                        policy.consolidation,
                        policy.session_log,
                        policy.capture,
                        policy.routing.significance,
                    ),
                )

    def _hygiene(self, phases: frozenset[Phase]) -> HygieneStep:
        policy, lookup = self.policy, self.lookup
        return HygieneStep(
            JanitorStep(
                lookup,
                policy.hygiene,
                policy.recall.confidence_half_life_days,
                GistsStep(lookup, self.asking, policy.gist, locale(policy.conflict.locale)),
            ),
            MaintenanceStep(
                lookup=lookup,
                policy=policy.hygiene,
                proposing=self._maintaining_facts(phases) if policy.tiers.semantic else {},
            ),
        )

    def _maintaining_facts(self, phases: frozenset[Phase]) -> Mapping[str, Step]:
        policy, lookup = self.policy, self.lookup
        derive = {"derived": InsightsStep(lookup, self.asking, policy.consolidation)} if "deep" in phases else {}
        return {
            "merged": MergeStep(lookup, policy.hygiene, policy.conflict),
            **derive,
            "compacted": PromoteStep(lookup, policy.consolidation, "hygiene"),
        }

    def _phases(self, phases: frozenset[Phase]) -> tuple[Step, ...]:
        lookup, asking, policy = self.lookup, self.asking, self.policy.consolidation
        return (
            SettleStep(lookup),
            SummaryStep(lookup, asking, policy, self.policy.capture),
            FactsStep(lookup, asking, policy),
            SummaryEpisodesStep(self.policy.routing.significance),
            PromoteStep(lookup, policy),
            # A tier without a deep phase judges all the same: who waits to be judged is not believed meanwhile.
            JudgeStep(lookup, asking, policy, "deep" if "deep" in phases else "standard"),
            InsightsStep(lookup, asking, policy),
            ProceduresStep(lookup, asking, policy),
            ShareStep(lookup, self.policy.sharing),
        )
