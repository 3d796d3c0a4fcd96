"""The pure part of digests: their content, when a digest is due, and their maximum length."""

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
"""Sensitivities that go into a digest. Everybody who may see `internal` sees the digest."""
RECENT_SHARE: Final = 5
"""Number of recent episodes from which each shown episode is chosen. With `policy.episodes` = 10, the newest 50
episodes count as recent, and the 10 most significant of them are shown."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_ENDED: Final = re.compile(r"[.!?。！？][\"'”’)\]]*$")
_CONTINUED: Final = re.compile(r"[…,;:)\]]|\.\.\.")
"""The beginning of a text that continues a sentence."""


def basis_of(facts: Sequence[StoredFact], episodes: int) -> Basis:
    """Return the numbers that a digest depends on, and the time of its newest fact. While these stay the same, no new
    digest is made."""
    return Basis(
        facts=len(facts),
        reinforcements=sum(fact.reinforcement_count for fact in facts),
        episodes=episodes,
        newest=max((fact.recorded_at for fact in facts), default=None),
    )


def is_due(last: Digest | None, now: Basis, *, forced: bool) -> bool:
    """Return whether a digest is due. Return False for an owner without facts and episodes."""
    if now.facts == 0 and now.episodes == 0:
        return False
    if forced or last is None:
        return True
    if last.basis.newest is None:
        now = now.model_copy(update={"newest": None})
    return last.basis != now


def choose_facts(facts: Sequence[StoredFact], policy: DigestPolicy) -> tuple[StoredFact, ...]:
    """Return the facts that were stated most often. Of facts that were stated equally often, the newest come first."""
    shown = [fact for fact in facts if fact.sensitivity in SHOWN]
    ranked = sorted(shown, key=lambda fact: (fact.reinforcement_count, fact.recorded_at, fact.fact_id), reverse=True)
    return tuple(ranked[: policy.facts])


def choose_episodes(episodes: Sequence[StoredEpisode], policy: DigestPolicy) -> tuple[StoredEpisode, ...]:
    """Return the most significant of the recent episodes, oldest first. `episodes` are ordered by time."""
    shown = [episode for episode in episodes if episode.sensitivity in SHOWN]
    recent = shown[-RECENT_SHARE * policy.episodes :] if policy.episodes else []
    ranked = sorted(recent, key=lambda episode: (episode.importance, episode.occurred_at), reverse=True)
    return tuple(sorted(ranked[: policy.episodes], key=lambda episode: (episode.occurred_at, episode.episode_id)))


def whole_sentences(text: str, limit: int) -> str:
    """Return the first whole sentences of a text, at most `limit` tokens.

    A last sentence without its end is left out, because the model's answer may have been cut; a text without any end of
    a sentence is one sentence. The rest of a sentence at the beginning, after "…" or a comma, is left out, too.
    """
    sentences = _SENTENCE_END.split(text.strip())
    if len(sentences) > 1 and _ENDED.search(sentences[-1]) is None:
        sentences = sentences[:-1]
    if len(sentences) > 1 and _CONTINUED.match(sentences[0]):
        sentences = sentences[1:]
    kept = ""
    for each in sentences:
        longer = f"{kept} {each}" if kept else each
        if tokens(longer) > limit:
            break
        kept = longer
    return kept


def truncate_to_tokens(text: str, limit: int) -> str:
    """Cut a text to at most `limit` tokens: after a whole sentence if one fits, else after a word."""
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
