"""Janitor step: deletes expired records and flags stale episodes, by the rules of memory/upkeep/hygiene.py.

The janitor's own rules call no model. The visit also runs the gist step (gists.py), which may call a model.

Expired facts are sent to the reflector as prune proposals. Episodes are marked as deleted, so that no read returns
them. An episode that a waiting run still has to read is not deleted, unless the budget tier allows no such run.
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
from ..owner_reads import OwnerReader, as_episode, of_owner
from ..rows import PartName, ProgressRow
from ..step import RunRequest, StepResult
from .gists import GistsStep
from .waiting_facts import RejectWaitingStep


@dataclass(frozen=True, slots=True)
class JanitorStep:
    """The janitor. `half_life_days`: half-life of a fact's effective confidence. Recall uses the same value."""

    reader: OwnerReader
    policy: HygienePolicy
    half_life_days: float
    gists: GistsStep
    consolidates: bool = True
    """False when no run will ever read the unconsolidated episodes."""
    waiting: RejectWaitingStep | None = None
    """The step that rejects excess waiting facts, or None when all waiting facts are kept."""
    part: PartName = "hygiene"

    async def run(self, request: RunRequest, row: ProgressRow) -> StepResult:
        if not self.policy.enabled:
            return StepResult("nothing", row, why="hygiene is off")
        doubtful, row = await self._doubtful_facts(request, row)
        old = row.upkeep.clock.before(span=self.policy.episode_turns)
        aged, row = await self._aged_episodes(request, row, old)
        culled = [
            each
            for each in aged
            if is_over_age(each, now=request.now, old=old, policy=self.policy)
            and may_delete(each, row, self.consolidates)
        ]
        stale = [
            each for each in aged if STALE not in each.tags and is_stale(each, now=request.now, policy=self.policy)
        ]
        also = [await self.gists.run(request, row, leaving={each.episode_id for each in culled})]
        if self.waiting is not None:
            also.append(await self.waiting.run(request, row))
        counts = {"culled_facts": len(doubtful), "culled_episodes": len(culled), "stale": len(stale)}
        return StepResult(
            "done" if any(counts.values()) else "nothing",
            row,
            counts,
            changes=tuple(doubtful),
            writes=(*delete_episodes(culled, request), *_flag_stale(stale, request)),
            also=tuple(also),
        )

    async def _doubtful_facts(self, request: RunRequest, row: ProgressRow) -> tuple[list[Change], ProgressRow]:
        """Return prune proposals for the next page of facts, and the row with the start of the following page."""
        policy = self.policy
        where = models.Filter(must=[of_owner(request), equals("state", "active")])
        found, next_from = await self.reader.page(
            request, FACTS, where, after=row.upkeep.facts_from, size=policy.looked_at
        )
        changes: list[Change] = []
        for each in found:
            fact = StoredFact.from_payload(each.payload)
            confidence = is_doubtful(fact, now=request.now, half_life_days=self.half_life_days, policy=policy)
            if confidence is None:
                continue
            if len(changes) == policy.at_once:
                next_from = each.id
                break
            changes.append(_prune_proposal(fact, confidence, policy))
        upkeep = row.upkeep.model_copy(update={"facts_from": next_from, "visited_at": request.now})
        return changes, row.model_copy(update={"upkeep": upkeep})

    async def _aged_episodes(
        self, request: RunRequest, row: ProgressRow, old: datetime | None
    ) -> tuple[Sequence[StoredEpisode], ProgressRow]:
        """Return the next page of episodes that may have reached an age limit, and the row with the start of the
        following page.

        The next page starts after this page, even when this page's episodes are kept. So kept episodes do not block
        other episodes.
        """
        days = [each for each in (self.policy.episode_days, self.policy.stale_days) if each]
        bounds: list[models.Condition] = []
        if days:
            bounds.append(until("occurred_at", request.now - timedelta(days=min(days))))
        if old is not None:
            bounds.append(until("recorded_at", old))
        if not bounds:
            return (), row
        where = models.Filter(must=[of_owner(request), is_empty("deleted_at"), models.Filter(should=bounds)])
        found, next_from = await self.reader.page(
            request, EPISODES, where, after=row.upkeep.episodes_from, size=self.policy.looked_at
        )
        upkeep = row.upkeep.model_copy(update={"episodes_from": next_from})
        return [as_episode(each) for each in found], row.model_copy(update={"upkeep": upkeep})


def may_delete(episode: StoredEpisode, row: ProgressRow, consolidates: bool) -> bool:
    """Return whether an episode may be deleted. False while a waiting run will still read it."""
    return row.waiting is None or episode.consolidated_at is not None or not consolidates


def delete_episodes(episodes: Sequence[StoredEpisode], request: RunRequest) -> tuple[Write, ...]:
    """Mark episodes as deleted. Their rows stay until the owner exceeds the policy's number of episodes."""
    if not episodes:
        return ()
    ids = tuple(each.episode_id for each in episodes)
    fields: Mapping[str, str] = {"deleted_at": rfc3339(request.now)}
    return (SetFields(collection=EPISODES, tenant_id=request.tenant_id, ids=ids, fields=dict(fields)),)


def _flag_stale(episodes: Sequence[StoredEpisode], request: RunRequest) -> tuple[Write, ...]:
    """Flag episodes as stale. Episodes with equal tags share one write.

    An episode that already has the maximum number of tags is skipped.
    """
    by_tags: dict[tuple[str, ...], list[str]] = {}
    for each in episodes:
        if len(each.tags) < TAGS_MAX:
            by_tags.setdefault(each.tags, []).append(each.episode_id)
    return tuple(
        SetFields(collection=EPISODES, tenant_id=request.tenant_id, ids=tuple(ids), fields={"tags": [*tags, STALE]})
        for tags, ids in by_tags.items()
    )


def _prune_proposal(fact: StoredFact, confidence: float, policy: HygienePolicy) -> Change:
    return Change(
        action="prune",
        target_fact_id=fact.fact_id,
        expected_version=fact.version,
        reason=f"hygiene: its effective confidence {confidence:.3f} is below {policy.confidence_floor:g}",
    )
