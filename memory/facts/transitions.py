"""Pure transitions of facts. Each transition makes one new version of a row and one event (docs/reference/records.md).

Every function returns new rows and changes no argument. Each new row has the cause of the change in `applied`. A worker
whose compare-and-set fails can thus see whether the stored row is its own write or the write of another worker.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ...schemas import ids
from ...schemas.base import TAGS_MAX
from ...schemas.facts import (
    APPLIED_KEPT,
    SOURCE_EPISODES_MAX,
    UNCONFIRMED,
    WAITS_FOR,
    BeforeClosing,
    Decision,
    Evidence,
    FactAction,
    FactState,
    StoredFact,
    Trust,
)
from ...schemas.slots import UNTYPED
from ...schemas.turns import SENSITIVITIES
from ..policies import ConfidencePolicy
from .fact_evidence import add_evidence, count_reinforcements, first_evidence
from .statements import Statement
from .trust_order import TRUST, outranks

READABLE: tuple[FactState, ...] = ("active", "pending")
"""States in which a new statement can still change a row."""
REVIEWED: tuple[FactState, ...] = ("quarantined", "pending")
"""States of rows that a person may approve or reject."""
CLOSED: tuple[FactState, ...] = ("superseded", "invalidated", "expired")
"""States of rows that were believed earlier."""
_OF_PENDING = (WAITS_FOR, UNCONFIRMED)
"""Metadata of pending rows only."""
QUARANTINE = "quarantine"
"""Name of the decision stage that quarantines an instruction."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The time, the cause and the embedder of a transition."""

    now: datetime
    cause: str
    """Id of the cause. All transitions with one cause share it; it is added to the row's `applied`."""
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
    """Return whether the row's `valid_to` is at or before this time.

    A row that has ended counts as closed: a later statement with the same content becomes a new row.
    """
    return fact.valid_to is not None and fact.valid_to <= at


def told_before(statement: Statement, fact: StoredFact) -> bool:
    """Return whether the statement's start is earlier than the row's start.

    The result is False when a speaker did not give one of the two starts, or when the row is less trusted.
    """
    both = statement.begin_told and fact.valid_from_told and not outranks(statement, fact)
    return both and statement.begins < fact.valid_from


def create(
    statement: Statement,
    stamp: Stamp,
    *,
    reason: str,
    decision: Decision,
    supersedes: str | None = None,
) -> Transition:
    """Return a new active row."""
    fact = _new_row(statement, stamp)
    fact = fact.model_copy(update={"supersedes": supersedes})
    return Transition("new", fact, None, reason, decision)


def create_pending(
    statement: Statement, stamp: Stamp, *, waits_for: str | None, reason: str, decision: Decision
) -> Transition:
    """Return a new row that is not believed yet.

    The row waits for a judgement that compares it with the fact `waits_for`. With None, the row only waits until it
    begins, or until an unconfirmed statement is confirmed.
    """
    fact = _new_row(statement, stamp)
    metadata = {**fact.metadata, WAITS_FOR: waits_for} if waits_for else fact.metadata
    metadata = {**metadata, UNCONFIRMED: True} if statement.unconfirmed else metadata
    return Transition("new", fact.model_copy(update={"state": "pending", "metadata": metadata}), None, reason, decision)


def quarantine(statement: Statement, stamp: Stamp, *, reason: str) -> Transition:
    """Return a new row that is not believed until a person approves it. Only a read that asks for quarantined rows
    returns it."""
    row = _new_row(statement, stamp).model_copy(update={"state": "quarantined"})
    return Transition("quarantined", row, None, reason, Decision(stage=QUARANTINE))


def quarantine_again(fact: StoredFact, statement: Statement, stamp: Stamp, *, reason: str) -> Transition | None:
    """Add evidence to a quarantined row whose statement was repeated. Return None when the evidence is already
    known."""
    evidence, added, better = add_evidence(fact, statement.evidence, statement)
    if not better:
        return None
    row = _next_version(fact, stamp, _evidence_fields(fact, statement, evidence, added, better))
    return Transition("quarantined", row, fact, reason, Decision(stage=QUARANTINE))


def forget(
    fact: StoredFact, stamp: Stamp, *, reason: str, decision: Decision, restored: Collection[str] = ()
) -> Transition:
    """Remove a row from every read. Its events stay in the log.

    `restored` are the ids of rows that it had closed and that are believed again: it supersedes them no longer.
    """
    fields: dict[str, object] = {"state": "forgotten", "expired_at": fact.expired_at}
    if fact.state != "forgotten":
        fields["expired_at"] = _not_before(fact, stamp)
    if fact.supersedes in restored:
        fields["supersedes"] = None
    return Transition("forgotten", _next_version(fact, stamp, fields), fact, reason, decision)


def reopen(fact: StoredFact, stamp: Stamp, *, reason: str, decision: Decision) -> Transition:
    """Believe a closed row again, as if nothing had closed it. It keeps its `recorded_at`: memory knew it before."""
    fields = {
        "state": "active",
        "superseded_by": None,
        "valid_to": end_before_closing(fact),
        "closed_at": None,
        "expired_at": None,
        "before_closing": None,
    }
    return Transition("approved", _next_version(fact, stamp, fields), fact, reason, decision)


def hand_on(fact: StoredFact, stamp: Stamp, *, by: StoredFact, reason: str, decision: Decision) -> Transition:
    """Give a closed row another successor, and the end that follows from the successor's start."""
    end = end_before_closing(fact)
    fields = {
        "state": "superseded",
        "superseded_by": by.fact_id,
        "valid_to": max(fact.valid_from, by.valid_from if end is None else min(end, by.valid_from)),
        "closed_at": fact.closed_at or _not_before(fact, stamp),
        "expired_at": None,
        "before_closing": fact.before_closing or BeforeClosing(state="active", valid_to=end),
    }
    return Transition("superseded", _next_version(fact, stamp, fields), fact, reason, decision)


def end_before_closing(fact: StoredFact) -> datetime | None:
    """Return the row's own end, before it closed.

    A row of an earlier version does not have it. Then a superseded row counts as having had no end, and an invalidated
    row kept its end.
    """
    if fact.before_closing is not None:
        return fact.before_closing.valid_to
    return None if fact.state == "superseded" else fact.valid_to


def approve(
    fact: StoredFact, stamp: Stamp, *, supersedes: str | None = None, reason: str, decision: Decision
) -> Transition:
    """Make a row active. `recorded_at` becomes the time of the approval."""
    fields = {"state": "active", "supersedes": fact.supersedes or supersedes, "recorded_at": _not_before(fact, stamp)}
    return Transition("approved", _next_version(fact, stamp, fields), fact, reason, decision)


def confirm(
    pending: StoredFact, made: Sequence[Transition], *, into: StoredFact | None, stamp: Stamp
) -> tuple[Transition, ...]:
    """Replace the creation of a new row by a new version of the existing row `pending`.

    `pending` is a pending row that states the same as a new statement, or a quarantined row that a person approves.
    `made` are the transitions of the statement; a row that they create has the id of `pending`. When they create no
    row because the row `into` states the same, `pending` closes.
    """
    found: list[Transition] = []
    taken = False
    for each in made:
        if each.before is not None or each.fact.fact_id != pending.fact_id:
            found.append(each)
            continue
        taken = True
        found.append(_taken_over(pending, each, stamp))
    if not taken and into is not None:
        decision = Decision(stage="exact", other_fact_id=into.fact_id)
        reason = "another row states the same"
        found.append(
            supersede(pending, stamp, by=into.fact_id, valid_to=pending.valid_from, reason=reason, decision=decision)
        )
    return tuple(found)


def _taken_over(pending: StoredFact, made: Transition, stamp: Stamp) -> Transition:
    """Give the pending row the state, trust and times of the row that `made` creates. The pending row keeps its
    words."""
    new = made.fact
    evidence, added, _ = add_evidence(pending, new.evidence, new)
    episodes = tuple(dict.fromkeys((*pending.source_episode_ids, *new.source_episode_ids)))
    fields = {
        "state": new.state,
        "category": new.category,
        "confidence": max(pending.confidence, new.confidence),
        "sensitivity": max(pending.sensitivity, new.sensitivity, key=SENSITIVITIES.index),
        "trust": new.trust,
        "valid_from": new.valid_from,
        "valid_from_told": new.valid_from_told,
        "valid_to": new.valid_to,
        "recorded_at": _not_before(pending, stamp),
        "closed_at": new.closed_at and _not_before(pending, stamp),
        "supersedes": new.supersedes,
        "evidence": evidence,
        "reinforcement_count": count_reinforcements(pending, added),
        "source_episode_ids": episodes[:SOURCE_EPISODES_MAX],
        "metadata": {**pending.metadata, **new.metadata},
    }
    action: FactAction = "approved" if new.state == "active" else "superseded"
    if new.state == "pending":
        action = "updated"
    return Transition(action, _next_version(pending, stamp, fields), pending, made.reason, made.decision)


def admit_as_history(
    statement: Statement, stamp: Stamp, *, closed_at: datetime, reason: str, decision: Decision
) -> Transition:
    """Return a new row that is already closed and has no link to another row: it was true before the current facts."""
    fact = _new_row(statement, stamp)
    ends = {"state": "superseded", "valid_to": _end_of_validity(fact, closed_at), "closed_at": stamp.now}
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
    """Add the statement's evidence to the row, which keeps its words. Return None when there is nothing new to add.

    Each new user turn adds `policy.reinforcement` to the confidence (at most 1) and 1 to the reinforcement count. The
    action is `reinforced`. The action is `updated` when the statement is more trusted than the row, and when no
    evidence is from a user.
    """
    evidence, added, better = add_evidence(fact, statement.evidence, statement)
    if not better:
        return None
    lifted = outranks(statement, fact)
    reinforced = added > 0 and not lifted
    update = {
        "confidence": _confidence(fact, statement, added, policy),
        "last_reinforced_at": stamp.now if reinforced or lifted else fact.last_reinforced_at,
        "supersedes": fact.supersedes or supersedes,
        **_evidence_fields(fact, statement, evidence, added, better),
    }
    return Transition(
        "reinforced" if reinforced else "updated", _next_version(fact, stamp, update), fact, reason, decision
    )


def update(fact: StoredFact, statement: Statement, stamp: Stamp, *, reason: str, decision: Decision) -> Transition:
    """Replace the words, category and confidence of a row by the statement's values. The row keeps its id."""
    evidence, added, better = add_evidence(fact, statement.evidence, statement)
    fields = {
        **_reworded_fields(statement, stamp),
        "category": statement.category,
        "confidence": statement.confidence,
        **_start_fields(fact, statement.valid_from, statement.valid_from_told),
        **_evidence_fields(fact, statement, evidence, added, better),
    }
    if added:
        fields["last_reinforced_at"] = stamp.now
    return Transition("updated", _next_version(fact, stamp, fields), fact, reason, decision)


def edit(
    fact: StoredFact,
    statement: Statement | None,
    fields: Mapping[str, object],
    stamp: Stamp,
    *,
    reason: str,
    decision: Decision,
) -> Transition:
    """Change a row by a manual edit. `fields` has the new values.

    With a statement, the row also gets the words, the evidence and the trust of the statement.
    """
    changed = dict(fields)
    if statement is not None:
        evidence, added, _ = add_evidence(fact, statement.evidence, statement)
        changed |= {
            **_reworded_fields(statement, stamp),
            "evidence": evidence,
            "reinforcement_count": count_reinforcements(fact, added),
            "trust": statement.trust,
        }
    return Transition("updated", _next_version(fact, stamp, changed), fact, reason, decision)


def add_detail(
    fact: StoredFact,
    statement: Statement,
    stamp: Stamp,
    policy: ConfidencePolicy,
    *,
    reason: str,
    decision: Decision,
) -> Transition:
    """Give a row the more detailed words and the evidence of a restatement. An earlier start replaces the row's
    start."""
    fields = {**_reworded_fields(statement, stamp), **_restated_fields(fact, statement, stamp, policy)}
    return Transition("updated", _next_version(fact, stamp, fields), fact, reason, decision)


def backdate(
    fact: StoredFact,
    statement: Statement,
    stamp: Stamp,
    policy: ConfidencePolicy,
    *,
    reason: str,
    decision: Decision,
) -> Transition:
    """Give a row the earlier start and the evidence of a restatement. The row keeps its words."""
    return Transition(
        "updated", _next_version(fact, stamp, _restated_fields(fact, statement, stamp, policy)), fact, reason, decision
    )


def supersede(
    fact: StoredFact, stamp: Stamp, *, by: str | None, valid_to: datetime, reason: str, decision: Decision
) -> Transition:
    """Close a row that was true until `valid_to`. `by` is the id of the row that replaces it; None when no row does."""
    gone = _next_version(fact, stamp, _superseded_fields(fact, stamp, by=by, valid_to=valid_to))
    return Transition("superseded", gone, fact, reason, decision)


def invalidate(fact: StoredFact, stamp: Stamp, *, by: str | None = None, reason: str, decision: Decision) -> Transition:
    """Stop believing a row that was never true. Its `valid_from` and `valid_to` do not change and have no meaning any
    more."""
    fields = {"state": "invalidated", "expired_at": _not_before(fact, stamp), "superseded_by": by or fact.superseded_by}
    return Transition("invalidated", _next_version(fact, stamp, fields), fact, reason, decision)


def prune(fact: StoredFact, stamp: Stamp, *, reason: str, decision: Decision) -> Transition:
    """Expire a row that is not worth keeping."""
    fields = {"state": "expired", "expired_at": _not_before(fact, stamp)}
    return Transition("pruned", _next_version(fact, stamp, fields), fact, reason, decision)


def merge(
    sources: Sequence[StoredFact],
    *,
    content: str,
    predicate: str | None,
    confidence: float | None,
    stamp: Stamp,
    reason: str,
    stage: str,
    trust: Trust | None = None,
) -> tuple[Transition, ...]:
    """Merge rows that state the same.

    The first row survives with the merged text, the tags and evidence of all rows and the earliest start. It is pinned
    if one of the rows is. The survivor supersedes the other rows; each of them ends at its own start, because the
    survivor covers its validity. The transitions of the superseded rows come first. The survivor takes slot and value
    from the row with the merged text. If no row has this text, they remain only when all rows have the same slot and
    value.

    `trust` is the trust of new words. With None, the survivor has the highest trust of the sources; the caller makes
    sure that the text is from a source with this trust.
    """
    first, *others = sources
    grown, added = first, 0
    for other in others:
        evidence, more, _ = add_evidence(grown, other.evidence, other)
        grown = grown.model_copy(update={"evidence": evidence})
        added += more
    episodes = tuple(dict.fromkeys(each for source in sources for each in source.source_episode_ids))
    earliest = min(sources, key=lambda source: source.valid_from)
    worded = next((source.typed for source in sources if source.content == content), None)
    typed = worded or (first.typed if all(source.typed == first.typed for source in sources) else UNTYPED)
    survivor = _next_version(
        first,
        stamp,
        {
            "content": content,
            "predicate": predicate,
            **typed.fields(),
            "content_hash": ids.content_hash(content),
            "confidence": max([source.confidence for source in sources] if confidence is None else [confidence]),
            **_start_fields(first, earliest.valid_from, earliest.valid_from_told),
            "sensitivity": max((source.sensitivity for source in sources), key=SENSITIVITIES.index),
            "trust": max((source.trust for source in sources), key=TRUST.index) if trust is None else trust,
            "pinned_at": min((each.pinned_at for each in sources if each.pinned_at is not None), default=None),
            "tags": tuple(dict.fromkeys(tag for source in sources for tag in source.tags))[:TAGS_MAX],
            "embedder": stamp.embedder,
            "evidence": grown.evidence,
            "reinforcement_count": count_reinforcements(first, added),
            "source_episode_ids": episodes[:SOURCE_EPISODES_MAX],
        },
    )
    gone = tuple(
        Transition(
            "merged",
            _next_version(
                other,
                stamp,
                {
                    **_superseded_fields(other, stamp, by=first.fact_id, valid_to=other.valid_from),
                    "before_closing": BeforeClosing(state=other.state, valid_to=other.valid_to, merged=True),
                },
            ),
            other,
            reason,
            Decision(stage=stage, other_fact_id=first.fact_id),
        )
        for other in others
    )
    return (*gone, Transition("merged", survivor, first, reason, Decision(stage=stage)))


def _superseded_fields(fact: StoredFact, stamp: Stamp, *, by: str | None, valid_to: datetime) -> dict[str, object]:
    return {
        "state": "superseded",
        "superseded_by": by,
        "valid_to": _end_of_validity(fact, valid_to),
        "closed_at": _believed_until(fact, stamp),
    }


def _end_of_validity(fact: StoredFact, valid_to: datetime) -> datetime:
    """Return the end of a row that closes: the earlier of its own end and `valid_to`, but not before its start."""
    return max(fact.valid_from, valid_to if fact.valid_to is None else min(fact.valid_to, valid_to))


def _start_fields(fact: StoredFact, valid_from: datetime | None, told: bool) -> dict[str, object]:
    """Return the new start fields, or no fields when the row keeps its start.

    The start changes when `valid_from` is earlier. An equal start that a speaker gave (`told`) changes the flag only.
    """
    if valid_from is None or valid_from > fact.valid_from or (valid_from == fact.valid_from and not told):
        return {}
    return {"valid_from": valid_from, "valid_from_told": told}


def _believed_until(fact: StoredFact, stamp: Stamp) -> datetime:
    """Return when belief in the row ended. A pending or quarantined row was never believed, so belief ended when the
    row was recorded."""
    return fact.recorded_at if fact.state in REVIEWED else _not_before(fact, stamp)


def _not_before(fact: StoredFact, stamp: Stamp) -> datetime:
    """Return the time of the change, or `recorded_at` if that is later, because the clocks of two workers may
    differ."""
    return max(fact.recorded_at, stamp.now)


def _new_row(statement: Statement, stamp: Stamp) -> StoredFact:
    evidence, counting, _ = first_evidence(statement.evidence, statement)
    return StoredFact(
        fact_id=statement.fact_id,
        version=1,
        tenant_id=statement.tenant_id,
        owner=statement.owner,
        subject=statement.subject,
        predicate=statement.predicate,
        content=statement.content,
        **statement.typed.fields(),
        category=statement.category,
        confidence=statement.confidence,
        state="active",
        sensitivity=statement.sensitivity,
        trust=statement.trust,
        valid_from=statement.begins,
        valid_from_told=statement.begin_told,
        valid_to=statement.valid_to,
        recorded_at=stamp.now,
        reinforcement_count=max(0, counting - 1),
        tags=statement.tags,
        metadata=dict(statement.metadata),
        embedder=stamp.embedder,
        content_hash=statement.content_hash,
        evidence=evidence,
        source_episode_ids=statement.source_episode_ids,
        owner_key=statement.owner.key(statement.tenant_id),
        applied=(stamp.cause,),
    )


def _next_version(fact: StoredFact, stamp: Stamp, fields: Mapping[str, object]) -> StoredFact:
    applied = fact.applied if stamp.cause in fact.applied else (*fact.applied, stamp.cause)[-APPLIED_KEPT:]
    changed = {**fields, "version": fact.version + 1, "applied": applied}
    if fact.state in READABLE and fields.get("state") in CLOSED and "before_closing" not in fields:
        changed["before_closing"] = BeforeClosing(state=fact.state, valid_to=fact.valid_to)
    if fact.state == "pending" and fields.get("state", "pending") != "pending":
        changed["metadata"] = {name: value for name, value in fact.metadata.items() if name not in _OF_PENDING}
    return fact.model_copy(update=changed)


def _evidence_fields(
    fact: StoredFact, statement: Statement, evidence: tuple[Evidence, ...], added: int, better: int
) -> dict[str, object]:
    """Return the fields that further evidence changes: evidence, count, sensitivity, trust, tags and source
    episodes."""
    episodes = tuple(dict.fromkeys((*fact.source_episode_ids, *statement.source_episode_ids)))
    trusts = (fact.trust, statement.trust) if better else (fact.trust,)
    return {
        "evidence": evidence,
        "reinforcement_count": count_reinforcements(fact, added),
        "sensitivity": max(fact.sensitivity, statement.sensitivity, key=SENSITIVITIES.index),
        "trust": max(trusts, key=TRUST.index),
        "tags": tuple(dict.fromkeys((*fact.tags, *statement.tags)))[:TAGS_MAX],
        "source_episode_ids": episodes[:SOURCE_EPISODES_MAX],
    }


def _confidence(fact: StoredFact, statement: Statement, added: int, policy: ConfidencePolicy) -> float:
    """Return the row's new confidence; it never falls.

    A more trusted statement raises it to the statement's confidence. Otherwise each of the `added` user turns raises it
    by `policy.reinforcement`, to at most 1.
    """
    if outranks(statement, fact):
        return max(fact.confidence, statement.confidence)
    return max(fact.confidence, min(1.0, round(fact.confidence + policy.reinforcement * added, 6)))


def _reworded_fields(statement: Statement, stamp: Stamp) -> dict[str, object]:
    return {
        "content": statement.content,
        "content_hash": statement.content_hash,
        "predicate": statement.predicate,
        **statement.typed.fields(),
        "embedder": stamp.embedder,
    }


def _restated_fields(
    fact: StoredFact, statement: Statement, stamp: Stamp, policy: ConfidencePolicy
) -> dict[str, object]:
    evidence, added, better = add_evidence(fact, statement.evidence, statement)
    return {
        "confidence": _confidence(fact, statement, added, policy),
        **_start_fields(fact, statement.begins, statement.begin_told),
        "last_reinforced_at": stamp.now if added else fact.last_reinforced_at,
        **_evidence_fields(fact, statement, evidence, added, better),
    }
