"""Facts step of the standard phase: a model reads new episodes and proposes changes of facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from qdrant_client import models

from ....adapters.ports import DenseRanking
from ....adapters.vectors.conditions import equals, is_empty
from ....memory.policies import ConsolidationPolicy
from ....memory.upkeep.consolidation import Counters, propose
from ....memory.upkeep.one_audience import READABLE, of_one_audience
from ....schemas.cloudevents import rfc3339
from ....schemas.collections import EPISODES, FACTS
from ....schemas.episodes import StoredEpisode
from ....schemas.facts import StoredFact
from ....schemas.outcomes import SetFields
from ...common.model_call import CallStopped, ModelCaller, ModelQuestion, token_usage
from ..owner_reads import OwnerReader, as_episode, of_owner, oldest_first
from ..prompts.facts import SCHEMA, TASK, ConsolidatePrompt, parse
from ..rows import PartName, ProgressRow
from ..step import RunRequest, StepResult


@dataclass(frozen=True, slots=True)
class FactsStep:
    """A step with one model call about the oldest unconsolidated episodes and the nearest facts."""

    reader: OwnerReader
    caller: ModelCaller
    policy: ConsolidationPolicy
    part: PartName = "standard"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        """Ask the model for proposals, and set the owner's counters.

        After an answer, only the remaining episodes are counted. An unusable answer clears the counters. When there was
        no answer, the counters do not change.
        """
        episodes, waiting = await self._episodes(request)
        if not episodes:
            return StepResult("nothing", row.model_copy(update={"counters": Counters()}))
        facts = await self._facts_near(request, episodes)
        if episodes[0].sensitivity in READABLE:
            facts = tuple(each for each in facts if each.sensitivity in READABLE)
        prompt = ConsolidatePrompt(episodes, facts)
        counts = {"episodes": len(episodes), "facts_shown": len(prompt.facts)}
        question = ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse)
        answer = await self.caller.ask(request.tenant_id, question)
        if isinstance(answer, CallStopped):
            if answer.status == "failed":  # the next run comes later, with further episodes
                row = row.model_copy(update={"counters": Counters()})
            return StepResult.stopped(answer, row, **counts)
        proposals = propose(
            [item.to_proposal() for _, item in answer.value.items], episodes=prompt.episodes, facts=prompt.facts
        )
        dropped = dict(proposals.dropped)
        if answer.value.dropped:
            dropped["invalid"] = dropped.get("invalid", 0) + answer.value.dropped
        looked_at = SetFields(
            collection=EPISODES,
            tenant_id=request.tenant_id,
            ids=tuple(each.episode_id for each in episodes),
            fields={"consolidated_at": rfc3339(request.now)},
        )
        return StepResult(
            "done",
            row.model_copy(update={"counters": Counters(episodes=max(0, waiting - len(episodes)))}),
            counts,
            dropped,
            changes=proposals.changes,
            writes=(looked_at,),
            model=answer.model,
            prompt=prompt.name,
            usage=token_usage(answer.usage),
        )

    async def _episodes(self, request: RunRequest) -> tuple[tuple[StoredEpisode, ...], int]:
        """Return the oldest unconsolidated episodes, and the number of all unconsolidated episodes.

        The result has only secret episodes or only other episodes.
        """
        where = models.Filter(must=[of_owner(request), is_empty("consolidated_at"), is_empty("deleted_at")])
        store, calls, tenant_id = self.reader.store, self.reader.calls, request.tenant_id
        found = await calls.call(
            "store",
            lambda: store.select(
                EPISODES, tenant_id=tenant_id, where=where, order_by="occurred_at", limit=self.policy.max_episodes
            ),
        )
        if not found:
            return (), 0
        waiting = await calls.call("store", lambda: store.count(EPISODES, tenant_id=tenant_id, where=where))
        return of_one_audience([as_episode(each) for each in found], lambda each: each.sensitivity), waiting

    async def _facts_near(self, request: RunRequest, episodes: Sequence[StoredEpisode]) -> tuple[StoredFact, ...]:
        """Return all active facts when they fit into the prompt, otherwise the facts nearest to any of the episodes.

        The facts are ordered oldest first.
        """
        limit = self.policy.max_facts
        if not limit:
            return ()
        some = await self.reader.facts(request, limit=limit + 1)
        if len(some) <= limit:
            return some
        store, calls, tenant_id = self.reader.store, self.reader.calls, request.tenant_id
        active = models.Filter(must=[of_owner(request), equals("state", "active")])
        episode_ids = [each.episode_id for each in episodes]
        vectors = await calls.call(
            "store", lambda: store.get(EPISODES, tenant_id=tenant_id, ids=episode_ids, with_dense=True)
        )
        rankings = [DenseRanking(each.dense) for each in vectors.values() if each.dense is not None]
        if not rankings:
            return ()
        near = await calls.call(
            "store",
            lambda: store.search(FACTS, tenant_id=tenant_id, rankings=rankings, where=active, limit=limit),
        )
        scores: dict[str, float] = {}
        for each in chain.from_iterable(near):
            scores[each.id] = max(scores.get(each.id, -1.0), each.score)
        nearest = sorted(scores, key=lambda each: -scores[each])[:limit]
        found = await calls.call("store", lambda: store.get(FACTS, tenant_id=tenant_id, ids=nearest))
        return tuple(fact for fact in oldest_first(tuple(found.values())) if fact.state == "active")
