"""What is put before the conflict pipeline: a statement with its evidence, from an observation or from a proposal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ...schemas import ids
from ...schemas.commands import Change
from ...schemas.episodes import StoredEpisode
from ...schemas.facts import EVIDENCE_KEPT, SOURCE_EPISODES_MAX, Evidence, StoredFact, Trust
from ...schemas.observations import Category, Observation, Observed
from ...schemas.turns import SENSITIVITIES, Owner, Sensitivity
from ..language.locales import locale
from ..language.parsing import predicate_of
from ..policies import MemoryPolicy
from .routing import direct_confidence, trust_of

TRUST: tuple[Trust, ...] = ("tool", "assistant", "user")


@dataclass(frozen=True, slots=True)
class Statement:
    """A candidate fact. `fact_id` is the one that it gets if it becomes a row of its own."""

    fact_id: str
    tenant_id: str
    owner: Owner
    subject: str
    content: str
    category: Category
    confidence: float
    occurred_at: datetime
    """Of the turn: by it a statement is late or not; also the default of valid_from."""
    valid_from: datetime | None = None
    """As it was told; None when it was not."""
    valid_to: datetime | None = None
    sensitivity: Sensitivity = "internal"
    trust: Trust = "user"
    is_correction: bool = False
    predicate: str | None = None
    """What it says of its subject, where the locale pack knows it."""
    evidence: tuple[Evidence, ...] = ()
    source_episode_ids: tuple[str, ...] = ()

    @property
    def content_hash(self) -> str:
        return ids.content_hash(self.content)

    @property
    def begins(self) -> datetime:
        return self.valid_from or self.occurred_at


def resolve_subject(subject: str, owner: Owner, user_id: str) -> str:
    """In facts that no user owns, `user` would be anyone: it is written as the user's id."""
    return user_id if subject == "user" and owner.scope != "user" else subject


def statement_from_observation(
    observed: Observed, observation: Observation, policy: MemoryPolicy, *, episode: bool = False
) -> Statement:
    """The fact that an observation would be. `episode`: it became an episode too, which the fact then names."""
    return Statement(
        fact_id=ids.fact_id(observed.owner.key(observed.tenant_id), observation.observation_id),
        tenant_id=observed.tenant_id,
        owner=observed.owner,
        subject=resolve_subject(observation.subject, observed.owner, observed.user_id),
        content=observation.content,
        category=observation.category,
        confidence=direct_confidence(observation, policy.confidence),
        occurred_at=observed.occurred_at,
        valid_from=observation.valid_from,
        valid_to=observation.valid_to,
        sensitivity=observation.sensitivity,
        trust=trust_of(observation.source_role),
        is_correction=observation.is_correction,
        predicate=predicate_of(observation.content, locale(policy.conflict.locale)),
        evidence=(
            Evidence(
                turn_id=observed.turn_id,
                session_id=observed.session_id,
                observation_id=observation.observation_id,
                occurred_at=observed.occurred_at,
                quote=observation.evidence,
            ),
        ),
        source_episode_ids=(ids.episode_id(observation.observation_id),) if episode else (),
    )


def statement_from_fact(fact: StoredFact) -> Statement:
    """A row as a candidate again: a pending one that is judged. It was told when its newest evidence was."""
    return Statement(
        fact_id=fact.fact_id,
        tenant_id=fact.tenant_id,
        owner=fact.owner,
        subject=fact.subject,
        content=fact.content,
        category=fact.category,
        confidence=fact.confidence,
        occurred_at=max((each.occurred_at for each in fact.evidence), default=fact.recorded_at),
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        sensitivity=fact.sensitivity,
        trust=fact.trust,
        predicate=fact.predicate,
        evidence=fact.evidence,
        source_episode_ids=fact.source_episode_ids,
    )


def statement_from_change(
    change: Change,
    *,
    cause: str,
    tenant_id: str,
    owner: Owner,
    issued_at: datetime,
    episodes: Sequence[StoredEpisode],
    target: StoredFact | None,
    policy: MemoryPolicy,
) -> Statement:
    """The fact that a proposal would be; what it leaves open comes from its target, else from its source episodes.

    It is as trustworthy as the least of its sources, as secret as the most secret, and holds from the earliest.
    """
    known = sorted(episodes, key=lambda episode: episode.occurred_at)
    people = {episode.user_id for episode in known}
    subject = change.subject or (target.subject if target else "user")
    content = change.content or (target.content if target else "")
    return Statement(
        fact_id=ids.fact_id(owner.key(tenant_id), cause),
        tenant_id=tenant_id,
        owner=owner,
        subject=resolve_subject(subject, owner, people.pop()) if len(people) == 1 else subject,
        content=content,
        category=change.category or (target.category if target else "knowledge"),
        confidence=_first(change.confidence, target.confidence if target else None, policy.confidence.consolidated),
        occurred_at=known[-1].occurred_at if known else issued_at,
        valid_from=change.valid_from or min((episode.valid_from for episode in known), default=None),
        sensitivity=max((episode.sensitivity for episode in known), key=SENSITIVITIES.index, default="internal"),
        trust=min((episode.trust for episode in known), key=TRUST.index, default="user"),
        predicate=predicate_of(content, locale(policy.conflict.locale)),
        evidence=evidence_from_episodes(known),
        source_episode_ids=tuple(episode.episode_id for episode in known)[:SOURCE_EPISODES_MAX],
    )


def evidence_from_episodes(episodes: Sequence[StoredEpisode]) -> tuple[Evidence, ...]:
    """One entry per turn, oldest first, at most as many as a fact keeps."""
    by_turn: dict[tuple[str, str], Evidence] = {}
    for episode in sorted(episodes, key=lambda each: each.occurred_at):
        by_turn.setdefault(
            (episode.session_id, episode.turn_id),
            Evidence(
                turn_id=episode.turn_id,
                session_id=episode.session_id,
                observation_id=episode.observation_id,
                occurred_at=episode.occurred_at,
                quote=episode.evidence,
            ),
        )
    return tuple(by_turn.values())[: 2 * EVIDENCE_KEPT]


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)
