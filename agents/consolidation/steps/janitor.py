"""The janitor: culls what is over and flags what is old, by the rules of memory/upkeep/hygiene.py, without a model;
what is old, long and faded it has compressed (gists.py).

Facts go through the reflector, as proposals to prune; episodes are marked as deleted, so that no read finds them. What
a run that waits has still to look at is kept: paused work is never dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from qdrant_client import models

from ....adapters.vectors.conditions import equals, is_empty, until
from ....memory.policies import HygienePolicy
from ....memory.upkeep.hygiene import STALE, is_doubtful, is_over_age, is_stale
from ....schemas.base import TAGS_MAX
from ....schemas.cloudevents import rfc3339
from ....schemas.collections import EPISODES, FACTS
from ....schemas.commands import Change
from ....schemas.episodes import StoredEpisode
from ....schemas.facts import StoredFact
from ....schemas.outcomes import SetFields, Write
from ..owner_reads import READ_MAX, OwnerReader, as_episode, of_owner
from ..rows import PartName, ProgressRow
from .base import RunRequest, StepResult
from .gists import GistsStep


@dataclass(frozen=True, slots=True)
class JanitorStep:
    """`half_life_days`: of effective confidence, as recall reckons it."""

    lookup: OwnerReader
    policy: HygienePolicy
    half_life_days: float
    gists: GistsStep
    part: PartName = "hygiene"

    async def run(self, asked: RunRequest, row: ProgressRow) -> StepResult:
        if not self.policy.enabled:
            return StepResult("nothing", row, why="hygiene is off")
        doubtful, row = await self._doubtful(asked, row)
        old = row.upkeep.clock.before(span=self.policy.episode_turns)
        aged = await self._aged(asked, old)
        culled = [
            each for each in aged if is_over_age(each, now=asked.now, old=old, policy=self.policy) and may_go(each, row)
        ]
        stale = [each for each in aged if STALE not in each.tags and is_stale(each, now=asked.now, policy=self.policy)]
        gists = await self.gists.run(asked, row, leaving={each.episode_id for each in culled})
        counts = {"culled_facts": len(doubtful), "culled_episodes": len(culled), "stale": len(stale)}
        return StepResult(
            "done" if any(counts.values()) else "nothing",
            row,
            counts,
            changes=tuple(doubtful),
            writes=(*deleted(culled, asked), *_flagged(stale, asked)),
            also=(gists,),
        )

    async def _doubtful(self, asked: RunRequest, row: ProgressRow) -> tuple[list[Change], ProgressRow]:
        """Proposals to prune, of the next page of facts, and where the visit after this one begins."""
        policy, store = self.policy, self.lookup.store
        where = models.Filter(must=[of_owner(asked), equals("state", "active")])
        found = await self.lookup.calls.call(
            "store",
            lambda: store.select(
                FACTS,
                tenant_id=asked.tenant_id,
                where=where,
                limit=policy.looked_at,
                from_id=row.upkeep.facts_from or None,
            ),
        )
        changes: list[Change] = []
        goes_on = found[-1].id if len(found) == policy.looked_at else ""
        for each in found:
            fact = StoredFact.from_payload(each.payload)
            sure = is_doubtful(fact, now=asked.now, half_life_days=self.half_life_days, policy=policy)
            if sure is None:
                continue
            if len(changes) == policy.at_once:
                goes_on = each.id
                break
            changes.append(_prune(fact, sure, policy))
        kept = row.upkeep.model_copy(update={"facts_from": goes_on, "visited_at": asked.now})
        return changes, row.model_copy(update={"upkeep": kept})

    async def _aged(self, asked: RunRequest, old: datetime | None) -> Sequence[StoredEpisode]:
        """Episodes that a bound may have been reached for, the oldest first."""
        days = [each for each in (self.policy.episode_days, self.policy.stale_days) if each]
        bounds: list[models.Condition] = []
        if days:
            bounds.append(until("occurred_at", asked.now - timedelta(days=min(days))))
        if old is not None:
            bounds.append(until("recorded_at", old))
        if not bounds:
            return ()
        store = self.lookup.store
        where = models.Filter(must=[of_owner(asked), is_empty("deleted_at"), models.Filter(should=bounds)])
        found = await self.lookup.calls.call(
            "store",
            lambda: store.select(
                EPISODES, tenant_id=asked.tenant_id, where=where, order_by="occurred_at", limit=READ_MAX
            ),
        )
        return [as_episode(each) for each in found]


def may_go(episode: StoredEpisode, row: ProgressRow) -> bool:
    """While a run waits for its model or its tier, what it has not looked at stays."""
    return row.waiting is None or episode.consolidated_at is not None


def deleted(episodes: Sequence[StoredEpisode], asked: RunRequest) -> tuple[Write, ...]:
    """Out of every read; the rows stay until the owner's share of episodes is full."""
    if not episodes:
        return ()
    ids = tuple(each.episode_id for each in episodes)
    fields: Mapping[str, str] = {"deleted_at": rfc3339(asked.now)}
    return (SetFields(collection=EPISODES, tenant_id=asked.tenant_id, ids=ids, fields=dict(fields)),)


def _flagged(episodes: Sequence[StoredEpisode], asked: RunRequest) -> tuple[Write, ...]:
    """One write for all that have the same tags; who has no room for a tag more is left as it is."""
    together: dict[tuple[str, ...], list[str]] = {}
    for each in episodes:
        if len(each.tags) < TAGS_MAX:
            together.setdefault(each.tags, []).append(each.episode_id)
    return tuple(
        SetFields(collection=EPISODES, tenant_id=asked.tenant_id, ids=tuple(ids), fields={"tags": [*tags, STALE]})
        for tags, ids in together.items()
    )


def _prune(fact: StoredFact, sure: float, policy: HygienePolicy) -> Change:
    return Change(
        action="prune",
        target_fact_id=fact.fact_id,
        expected_version=fact.version,
        reason=f"hygiene: its effective confidence {sure:.3f} is below {policy.confidence_floor:g}",
    )
