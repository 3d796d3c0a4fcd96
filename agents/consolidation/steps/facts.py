"""Standard phase: what episodes say together becomes proposals of facts (memory-model §7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from qdrant_client import models

from ....adapters.ports import DenseRanking
from ....adapters.vectors.conditions import equals, is_empty
from ....memory.policies import ConsolidationPolicy
from ....memory.upkeep.consolidation import Counters, propose
from ....schemas.cloudevents import rfc3339
from ....schemas.collections import EPISODES, FACTS
from ....schemas.episodes import StoredEpisode
from ....schemas.facts import StoredFact
from ....schemas.outcomes import SetFields
from ...common.model_call import CallStopped, ModelCaller, ModelQuestion, token_usage
from ..owner_reads import OwnerReader, as_episode, of_owner, oldest_first
from ..prompts.facts import SCHEMA, TASK, ConsolidatePrompt, parse
from ..rows import PartName, ProgressRow
from .base import RunRequest, StepResult


@dataclass(frozen=True, slots=True)
class FactsStep:
    """The oldest episodes that no run has looked at, beside the facts nearest to them."""

    lookup: OwnerReader
    asking: ModelCaller
    policy: ConsolidationPolicy
    part: PartName = "standard"

    async def run(self, asked: RunRequest, row: ProgressRow) -> StepResult:
        """Counters begin anew, with the episodes that are left, unless no model answered: then they stand."""
        episodes, waiting = await self._episodes(asked)
        if not episodes:
            return StepResult("nothing", row.model_copy(update={"counters": Counters()}))
        prompt = ConsolidatePrompt(episodes, await self._facts_near(asked, episodes))
        counts = {"episodes": len(episodes), "facts_shown": len(prompt.facts)}
        question = ModelQuestion(TASK, prompt.name, prompt.messages(), SCHEMA, parse)
        answer = await self.asking.ask(asked.tenant_id, question)
        if isinstance(answer, CallStopped):
            if answer.status == "failed":  # so that the next try sees more than this one
                row = row.model_copy(update={"counters": Counters()})
            return StepResult.stopped(answer, row, **counts)
        proposals = propose(
            [item.proposed() for _, item in answer.value.items], episodes=prompt.episodes, facts=prompt.facts
        )
        dropped = dict(proposals.dropped)
        if answer.value.dropped:
            dropped["invalid"] = dropped.get("invalid", 0) + answer.value.dropped
        looked_at = SetFields(
            collection=EPISODES,
            tenant_id=asked.tenant_id,
            ids=tuple(each.episode_id for each in episodes),
            fields={"consolidated_at": rfc3339(asked.now)},
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

    async def _episodes(self, asked: RunRequest) -> tuple[tuple[StoredEpisode, ...], int]:
        """The oldest open ones, and how many are open together."""
        where = models.Filter(must=[of_owner(asked), is_empty("consolidated_at"), is_empty("deleted_at")])
        store, calls, tenant_id = self.lookup.store, self.lookup.calls, asked.tenant_id
        found = await calls.call(
            "store",
            lambda: store.select(
                EPISODES, tenant_id=tenant_id, where=where, order_by="occurred_at", limit=self.policy.max_episodes
            ),
        )
        if not found:
            return (), 0
        waiting = await calls.call("store", lambda: store.count(EPISODES, tenant_id=tenant_id, where=where))
        return tuple(as_episode(each) for each in found), waiting

    async def _facts_near(self, asked: RunRequest, episodes: Sequence[StoredEpisode]) -> tuple[StoredFact, ...]:
        """All active facts while they fit into the prompt, else the nearest to any of the episodes; oldest first."""
        limit = self.policy.max_facts
        if not limit:
            return ()
        some = await self.lookup.facts(asked, limit=limit + 1)
        if len(some) <= limit:
            return some
        store, calls, tenant_id = self.lookup.store, self.lookup.calls, asked.tenant_id
        active = models.Filter(must=[of_owner(asked), equals("state", "active")])
        wanted = [each.episode_id for each in episodes]
        vectors = await calls.call(
            "store", lambda: store.get(EPISODES, tenant_id=tenant_id, ids=wanted, with_dense=True)
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
