"""A digest, the pure part: what it is made of, when it is made anew, how long it may be (memory-model §9)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ...schemas.digests import Basis, Digest
from ...schemas.episodes import StoredEpisode
from ...schemas.facts import StoredFact
from ...schemas.turns import up_to
from ..policies import DigestPolicy
from ..recall.context import tokens

SHOWN: Final = up_to("internal")
"""A digest is shown to whoever may see what is internal: nothing secret goes into it."""
RECENT_SHARE: Final = 5
"""Of the episodes, so many times as many as are shown are recent: the most significant of them are shown."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")


def basis_of(facts: Sequence[StoredFact], episodes: int) -> Basis:
    """What a digest stands on, in numbers: while they stay, so does the digest."""
    return Basis(facts=len(facts), reinforcements=sum(fact.reinforcement_count for fact in facts), episodes=episodes)


def is_due(last: Digest | None, now: Basis, *, forced: bool) -> bool:
    """Never of nothing at all: there is nothing to say."""
    if now.facts == 0 and now.episodes == 0:
        return False
    return forced or last is None or last.basis != now


def choose_facts(facts: Sequence[StoredFact], policy: DigestPolicy) -> tuple[StoredFact, ...]:
    """Those that were said most often, the newer of two alike first."""
    shown = [fact for fact in facts if fact.sensitivity in SHOWN]
    ranked = sorted(shown, key=lambda fact: (fact.reinforcement_count, fact.recorded_at, fact.fact_id), reverse=True)
    return tuple(ranked[: policy.facts])


def choose_episodes(episodes: Sequence[StoredEpisode], policy: DigestPolicy) -> tuple[StoredEpisode, ...]:
    """The most significant of the recent ones, oldest first. `episodes` by time."""
    shown = [episode for episode in episodes if episode.sensitivity in SHOWN]
    recent = shown[-RECENT_SHARE * policy.episodes :] if policy.episodes else []
    ranked = sorted(recent, key=lambda episode: (episode.importance, episode.occurred_at), reverse=True)
    return tuple(sorted(ranked[: policy.episodes], key=lambda episode: (episode.occurred_at, episode.episode_id)))


def truncate_to_tokens(text: str, limit: int) -> str:
    """At most `limit` tokens: whole sentences while there is one that fits, else words."""
    text = text.strip()
    for parts, between in ((_SENTENCE_END.split(text), " "), (text.split(), " ")):
        kept = ""
        for part in parts:
            longer = f"{kept}{between}{part}" if kept else part
            if tokens(longer) > limit:
                break
            kept = longer
        if kept:
            return kept
    return ""
