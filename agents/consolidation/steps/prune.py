"""Prune: a model looks through an owner's facts for what should go; policy protects what should stay."""

from __future__ import annotations

from dataclasses import dataclass

from ....memory.policies import PrunePolicy
from ....memory.upkeep.pruning import is_prune_due, prune_proposals, select_next_facts
from ...common.model_call import CallStopped, ModelCaller, ModelQuestion, token_usage
from ..owner_reads import OwnerReader
from ..prompts.prune import SCHEMA, TASK, PrunePrompt, parse
from ..rows import PartName, ProgressRow
from .base import RunRequest, StepResult


@dataclass(frozen=True, slots=True)
class PruneStep:
    """One question of at most 100 facts; the next one goes on where it stopped. `force`, from the command, asks
    although little has changed; never of fewer facts than the policy wants, and never where it wants none."""

    lookup: OwnerReader
    asking: ModelCaller
    policy: PrunePolicy
    part: PartName = "prune"

    async def run(self, asked: RunRequest, row: ProgressRow) -> StepResult:
        if not self.policy.facts or (row.changed_facts < self.policy.changed and not asked.forced):
            return StepResult("nothing", row)
        facts = await self.lookup.facts(asked)
        if not is_prune_due(len(facts), self.policy.changed if asked.forced else row.changed_facts, self.policy):
            return StepResult("nothing", row, {"facts": len(facts)})
        shown, stops = select_next_facts(facts, after=row.pruned_to, policy=self.policy)
        prompt = PrunePrompt(shown)
        counts = {"facts": len(facts), "facts_shown": len(shown)}
        question = ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse)
        answer = await self.asking.ask(asked.tenant_id, question)
        if isinstance(answer, CallStopped):
            if answer.status == "failed":  # asked again when as much has changed once more
                row = row.model_copy(update={"changed_facts": 0})
            return StepResult.stopped(answer, row, **counts)
        found = prune_proposals(answer.value.removals, answer.value.merges, facts=prompt.facts, policy=self.policy)
        dropped = dict(found.dropped)
        if answer.value.dropped:
            dropped["invalid"] = dropped.get("invalid", 0) + answer.value.dropped
        return StepResult(
            "done",
            row.model_copy(update={"changed_facts": 0, "pruned_to": stops}),
            counts | {"removals": found.removals, "merges": found.merges},
            dropped,
            changes=found.changes,
            model=answer.model,
            prompt=prompt.name,
            usage=token_usage(answer.usage),
        )
