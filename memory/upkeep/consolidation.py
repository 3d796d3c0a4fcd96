"""The pure part of consolidation: when a run is due, and the proposals from the answer of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, ValidationError

from ...schemas import ids
from ...schemas.base import Contract
from ...schemas.commands import CHANGES_MAX, Change
from ...schemas.episodes import EpisodesRecorded, StoredEpisode
from ...schemas.facts import StoredFact
from ...schemas.observations import Category
from ..policies import ConsolidationPolicy

Count = Annotated[int, Field(ge=0)]


class Counters(Contract):
    """Counters of one owner since the last run. They are stored in a table row; readers skip fields of a later minor
    version."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    episodes: Count = 0
    turns: Count = 0
    evicted: bool = False
    """True when a persistent or permanent working entry was evicted."""
    notes_tokens: Count = 0
    """Tokens of all observations, including observations without an episode."""


def count_turn(counters: Counters, recorded: EpisodesRecorded) -> Counters:
    """Return the counters after one more reflected turn."""
    return Counters(
        episodes=counters.episodes + len(recorded.episodes),
        turns=counters.turns + 1,
        evicted=counters.evicted or recorded.evicted_persistent > 0,
        notes_tokens=counters.notes_tokens + recorded.notes_tokens,
    )


def is_run_due(counters: Counters, policy: ConsolidationPolicy) -> bool:
    """Return whether a run is due: there are enough new episodes or tokens, and enough turns."""
    if policy.trigger != "capture":
        return False
    happened = counters.episodes >= policy.episodes or (policy.on_eviction and counters.evicted)
    noted = 0 < policy.notes_tokens <= counters.notes_tokens
    return (happened or noted) and counters.turns >= policy.turns


def next_scheduled_run(counters: Counters, last: datetime | None, policy: ConsolidationPolicy) -> datetime | None:
    """Return the time of the next scheduled run; None without a schedule, or without new turns since the last run.

    `last`: the time of the last run, whatever its result; without a run, the time when the first turn was counted.
    """
    if policy.trigger != "schedule" or not counters.turns or last is None:
        return None
    return last + timedelta(seconds=policy.every)


# ------------------------------------------------------------------------------------------- the model's answer
@dataclass(frozen=True, slots=True)
class ProposedFact:
    """One item of the model's answer, still with the short ids of the prompt."""

    action: Literal["new", "reinforce", "update", "invalidate"]
    subject: str
    content: str
    category: Category | None
    confidence: float | None
    target: str | None
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proposals:
    """The usable changes. `dropped`: the number of unusable items of the answer, by reason."""

    changes: tuple[Change, ...]
    dropped: Mapping[str, int]


def propose(
    items: Sequence[ProposedFact], *, episodes: Mapping[str, StoredEpisode], facts: Mapping[str, StoredFact]
) -> Proposals:
    """Replace short ids with records, and drop unusable items.

    Dropped items are counted by reason. An item is dropped when it names an id that the prompt did not show, when it is
    the second change of the same fact in one run, or when it has no source among the shown episodes. A statement
    without a source is invented, and its trust is unknown.
    """
    changes: list[Change] = []
    dropped: dict[str, int] = {}
    touched: set[str] = set()
    proposed: set[tuple[str, str]] = set()

    def drop(reason: str) -> None:
        dropped[reason] = dropped.get(reason, 0) + 1

    for item in items:
        sources = tuple(dict.fromkeys(episodes[each].episode_id for each in item.sources if each in episodes))
        for _ in range(sum(each not in episodes for each in item.sources)):
            drop("unknown_episode")
        if item.action != "reinforce" and not sources:
            drop("no_source")
            continue
        target = facts.get(item.target) if item.target is not None else None
        if item.action != "new" and target is None:
            drop("unknown_fact")
            continue
        statement = (item.subject, ids.content_hash(item.content))
        if (item.action == "new" and statement in proposed) or (target is not None and target.fact_id in touched):
            drop("twice")
            continue
        try:
            changes.append(_change(item, target if item.action != "new" else None, sources))
        except ValidationError:
            drop("invalid")
            continue
        if item.action in ("new", "update"):
            proposed.add(statement)
        if target is not None and item.action != "new":
            touched.add(target.fact_id)
    return Proposals(tuple(changes), dropped)


def split_into_commands(changes: Sequence[Change]) -> list[tuple[Change, ...]]:
    """Split changes into groups of at most 20, the maximum of one command."""
    return [tuple(changes[start : start + CHANGES_MAX]) for start in range(0, len(changes), CHANGES_MAX)]


def _change(item: ProposedFact, target: StoredFact | None, sources: tuple[str, ...]) -> Change:
    worded = item.action in ("new", "update")
    return Change(
        action=item.action,
        target_fact_id=target.fact_id if target else None,
        expected_version=target.version if target else None,
        subject=(target.subject if target else item.subject) if worded else None,
        content=item.content if worded else None,
        category=item.category if worded else None,
        confidence=item.confidence if worded else None,
        reason=f"consolidated from {len(sources)} episode{'' if len(sources) == 1 else 's'}",
        source_episode_ids=sources,
    )
