"""Prune step: a model proposes an owner's facts to remove or merge. The policy protects some facts."""

from __future__ import annotations

from dataclasses import dataclass

from ....memory.policies import PrunePolicy
from ....memory.upkeep.one_audience import READABLE
from ....memory.upkeep.pruning import is_prune_due, prune_proposals, select_next_facts
from ...common.model_call import CallStopped, ModelCaller, ModelQuestion, token_usage
from ..owner_reads import OwnerReader
from ..prompts.prune import SCHEMA, TASK, PrunePrompt, parse
from ..rows import PartName, ProgressRow
from ..step import RunRequest, StepResult


@dataclass(frozen=True, slots=True)
class PruneStep:
    """A step with one model call about at most 100 facts. The next run continues after these facts.

    With the command's `force` the step runs even if few facts have changed. It still needs an enabled policy and the
    policy's minimum number of facts.
    """

    reader: OwnerReader
    caller: ModelCaller
    policy: PrunePolicy
    part: PartName = "prune"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        if not self.policy.facts or (row.changed_facts < self.policy.changed and not request.forced):
            return StepResult("nothing", row)
        facts = [each for each in await self.reader.facts(request) if each.sensitivity in READABLE]
        if not is_prune_due(len(facts), self.policy.changed if request.forced else row.changed_facts, self.policy):
            return StepResult("nothing", row, {"facts": len(facts)})
        shown, pruned_to = select_next_facts(facts, after=row.pruned_to, policy=self.policy)
        prompt = PrunePrompt(shown)
        counts = {"facts": len(facts), "facts_shown": len(shown)}
        question = ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse)
        answer = await self.caller.ask(request.tenant_id, question)
        if isinstance(answer, CallStopped):
            if answer.status == "failed":  # call the model again only after `policy.changed` more changes
                row = row.model_copy(update={"changed_facts": 0})
            return StepResult.stopped(answer, row, **counts)
        found = prune_proposals(answer.value.removals, answer.value.merges, facts=prompt.facts, policy=self.policy)
        dropped = dict(found.dropped)
        if answer.value.dropped:
            dropped["invalid"] = dropped.get("invalid", 0) + answer.value.dropped
        return StepResult(
            "done",
            row.model_copy(update={"changed_facts": 0, "pruned_to": pruned_to}),
            counts | {"removals": found.removals, "merges": found.merges},
            dropped,
            changes=found.changes,
            model=answer.model,
            prompt=prompt.name,
            usage=token_usage(answer.usage),
        )
