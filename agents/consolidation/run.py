"""A run: gather what to look at, ask the model, turn its answer into proposals. Nothing is written here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from qdrant_client import models

from ...adapters.ports import Completion, CompletionRequest, Completions, VectorStore
from ...memory.consolidation import propose
from ...memory.policies import ConsolidationPolicy
from ...schemas.collections import EPISODES, FACTS
from ...schemas.commands import Change
from ...schemas.episodes import StoredEpisode
from ...schemas.errors import Poison, Transient
from ...schemas.facts import StoredFact
from ...schemas.observations import TokenUsage
from ...streams.exits import LeaseLost
from ...streams.retry import Calls, Interrupted
from ..answers import Answer
from .prompt import SCHEMA, TASK, ConsolidatePrompt, FactItem, parse


@dataclass(frozen=True, slots=True)
class Gathered:
    """What one run looks at, and how many further episodes wait for the next."""

    prompt: ConsolidatePrompt
    left: int


@dataclass(frozen=True, slots=True)
class Proposing:
    """The model answered."""

    prompt: ConsolidatePrompt
    changes: tuple[Change, ...]
    dropped: dict[str, int]
    model: str
    usage: TokenUsage
    left: int


@dataclass(frozen=True, slots=True)
class NotRun:
    """No proposals, and why."""

    status: Literal["nothing", "paused", "deferred", "failed"]
    message: str
    poison: Poison | None = None
    prompt: ConsolidatePrompt | None = field(default=None)


@dataclass(frozen=True, slots=True)
class Runs:
    """What a run needs of the outside world."""

    store: VectorStore
    completions: Completions
    calls: Calls
    policy: ConsolidationPolicy
    paid_model_allowed: bool
    patience: float
    """Seconds that a run waits for a model that is away before it is deferred."""

    @property
    def paused(self) -> bool:
        return self.completions.costs_money and not self.paid_model_allowed

    async def run(self, tenant_id: str, owner_key: str) -> Proposing | NotRun:
        """Raises Fatal, and Transient where the store is away."""
        if self.paused:
            return NotRun(
                "paused",
                f"tier free spends nothing, and {self.completions.model} costs money: set MEMSTREAM_TIER=standard",
            )
        gathered = await self._gather(tenant_id, owner_key)
        if not gathered.prompt.episodes:
            return NotRun("nothing", "no episode waits to be consolidated")
        try:
            answer = await self._ask(tenant_id, gathered.prompt)
        except Poison as refused:
            return NotRun("failed", str(refused), poison=refused, prompt=gathered.prompt)
        except Transient as away:
            if isinstance(away, LeaseLost | Interrupted):
                raise
            remedy = f" ({away.remedy})" if away.remedy else ""
            return NotRun("deferred", f"the model is away, it is tried again: {away}{remedy}")
        return self._proposing(gathered, answer)

    async def _gather(self, tenant_id: str, owner_key: str) -> Gathered:
        """The oldest episodes that no run has looked at, and the facts nearest to them."""
        open_ones = models.Filter(
            must=[_of_owner(owner_key), _empty("consolidated_at"), _empty("deleted_at"), _empty("archived_at")]
        )
        found = await self.calls.call(
            "store",
            lambda: self.store.select(
                EPISODES,
                tenant_id=tenant_id,
                where=open_ones,
                order_by="occurred_at",
                limit=self.policy.max_episodes,
            ),
        )
        episodes = tuple(StoredEpisode.from_payload(each.payload) for each in found)
        if not episodes:
            return Gathered(ConsolidatePrompt((), ()), 0)
        waiting = await self.calls.call(
            "store", lambda: self.store.count(EPISODES, tenant_id=tenant_id, where=open_ones)
        )
        facts = await self._facts_near(tenant_id, owner_key, episodes)
        return Gathered(ConsolidatePrompt(episodes, facts), max(0, waiting - len(episodes)))

    async def _facts_near(
        self, tenant_id: str, owner_key: str, episodes: Sequence[StoredEpisode]
    ) -> tuple[StoredFact, ...]:
        """All active facts while they fit into the prompt, else the nearest to any of the episodes; oldest first."""
        limit = self.policy.max_facts
        active = models.Filter(must=[_of_owner(owner_key), _is("state", "active")])
        if not limit:
            return ()
        some = await self.calls.call(
            "store", lambda: self.store.select(FACTS, tenant_id=tenant_id, where=active, limit=limit + 1)
        )
        payloads = {each.id: each.payload for each in some}
        if len(some) > limit:
            wanted = [each.episode_id for each in episodes]
            vectors = await self.calls.call(
                "store", lambda: self.store.get(EPISODES, tenant_id=tenant_id, ids=wanted, with_dense=True)
            )
            scores: dict[str, float] = {}
            payloads = {}
            for episode_id in wanted:
                dense = vectors[episode_id].dense if episode_id in vectors else None
                if dense is None:
                    continue
                near = await self.calls.call(
                    "store",
                    lambda dense=dense: self.store.nearest(  # type: ignore[misc]
                        FACTS, tenant_id=tenant_id, dense=dense, where=active, limit=limit
                    ),
                )
                for each in near:
                    payloads[each.id] = each.payload
                    scores[each.id] = max(scores.get(each.id, -1.0), each.score or 0.0)
            nearest = sorted(scores, key=lambda each: -scores[each])[:limit]
            payloads = {each: payloads[each] for each in nearest}
        facts = [StoredFact.from_payload(payload) for payload in payloads.values()]
        return tuple(sorted(facts, key=lambda fact: (fact.recorded_at, fact.fact_id)))

    async def _ask(self, tenant_id: str, prompt: ConsolidatePrompt) -> Completion[Answer[FactItem]]:
        if self.calls.breaker_open(model_breaker(tenant_id)):
            raise Transient("model", "its breaker is open")
        request = CompletionRequest(
            task=TASK, tenant_id=tenant_id, messages=prompt.messages(), json_schema=SCHEMA, parse=parse
        )
        return await self.calls.call(
            model_breaker(tenant_id), lambda: self.completions.complete(request), give_up_after=self.patience
        )

    def _proposing(self, gathered: Gathered, answer: Completion[Answer[FactItem]]) -> Proposing:
        items = [item.proposed() for _, item in answer.value.items]
        prompt = gathered.prompt
        proposals = propose(items, episodes=prompt.episodes, facts=prompt.facts)
        dropped = dict(proposals.dropped)
        if answer.value.dropped:
            dropped["invalid"] = dropped.get("invalid", 0) + answer.value.dropped
        usage = TokenUsage(
            calls=answer.usage.calls,
            input_tokens=answer.usage.input_tokens,
            output_tokens=answer.usage.output_tokens,
        )
        return Proposing(prompt, proposals.changes, dropped, answer.model, usage, gathered.left)


def model_breaker(tenant_id: str) -> str:
    """One breaker a tenant, as in the observer: a tenant whose model is dead holds up nobody else."""
    return f"model:{tenant_id}"


def _of_owner(owner_key: str) -> models.FieldCondition:
    return _is("owner_key", owner_key)


def _is(key: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def _empty(key: str) -> models.IsEmptyCondition:
    return models.IsEmptyCondition(is_empty=models.PayloadField(key=key))
