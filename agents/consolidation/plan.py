"""Plan of a run: the ordered steps of each kind of run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...memory.policies import MemoryPolicy
from ...memory.policies.budget import Phase
from ..common.model_call import ModelCaller
from .owner_reads import OwnerReader
from .rows import Kind, PartName
from .step import Step
from .steps.compact import CompactStep
from .steps.digest import DigestStep
from .steps.facts import FactsStep
from .steps.gists import GistsStep
from .steps.hygiene import HygieneStep
from .steps.insights import InsightsStep
from .steps.janitor import JanitorStep
from .steps.maintenance import MaintenanceStep
from .steps.make_room import MakeRoomStep
from .steps.merge import MergeStep
from .steps.pending import JudgeStep, SettleStep
from .steps.procedures import ProceduresStep
from .steps.promote import PromoteStep
from .steps.prune import PruneStep
from .steps.share import ShareStep
from .steps.summaries import SummaryEpisodesStep, SummaryStep
from .steps.waiting_facts import RejectWaitingStep


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of all kinds of run."""

    reader: OwnerReader
    caller: ModelCaller
    policy: MemoryPolicy
    consolidates: bool = True
    """True when the budget tier lets a run turn episodes into facts (`TierSpending.consolidates`)."""
    judges: bool = True
    """True when a model may judge pending facts (`TierSpending.judges`)."""
    pause: float = 60.0
    """Seconds until an unavailable model is asked again about pending facts."""

    @property
    def after_run(self) -> tuple[Kind, ...]:
        """The kinds of run that follow a completed `consolidate` run, in order."""
        enabled: tuple[tuple[Kind, bool], ...] = (
            ("prune", self.policy.prune.facts > 0),
            ("hygiene", self.policy.hygiene.enabled and self.policy.hygiene.janitor == "consolidation"),
            ("digest", self.policy.digest.enabled),
        )
        return tuple(kind for kind, is_enabled in enabled if is_enabled)

    def of(self, kind: Kind, phases: frozenset[Phase]) -> Sequence[Step]:
        """Return the steps of a kind of run, limited to these phases."""
        match kind:
            case "consolidate":
                return [step for step in self._consolidate(phases) if step.part in phases]
            case "judge":
                return (JudgeStep(self.reader, self.caller, self.policy.consolidation, self.pause),)
            case "prune":
                return (PruneStep(self.reader, self.caller, self.policy.prune),)
            case "hygiene":
                return (self._hygiene(phases),)
            case "digest":
                return (DigestStep(self.reader, self.caller, self.policy.digest),)
            case "compact":
                policy = self.policy
                return (
                    CompactStep(
                        self.reader,
                        self.caller,
                        policy.consolidation,
                        policy.session_log,
                        policy.capture,
                        policy.conflict.locale,
                        policy.routing.significance,
                    ),
                )

    @property
    def _culls_unconsolidated(self) -> bool:
        """True when no run reads the owner's episodes and the policy allows their deletion."""
        hygiene = self.policy.hygiene
        return hygiene.enabled and hygiene.cull_unconsolidated and not self.consolidates

    def _reject_waiting(self, part: PartName) -> RejectWaitingStep | None:
        """Return the step that limits the number of waiting facts, or None when the policy has no limit."""
        step = RejectWaitingStep(self.reader, self.policy.hygiene, part, self.judges)
        return step if self.policy.hygiene.enabled and step.kept else None

    def _consolidate(self, phases: frozenset[Phase]) -> tuple[Step, ...]:
        reader, caller, policy = self.reader, self.caller, self.policy.consolidation
        kept = self.policy.routing.episodes_kept
        reject_waiting = self._reject_waiting("light")
        return (
            *((MakeRoomStep(reader, kept),) if self._culls_unconsolidated else ()),
            SettleStep(reader, self.judges),
            *((reject_waiting,) if reject_waiting else ()),
            SummaryStep(reader, caller, policy, self.policy.capture, self.policy.conflict.locale),
            FactsStep(reader, caller, policy),
            SummaryEpisodesStep(self.policy.routing.significance),
            PromoteStep(reader, policy),
            InsightsStep(reader, caller, policy),
            ProceduresStep(reader, caller, policy, self.policy.conflict.locale),
            ShareStep(reader, self.policy.sharing),
        )

    def _hygiene(self, phases: frozenset[Phase]) -> HygieneStep:
        policy, reader = self.policy, self.reader
        return HygieneStep(
            JanitorStep(
                reader,
                policy.hygiene,
                policy.recall.confidence_half_life_days,
                GistsStep(reader, self.caller, policy.gist, policy.conflict.locale),
                consolidates=not self._culls_unconsolidated,
                waiting=self._reject_waiting("hygiene"),
            ),
            MaintenanceStep(
                reader=reader,
                policy=policy.hygiene,
                proposing=self._maintenance_of_facts(phases) if policy.tiers.semantic else {},
                consolidates=not self._culls_unconsolidated,
            ),
        )

    def _maintenance_of_facts(self, phases: frozenset[Phase]) -> Mapping[str, Step]:
        """Return the steps of a maintenance run that propose fact changes, by the name of their count."""
        policy, reader = self.policy, self.reader
        derive = {"derived": InsightsStep(reader, self.caller, policy.consolidation)} if "deep" in phases else {}
        return {
            "merged": MergeStep(reader, policy.hygiene, policy),
            **derive,
            "compacted": PromoteStep(reader, policy.consolidation, "hygiene"),
        }
