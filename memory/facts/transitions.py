"""Pure transitions of facts: each makes one version and one event (docs/reference/records.md).

Every function returns new rows and overwrites nothing. `applied` gets the cause of the outcome once, so that a
compare-and-set can tell its own write from another's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ...schemas import ids
from ...schemas.facts import (
    APPLIED_KEPT,
    EVIDENCE_KEPT,
    SOURCE_EPISODES_MAX,
    WAITS_FOR,
    Decision,
    Evidence,
    FactAction,
    FactState,
    StoredFact,
)
from ...schemas.turns import SENSITIVITIES
from ..policies import ConfidencePolicy
from .statements import TRUST, Statement

READABLE: tuple[FactState, ...] = ("active", "pending")
"""States in which a new statement can still change a row."""
CLOSED: tuple[FactState, ...] = ("superseded", "invalidated", "expired")
"""States of rows that were believed once."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """When, by which cause and for which embedder a transition is made."""

    now: datetime
    cause: str
    """The cause of the whole outcome; it goes into `applied`."""
    embedder: str


@dataclass(frozen=True, slots=True)
class Transition:
    """One change of one fact. `fact` is one version above `before`."""

    action: FactAction
    fact: StoredFact
    before: StoredFact | None
    reason: str
    decision: Decision


def has_ended(fact: StoredFact, at: datetime) -> bool:
    """Whether the row's own end lies at or before this time. It counts as closed then, and may become true again."""
    return fact.valid_to is not None and fact.valid_to <= at


def newest_evidence_time(fact: StoredFact) -> datetime | None:
    """Return the time of the newest evidence; None without evidence."""
    return max((each.occurred_at for each in fact.evidence), default=None)


def told_before(statement: Statement, fact: StoredFact) -> bool:
    """Whether both beginnings were told, and the statement's is the earlier one. An assumed time says nothing."""
    return statement.begin_told and fact.valid_from_told and statement.begins < fact.valid_from


def create(
    statement: Statement,
    stamp: Stamp,
    *,
    reason: str,
    decision: Decision,
    supersedes: str | None = None,
) -> Transition:
    """Return a new active row."""
    fact = _row(statement, stamp)
    fact = fact.model_copy(update={"supersedes": supersedes})
    return Transition("new", fact, None, reason, decision)


def create_pending(
    statement: Statement, stamp: Stamp, *, waits_for: str | None, reason: str, decision: Decision
) -> Transition:
    """Return a row that is not believed yet: it waits to be judged against another row, or (None) only for its time."""
    fact = _row(statement, stamp)
    metadata = {WAITS_FOR: waits_for} if waits_for else {}
    return Transition("new", fact.model_copy(update={"state": "pending", "metadata": metadata}), None, reason, decision)


def approve(
    fact: StoredFact, stamp: Stamp, *, supersedes: str | None = None, reason: str, decision: Decision
) -> Transition:
    """Make a pending row active and recorded from now on."""
    fields = {"state": "active", "supersedes": fact.supersedes or supersedes, "recorded_at": _not_before(fact, stamp)}
    return Transition("approved", _next(fact, stamp, fields), fact, reason, decision)


def admit_as_history(
    statement: Statement, stamp: Stamp, *, closed_at: datetime, reason: str, decision: Decision
) -> Transition:
    """Return a row that was true before what is believed now: closed from the start and linked to nothing."""
    fact = _row(statement, stamp)
    ends = {"state": "superseded", "valid_to": _end(fact, closed_at), "closed_at": stamp.now}
    fact = fact.model_copy(update=ends)
    return Transition("superseded", fact, None, reason, decision)


def reinforce(
    fact: StoredFact,
    statement: Statement,
    stamp: Stamp,
    policy: ConfidencePolicy,
    *,
    reason: str,
    decision: Decision,
    supersedes: str | None = None,
) -> Transition | None:
    """Add evidence from other turns: +0.05 confidence (at most 1) and one more on the count per new turn.

    Returns None when the statement brings no new turn. The row keeps its first wording.
    """
    evidence, added = _with_evidence(fact.evidence, statement.evidence)
    if not added:
        return None
    update = {
        "confidence": _reinforced(fact, added, policy),
        "last_reinforced_at": stamp.now,
        "supersedes": fact.supersedes or supersedes,
        **_strengthened(fact, statement, evidence, added),
    }
    return Transition("reinforced", _next(fact, stamp, update), fact, reason, decision)


def update(fact: StoredFact, statement: Statement, stamp: Stamp, *, reason: str, decision: Decision) -> Transition:
    """Give a row better words or more detail; it stays the same row."""
    evidence, added = _with_evidence(fact.evidence, statement.evidence)
    fields = {
        **_reworded(statement, stamp),
        "category": statement.category,
        "confidence": statement.confidence,
        **_begin(fact, statement.valid_from, statement.valid_from_told),
        **_strengthened(fact, statement, evidence, added),
    }
    if added:
        fields["last_reinforced_at"] = stamp.now
    return Transition("updated", _next(fact, stamp, fields), fact, reason, decision)


def add_detail(
    fact: StoredFact,
    statement: Statement,
    stamp: Stamp,
    policy: ConfidencePolicy,
    *,
    reason: str,
    decision: Decision,
) -> Transition:
    """Give a row the more detailed words of a restatement, and its start when that is earlier."""
    fields = {**_reworded(statement, stamp), **_heard_again(fact, statement, stamp, policy)}
    return Transition("updated", _next(fact, stamp, fields), fact, reason, decision)


def backdate(
    fact: StoredFact,
    statement: Statement,
    stamp: Stamp,
    policy: ConfidencePolicy,
    *,
    reason: str,
    decision: Decision,
) -> Transition:
    """Give a row the earlier start of a restatement; it keeps its words."""
    return Transition(
        "updated", _next(fact, stamp, _heard_again(fact, statement, stamp, policy)), fact, reason, decision
    )


def supersede(
    fact: StoredFact, stamp: Stamp, *, by: str | None, valid_to: datetime, reason: str, decision: Decision
) -> Transition:
    """Close a row that was true until `valid_to`. `by` is the row that replaces it; None: the statement was only taken
    back."""
    gone = _next(fact, stamp, _gave_way(fact, stamp, by=by, valid_to=valid_to))
    return Transition("superseded", gone, fact, reason, decision)


def invalidate(fact: StoredFact, stamp: Stamp, *, by: str | None = None, reason: str, decision: Decision) -> Transition:
    """Stop believing a row that was never true. Its valid times stay as they were and are not read."""
    fields = {"state": "invalidated", "expired_at": _not_before(fact, stamp), "superseded_by": by or fact.superseded_by}
    return Transition("invalidated", _next(fact, stamp, fields), fact, reason, decision)


def prune(fact: StoredFact, stamp: Stamp, *, reason: str, decision: Decision) -> Transition:
    """Expire a row that is not worth keeping."""
    fields = {"state": "expired", "expired_at": _not_before(fact, stamp)}
    return Transition("pruned", _next(fact, stamp, fields), fact, reason, decision)


def merge(
    sources: Sequence[StoredFact],
    *,
    content: str,
    predicate: str | None,
    confidence: float | None,
    stamp: Stamp,
    reason: str,
    stage: str,
) -> tuple[Transition, ...]:
    """Merge rows that state one thing.

    The first row survives with the merged text, the evidence of all and the earliest start. The others are superseded
    by it and hold for no time (an empty half-open interval), since it covers theirs. The sources' events come first.
    """
    first, *others = sources
    survivor = first
    evidence, added = first.evidence, 0
    for other in others:
        evidence, more = _with_evidence(evidence, other.evidence)
        added += more
    episodes = tuple(dict.fromkeys(each for source in sources for each in source.source_episode_ids))
    earliest = min(sources, key=lambda source: source.valid_from)
    survivor = _next(
        first,
        stamp,
        {
            "content": content,
            "predicate": predicate,
            "content_hash": ids.content_hash(content),
            "confidence": max([source.confidence for source in sources] if confidence is None else [confidence]),
            **_begin(first, earliest.valid_from, earliest.valid_from_told),
            "sensitivity": max((source.sensitivity for source in sources), key=SENSITIVITIES.index),
            "trust": min((source.trust for source in sources), key=TRUST.index),
            "embedder": stamp.embedder,
            "evidence": evidence,
            "reinforcement_count": _count(first, added),
            "source_episode_ids": episodes[:SOURCE_EPISODES_MAX],
        },
    )
    gone = tuple(
        Transition(
            "merged",
            _next(other, stamp, _gave_way(other, stamp, by=first.fact_id, valid_to=other.valid_from)),
            other,
            reason,
            Decision(stage=stage, other_fact_id=first.fact_id),
        )
        for other in others
    )
    return (*gone, Transition("merged", survivor, first, reason, Decision(stage=stage)))


def _gave_way(fact: StoredFact, stamp: Stamp, *, by: str | None, valid_to: datetime) -> dict[str, object]:
    return {
        "state": "superseded",
        "superseded_by": by,
        "valid_to": _end(fact, valid_to),
        "closed_at": _believed_until(fact, stamp),
    }


def _end(fact: StoredFact, valid_to: datetime) -> datetime:
    """Return when a row that closes ended: its own end if that is earlier, and never before it began."""
    return max(fact.valid_from, valid_to if fact.valid_to is None else min(fact.valid_to, valid_to))


def _begin(fact: StoredFact, valid_from: datetime | None, told: bool) -> dict[str, object]:
    """Return the fields of the earlier one of a row's start and another start."""
    if valid_from is None or valid_from > fact.valid_from or (valid_from == fact.valid_from and not told):
        return {}
    return {"valid_from": valid_from, "valid_from_told": told}


def _believed_until(fact: StoredFact, stamp: Stamp) -> datetime:
    """Return when belief in the row ended: a pending row was never believed."""
    return fact.recorded_at if fact.state == "pending" else _not_before(fact, stamp)


def _not_before(fact: StoredFact, stamp: Stamp) -> datetime:
    """Return the time of the change. When the clocks of two workers disagree, a row ends when it was recorded."""
    return max(fact.recorded_at, stamp.now)


def _row(statement: Statement, stamp: Stamp) -> StoredFact:
    evidence, _ = _with_evidence((), statement.evidence)
    return StoredFact(
        fact_id=statement.fact_id,
        version=1,
        tenant_id=statement.tenant_id,
        owner=statement.owner,
        subject=statement.subject,
        predicate=statement.predicate,
        content=statement.content,
        category=statement.category,
        confidence=statement.confidence,
        state="active",
        sensitivity=statement.sensitivity,
        trust=statement.trust,
        valid_from=statement.begins,
        valid_from_told=statement.begin_told,
        valid_to=statement.valid_to,
        recorded_at=stamp.now,
        reinforcement_count=max(0, len(evidence) - 1),
        embedder=stamp.embedder,
        content_hash=statement.content_hash,
        evidence=evidence,
        source_episode_ids=statement.source_episode_ids,
        owner_key=statement.owner.key(statement.tenant_id),
        applied=(stamp.cause,),
    )


def _next(fact: StoredFact, stamp: Stamp, fields: Mapping[str, object]) -> StoredFact:
    applied = fact.applied if stamp.cause in fact.applied else (*fact.applied, stamp.cause)[-APPLIED_KEPT:]
    changed = {**fields, "version": fact.version + 1, "applied": applied}
    if fact.state == "pending" and fields.get("state", "pending") != "pending":
        changed["metadata"] = {name: value for name, value in fact.metadata.items() if name != WAITS_FOR}
    return fact.model_copy(update=changed)


def _strengthened(
    fact: StoredFact, statement: Statement, evidence: tuple[Evidence, ...], added: int
) -> dict[str, object]:
    """Return the fields that any further evidence changes: evidence, count, sensitivity, trust and source episodes."""
    episodes = tuple(dict.fromkeys((*fact.source_episode_ids, *statement.source_episode_ids)))
    trusts = (fact.trust, statement.trust) if added else (fact.trust,)
    return {
        "evidence": evidence,
        "reinforcement_count": _count(fact, added),
        "sensitivity": max(fact.sensitivity, statement.sensitivity, key=SENSITIVITIES.index),
        "trust": max(trusts, key=TRUST.index),
        "source_episode_ids": episodes[:SOURCE_EPISODES_MAX],
    }


def _reinforced(fact: StoredFact, added: int, policy: ConfidencePolicy) -> float:
    return max(fact.confidence, min(1.0, round(fact.confidence + policy.reinforcement * added, 6)))


def _reworded(statement: Statement, stamp: Stamp) -> dict[str, object]:
    return {
        "content": statement.content,
        "content_hash": statement.content_hash,
        "predicate": statement.predicate,
        "embedder": stamp.embedder,
    }


def _heard_again(fact: StoredFact, statement: Statement, stamp: Stamp, policy: ConfidencePolicy) -> dict[str, object]:
    evidence, added = _with_evidence(fact.evidence, statement.evidence)
    return {
        "confidence": _reinforced(fact, added, policy),
        **_begin(fact, statement.begins, statement.begin_told),
        "last_reinforced_at": stamp.now if added else fact.last_reinforced_at,
        **_strengthened(fact, statement, evidence, added),
    }


def _count(fact: StoredFact, added: int) -> int:
    """Return the number of distinct turns minus one. It goes on counting when the row no longer keeps all evidence."""
    return fact.reinforcement_count + added if fact.evidence else max(0, added - 1)


def adds_no_evidence(fact: StoredFact, statement: Statement) -> bool:
    """Whether all turns of the statement's evidence already stand in the row's evidence."""
    return bool(statement.evidence) and not _with_evidence(fact.evidence, statement.evidence)[1]


def _with_evidence(kept: tuple[Evidence, ...], new: Sequence[Evidence]) -> tuple[tuple[Evidence, ...], int]:
    """Merge evidence: one entry per (session, turn), oldest first, at most the first 32 and the last 32. Also return
    how many turns were new."""
    turns = {(each.session_id, each.turn_id) for each in kept}
    fresh: list[Evidence] = []
    for each in new:
        if (each.session_id, each.turn_id) not in turns:
            turns.add((each.session_id, each.turn_id))
            fresh.append(each)
    merged = tuple(sorted((*kept, *fresh), key=lambda each: each.occurred_at))
    if len(merged) > 2 * EVIDENCE_KEPT:
        merged = merged[:EVIDENCE_KEPT] + merged[-EVIDENCE_KEPT:]
    return merged, len(fresh)
