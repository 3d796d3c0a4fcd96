"""Ranking: the score of a memory for a read, with named parts (docs/design/recall.md).

Products are multiplied out, so that every part has its own value: importance x (0.5 + 0.5 x recency) becomes the parts
`significance` and `recency`. The argument `match` says how well the memory matches the cue, 0 to 1; without a cue it
is 0. It comes from `fusion.fuse`, or from the overlap of words when there is no index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from ...schemas.recall import Tier
from ..decay import DAY, effective_confidence, half_life_decay
from ..policies import CompositePolicy, RecallPolicy

UNKNOWN_EMOTION = 0.5
OTHER_TIME: Final = 0.7
"""Share of its score that a record far from the time of the cue loses."""
_SEMANTIC: Final = ("confidence", "reinforcement", "match")
_WORKING: Final = ("salience", "match")
_EPISODIC: Final = ("significance", "recency", "match")
_TURN: Final = ("match", "recency")
_COMPOSITE: Final = ("similarity", "strength", "recency", "emotion", "links", "importance")


# ------------------------------------------------------------------------------------------------ scored records
# A read creates hundreds of these objects. They are named tuples because a frozen dataclass takes three times as long
# to create.
class SemanticTrace(NamedTuple):
    """A fact. `since` is the time of its last reinforcement; without one, the time when it was recorded."""

    confidence: float
    reinforcements: int
    since: datetime


class WorkingTrace(NamedTuple):
    """An entry of the working set, with its salience after the last turn."""

    salience: float


class EpisodicTrace(NamedTuple):
    """An episode."""

    importance: float
    occurred_at: datetime


class TurnTrace(NamedTuple):
    """A verbatim message."""

    occurred_at: datetime


Trace = SemanticTrace | WorkingTrace | EpisodicTrace | TurnTrace


@dataclass(frozen=True, slots=True)
class Impression:
    """The fields of a record that the profile `composite` scores.

    `strength` and `importance` are 0 to 1. `valence` is -1 to 1, or None when it is unknown.
    """

    strength: float
    at: datetime
    importance: float
    valence: float | None = None


class Score(NamedTuple):
    """The parts of a score, their names and their sum.

    Names and values are separate tuples. The property `parts` builds the mapping only when it is read, because a read
    shows the parts of few candidates.
    """

    names: tuple[str, ...]
    terms: tuple[float, ...]
    total: float

    @property
    def parts(self) -> Mapping[str, float]:
        return dict(zip(self.names, self.terms, strict=True))


# ------------------------------------------------------------------------------------------------ profiles
def score_trace(trace: Trace, *, match: float, now: datetime, policy: RecallPolicy) -> Score:
    """Return the score under the profiles `memstream` and `classic`. The caller may then apply `weigh_fit`, or
    `weigh_question` and `weigh_reply`."""
    if isinstance(trace, TurnTrace):
        recency = half_life_decay(trace.occurred_at, now, half_life=policy.recency_half_life_days * DAY)
        return _score(_TURN, (0.7 * match, 0.3 * match * recency))
    if isinstance(trace, SemanticTrace):
        confidence, reinforcements, since = trace
        sure = effective_confidence(confidence, since, now, half_life_days=policy.confidence_half_life_days)
        reinforced = 0.5 * sure * min(1.0, reinforcements / policy.reinforcements)
        return _score(_SEMANTIC, (0.5 * sure, reinforced, policy.semantic_match * match))
    if isinstance(trace, EpisodicTrace):
        importance, occurred_at = trace
        recency = half_life_decay(occurred_at, now, half_life=policy.recency_half_life_days * DAY)
        terms = (0.5 * importance, 0.5 * importance * recency, policy.episodic_match * match)
        return _score(_EPISODIC, terms)
    return _score(_WORKING, (trace.salience, policy.working_match * match))


def score_composite(
    impression: Impression,
    *,
    match: float,
    links: float,
    mood: float | None,
    now: datetime,
    policy: CompositePolicy,
) -> Score:
    """Return the score under the profile `composite`.

    `links` is the activation from other candidates, 0 to 1 (`links.activation`). `mood` is the emotional valence of the
    caller, -1 to 1, or None when it is unknown.
    """
    recency = half_life_decay(impression.at, now, half_life=policy.recency_half_life_hours * 3_600)
    return _score(
        _COMPOSITE,
        (
            policy.similarity * match,
            policy.strength * impression.strength,
            policy.recency * recency,
            policy.emotion * congruence(impression.valence, mood),
            policy.links * links,
            policy.importance * impression.importance,
        ),
    )


def greatest_score(tiers: Iterable[Tier], policy: RecallPolicy, *, cue: bool) -> float:
    """Return the greatest possible sum of parts of a record in a read of these tiers. `cue` is True for a read with a
    cue. A score divided by it is 0 to 1, in the same order."""
    if not cue or policy.profile == "composite":
        return 1.0
    greatest: Mapping[Tier, float] = {
        "semantic": 1.0 + policy.semantic_match + policy.fact_fit,
        "working": 1.0 + policy.working_match + policy.fit,
        "episodic": 1.0 + policy.episodic_match + policy.fit,
        "turns": 1.0,
    }
    return max(greatest[tier] for tier in tiers)


def weigh_fit(score: Score, fit: float, *, weight: float) -> Score:
    """Add the part `fit` to a statement's score. `fit` is the fit to the cue, 0 to 1, compared with the candidates of
    all tiers.

    The part adds `weight` times the fit. It also reduces every part except `match` in proportion to the missing fit. A
    statement that fits best therefore ranks above the messages in which it was said.
    """
    own = score.total - score.terms[score.names.index("match")]
    return _score((*score.names, "fit"), (*score.terms, weight * fit - own * (1.0 - fit)))


def weigh_question(score: Score, policy: RecallPolicy) -> Score:
    """Reduce the score of a message that only asks a question. The part `asks` is negative: the share `policy.asks` of
    the score."""
    return _score((*score.names, "asks"), (*score.terms, -policy.asks * score.total))


def weigh_reply(score: Score, policy: RecallPolicy) -> Score:
    """Reduce the score of a message that an assistant or a tool wrote: it repeats in other words what the user said.

    The part `replies` is negative: the share `policy.replies` of the score."""
    return _score((*score.names, "replies"), (*score.terms, -policy.replies * score.total))


def weigh_time(score: Score, closeness: float) -> Score:
    """Reduce the score of a record outside of the time that the cue names.

    The part `when` is negative: the share `OTHER_TIME` of the score, times the missing closeness. A record of that time
    has closeness 1 and keeps its score."""
    return _score((*score.names, "when"), (*score.terms, -OTHER_TIME * (1.0 - closeness) * max(0.0, score.total)))


def _score(names: tuple[str, ...], terms: tuple[float, ...]) -> Score:
    return Score(names, terms, sum(terms))


# ------------------------------------------------------------------------------------------------ terms
def congruence(valence: float | None, mood: float | None) -> float:
    """Return how well two emotional valences agree: 1 when equal, 0 when opposite, 0.5 when one is unknown."""
    if valence is None or mood is None:
        return UNKNOWN_EMOTION
    return 1.0 - abs(valence - mood) / 2.0
