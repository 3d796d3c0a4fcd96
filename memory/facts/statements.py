"""Statements: candidate facts for the conflict pipeline, made from an observation, a proposal, an edit or a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from ...schemas import ids
from ...schemas.base import METADATA_MAX_BYTES, QUOTE_MAX, json_size, why_unstorable
from ...schemas.commands import Change, Command
from ...schemas.edits.common import EDIT_SESSION
from ...schemas.episodes import SUMMARY, StoredEpisode
from ...schemas.facts import (
    EVIDENCE_KEPT,
    OWN_METADATA,
    SOURCE_EPISODES_MAX,
    Evidence,
    ImportedFrom,
    StoredFact,
    Trust,
)
from ...schemas.imports import FactsImport, FactToImport
from ...schemas.observations import Category, Observation, Observed
from ...schemas.slots import UNTYPED, TypedValue
from ...schemas.turns import SENSITIVITIES, Owner, Sensitivity
from ..language.identification import pack_of
from ..language.parsing import predicate_of
from ..language.text import own_statement
from ..policies import MemoryPolicy
from ..trust.rendered_text import unsafe_text
from .predicate_categories import category_of
from .routing import direct_confidence, needs_own_word, stated_confidence, trust_of
from .slot_predicates import typed_by_words
from .trust_order import TRUST

OWN_ROOM: Final = 256
"""Bytes of a fact's metadata that are kept free for the names that memory itself uses."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A candidate fact. `fact_id` is the id of the row if the candidate becomes a new row."""

    fact_id: str
    tenant_id: str
    owner: Owner
    subject: str
    content: str
    category: Category
    confidence: float
    occurred_at: datetime
    """The time at which the statement was made. It decides whether the statement is late. It is also the start of the
    validity when valid_from is None."""
    valid_from: datetime | None = None
    """The start of the validity; None when no start is known."""
    valid_from_told: bool = True
    """True when the speaker gave valid_from; False when valid_from was copied from a row or from the source
    episodes."""
    valid_to: datetime | None = None
    sensitivity: Sensitivity = "internal"
    trust: Trust = "user"
    is_correction: bool = False
    unconfirmed: bool = False
    """True when it is not certain that the speaker says the statement. It becomes at most a pending row."""
    predicate: str | None = None
    """The predicate of the content; None when the locale pack finds none."""
    typed: TypedValue = UNTYPED
    evidence: tuple[Evidence, ...] = ()
    source_episode_ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    """Metadata for a new row. An existing row keeps its own metadata."""

    @property
    def content_hash(self) -> str:
        return ids.content_hash(self.content)

    @property
    def begins(self) -> datetime:
        return self.valid_from or self.occurred_at

    @property
    def begin_told(self) -> bool:
        """True when the speaker gave the start."""
        return self.valid_from is not None and self.valid_from_told


def resolve_subject(subject: str, owner: Owner, user_id: str) -> str:
    """Return the subject for a fact of this owner.

    The subject `user` means the owner when the owner is a user. For another owner it is replaced by the user's id.
    """
    return user_id if subject == "user" and owner.scope != "user" else subject


def turn_tags(observed: Observed) -> tuple[str, ...]:
    """Return the tags of a turn for a fact or an episode, without tags that have a meaning of their own and tags that
    must not be shown in a prompt."""
    return tuple(each for each in observed.tags if each != SUMMARY and unsafe_text("tag", each) is None)


def turn_metadata(observed: Observed) -> dict[str, JsonValue]:
    """Return the metadata of a turn for a fact or an episode, without the names that memory itself uses. Values that
    leave no room for these names, and deeply nested values, are left out."""
    kept: dict[str, JsonValue] = {}
    for name, value in observed.metadata.items():
        fits = why_unstorable(value) is None and json_size({**kept, name: value}) <= METADATA_MAX_BYTES - OWN_ROOM
        if name not in OWN_METADATA and fits:
            kept[name] = value
    return kept


def statement_from_observation(
    observed: Observed, observation: Observation, policy: MemoryPolicy, *, episode: bool = False
) -> Statement:
    """Return the candidate fact of an observation. With `episode`, the observation also became an episode, and the fact
    names that episode as a source."""
    subject = resolve_subject(observation.subject, observed.owner, observed.user_id)
    return Statement(
        fact_id=ids.fact_id(observed.owner.key(observed.tenant_id), observation.observation_id),
        tenant_id=observed.tenant_id,
        owner=observed.owner,
        subject=subject,
        content=observation.content,
        category=observation.category,
        confidence=direct_confidence(observation, policy.confidence),
        occurred_at=observed.said_at(observation),
        valid_from=observation.valid_from,
        valid_to=observation.valid_to,
        sensitivity=observation.sensitivity,
        trust=trust_of(observation.source_role),
        is_correction=observation.is_correction,
        unconfirmed=observation.unconfirmed,
        predicate=_predicate(observation.content, subject, policy),
        typed=observation.typed,
        evidence=(
            Evidence(
                turn_id=observed.turn_id,
                session_id=observed.session_id,
                observation_id=observation.observation_id,
                occurred_at=observed.said_at(observation),
                quote=observation.evidence,
                trust=trust_of(observation.source_role),
                user_id=_other_user(observed.user_id, observed.owner),
                agent_id=observed.agent_id,
            ),
        ),
        tags=turn_tags(observed),
        metadata=turn_metadata(observed),
        source_episode_ids=(ids.episode_id(observation.observation_id),) if episode else (),
    )


def _predicate(content: str, subject: str, policy: MemoryPolicy) -> str | None:
    said = own_statement(content, subject)
    return predicate_of(said, pack_of(said, policy.conflict.locale))


def _typed(content: str, subject: str, policy: MemoryPolicy) -> TypedValue:
    """Return the slot and value that the locale pack reads with certainty; UNTYPED otherwise."""
    said = own_statement(content, subject)
    return typed_by_words(said, pack_of(said, policy.conflict.locale), policy.slot)


def statement_from_fact(fact: StoredFact) -> Statement:
    """Return a stored row as a candidate, to compare a waiting row with other rows. The time of the candidate is the
    time of the row's newest evidence."""
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
        valid_from_told=fact.valid_from_told,
        valid_to=fact.valid_to,
        sensitivity=fact.sensitivity,
        trust=fact.trust,
        predicate=fact.predicate,
        typed=fact.typed,
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
    """Return the candidate fact of a proposed change. Subject, content and category default to the values of the
    target.

    `episodes` are the sources. The trust is the lowest trust of the sources; without sources it is the target's trust.
    The sensitivity is the highest sensitivity of the sources. Without a given start, the fact is valid from the
    earliest start of the sources.
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
        valid_from_told=change.valid_from is not None,
        sensitivity=max((episode.sensitivity for episode in known), key=SENSITIVITIES.index, default="internal"),
        trust=min((episode.trust for episode in known), key=TRUST.index, default=target.trust if target else "user"),
        predicate=_predicate(content, subject, policy),
        typed=_typed(content, subject, policy),
        evidence=evidence_from_episodes(known),
        source_episode_ids=tuple(episode.episode_id for episode in known)[:SOURCE_EPISODES_MAX],
    )


def statement_from_edit(
    command: Command,
    *,
    owner: Owner,
    content: str,
    subject: str,
    category: Category | None,
    trust: Trust,
    policy: MemoryPolicy,
    confidence: float | None = None,
    valid_from: datetime | None = None,
    valid_to: datetime | None = None,
    sensitivity: Sensitivity = "internal",
    session_id: str | None = None,
    tags: tuple[str, ...] = (),
    metadata: Mapping[str, JsonValue] | None = None,
) -> Statement:
    """Return the candidate fact of a manual edit. The command is its evidence. Without a given category, the predicate
    decides the category."""
    owner_key = owner.key(command.tenant_id)
    stated = ids.edit_observation_id(owner_key, command.command_id)
    predicate = _predicate(content, subject, policy)
    return Statement(
        fact_id=ids.fact_id(owner_key, f"{command.command_id}/0"),
        tenant_id=command.tenant_id,
        owner=owner,
        subject=subject,
        content=content,
        category=category or category_of(predicate),
        confidence=stated_confidence("permanent", trust, policy.confidence) if confidence is None else confidence,
        occurred_at=command.issued_at,
        valid_from=valid_from,
        valid_to=valid_to,
        sensitivity=sensitivity,
        trust=trust,
        predicate=predicate,
        typed=_typed(content, subject, policy),
        evidence=(
            Evidence(
                turn_id=stated,
                session_id=session_id or EDIT_SESSION,
                observation_id=stated,
                occurred_at=command.issued_at,
                quote=content[:QUOTE_MAX],
                trust=trust,
                command_id=command.command_id,
            ),
        ),
        tags=tags,
        metadata=metadata or {},
    )


def statement_from_import(
    command: Command, args: FactsImport, fact: FactToImport, *, owner: Owner, policy: MemoryPolicy
) -> Statement:
    """Return the candidate fact of a statement of another memory. A preference or an identity that a tool states
    becomes at most a pending fact."""
    owner_key = owner.key(command.tenant_id)
    said = statement_from_edit(
        command,
        owner=owner,
        content=fact.content,
        subject=resolve_subject(fact.subject, owner, owner.id),
        category=fact.category,
        trust=args.trust,
        policy=policy,
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        tags=fact.tags,
        metadata=fact.metadata,
    )
    cause = ids.imported_cause(said.subject, said.content)
    stated = ids.edit_observation_id(owner_key, cause)
    at = min(fact.said_at or args.exported_at, args.exported_at)
    (evidence,) = said.evidence
    place = {"turn_id": stated, "observation_id": stated, "occurred_at": at}
    return replace(
        said,
        fact_id=ids.fact_id(owner_key, cause),
        occurred_at=at,
        unconfirmed=needs_own_word(args.trust, said.category),
        evidence=(evidence.model_copy(update={**place, "imported": ImportedFrom(file=args.file, line=fact.line)}),),
    )


def evidence_from_episodes(episodes: Sequence[StoredEpisode]) -> tuple[Evidence, ...]:
    """Return the evidence of episodes, oldest first. Each turn has one entry, the most trusted one. The number of
    entries is limited to 2 * EVIDENCE_KEPT."""
    by_turn: dict[tuple[str, str, str], Evidence] = {}
    for episode in sorted(episodes, key=lambda each: (-TRUST.index(each.trust), each.occurred_at)):
        by_turn.setdefault(
            (episode.user_id, episode.session_id, episode.turn_id),
            Evidence(
                turn_id=episode.turn_id,
                session_id=episode.session_id,
                observation_id=episode.observation_id,
                occurred_at=episode.occurred_at,
                quote=episode.evidence,
                trust=episode.trust,
                user_id=_other_user(episode.user_id, episode.owner),
            ),
        )
    return tuple(sorted(by_turn.values(), key=lambda each: each.occurred_at))[: 2 * EVIDENCE_KEPT]


def _other_user(user_id: str, owner: Owner) -> str | None:
    """Return the user of a turn if the owner of the fact is somebody else."""
    return None if owner == Owner(scope="user", id=user_id) else user_id


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)
