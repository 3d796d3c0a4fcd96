"""Insights step of the deep phase: a model reads a cluster of episodes and proposes facts of the category `pattern`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ....memory.policies import ConsolidationPolicy
from ....memory.upkeep.clusters import cluster_name, find_clusters
from ....memory.upkeep.one_audience import READABLE
from ....schemas.commands import Change
from ...common.model_call import CallStopped, ModelCaller, ModelQuestion, token_usage
from ..owner_reads import OwnerReader, as_episode
from ..prompts.insights import SCHEMA, TASK, InsightItem, InsightsPrompt, parse
from ..rows import PartName, ProgressRow
from ..step import RunRequest, StepResult

DERIVED_KEPT: Final = 64
"""Number of cluster names that the owner's row keeps. A name depends on the set of episodes in the cluster. The model
sees a cluster again only after this set changes, or after the name has left the row."""
INSIGHTS_MAX: Final = 3
SOURCES_MIN: Final = 2


@dataclass(frozen=True, slots=True)
class InsightsStep:
    """A step with one model call about the largest cluster that no model has seen."""

    reader: OwnerReader
    caller: ModelCaller
    policy: ConsolidationPolicy
    part: PartName = "deep"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        if not self.policy.cluster:
            return StepResult("nothing", row)
        every = await self.reader.episodes(request, with_dense=True)
        found = [each for each in every if as_episode(each).sensitivity in READABLE]
        if len(found) < self.policy.cluster:
            return StepResult("nothing", row)
        found_clusters = find_clusters(
            [(as_episode(each), each.dense) for each in found if each.dense is not None],
            similarity=self.policy.cluster_similarity,
            at_least=self.policy.cluster,
        )
        cluster = next((each for each in found_clusters if cluster_name(each) not in row.derived), None)
        if cluster is None:
            return StepResult("nothing", row)
        prompt = InsightsPrompt(cluster)
        question = ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse)
        answer = await self.caller.ask(request.tenant_id, question)
        looked_at = row.model_copy(update={"derived": (*row.derived, cluster_name(cluster))[-DERIVED_KEPT:]})
        if isinstance(answer, CallStopped):
            return StepResult.stopped(answer, looked_at if answer.status == "failed" else row)
        changes, dropped = [], {"invalid": answer.value.dropped, "no_source": 0}
        for _, item in answer.value.items[:INSIGHTS_MAX]:
            change = _change(item, prompt)
            if change is None:
                dropped["no_source"] += 1
            else:
                changes.append(change)
        return StepResult(
            "done",
            looked_at,
            {"clustered": len(cluster), "insights": len(changes)},
            {reason: n for reason, n in dropped.items() if n},
            changes=tuple(changes),
            model=answer.model,
            prompt=prompt.name,
            usage=token_usage(answer.usage),
        )


def _change(item: InsightItem, prompt: InsightsPrompt) -> Change | None:
    """Return the proposal, or None when it names fewer than two of the shown episodes."""
    shown = prompt.episodes
    sources = tuple(dict.fromkeys(shown[each].episode_id for each in item.episode_ids if each in shown))
    if len(sources) < SOURCES_MIN:
        return None
    return Change(
        action="new",
        subject=prompt.shown[0].subject,
        content=" ".join(item.content.split()),
        category="pattern",
        confidence=item.confidence,
        reason=f"seen in {len(sources)} episodes",
        source_episode_ids=sources,
    )
