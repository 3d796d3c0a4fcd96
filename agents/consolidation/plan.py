"""Which steps each kind of run has, in their order. A run asks a model at most `CALLS_MAX` times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...memory.language.locales import locale
from ...memory.policies import MemoryPolicy
from ...memory.policies.budget import Phase
from ..common.model_call import Asking
from .owner_reads import Lookup
from .rows import Kind
from .steps.base import Step
from .steps.compact import Compact
from .steps.digest import WriteDigest
from .steps.facts import FactsFromEpisodes
from .steps.gists import Gists
from .steps.hygiene import Hygiene
from .steps.insights import Insights
from .steps.janitor import Janitor
from .steps.maintenance import Maintenance
from .steps.merge import Merge
from .steps.pending import Judge, Settle
from .steps.procedures import Procedures
from .steps.promote import Promote
from .steps.prune import Prune
from .steps.share import Share
from .steps.summaries import EpisodesFromSummaries, Summarise

CALLS_MAX: Final = 5
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
                return (Prune(self.lookup, self.asking, self.policy.prune),)
            case "hygiene":
                return (self._hygiene(phases),)
            case "digest":
                return (WriteDigest(self.lookup, self.asking, self.policy.digest),)
            case "compact":
                policy = self.policy
                return (
                    Compact(
                        self.lookup,
                        self.asking,
                        policy.consolidation,
                        policy.session_log,
                        policy.capture,
                        policy.routing.significance,
                    ),
                )

    def _hygiene(self, phases: frozenset[Phase]) -> Hygiene:
        policy, lookup = self.policy, self.lookup
        return Hygiene(
            Janitor(
                lookup,
                policy.hygiene,
                policy.recall.confidence_half_life_days,
                Gists(lookup, self.asking, policy.gist, locale(policy.conflict.locale)),
            ),
            Maintenance(
                lookup=lookup,
                policy=policy.hygiene,
                proposing=self._maintaining_facts(phases) if policy.tiers.semantic else {},
            ),
        )

    def _maintaining_facts(self, phases: frozenset[Phase]) -> Mapping[str, Step]:
        policy, lookup = self.policy, self.lookup
        derive = {"derived": Insights(lookup, self.asking, policy.consolidation)} if "deep" in phases else {}
        return {
            "merged": Merge(lookup, policy.hygiene, policy.conflict),
            **derive,
            "compacted": Promote(lookup, policy.consolidation, "hygiene"),
        }

    def _phases(self, phases: frozenset[Phase]) -> tuple[Step, ...]:
        lookup, asking, policy = self.lookup, self.asking, self.policy.consolidation
        return (
            Settle(lookup),
            Summarise(lookup, asking, policy, self.policy.capture),
            FactsFromEpisodes(lookup, asking, policy),
            EpisodesFromSummaries(self.policy.routing.significance),
            Promote(lookup, policy),
            # A tier without a deep phase judges all the same: who waits to be judged is not believed meanwhile.
            Judge(lookup, asking, policy, "deep" if "deep" in phases else "standard"),
            Insights(lookup, asking, policy),
            Procedures(lookup, asking, policy),
            Share(lookup, self.policy.sharing),
        )
