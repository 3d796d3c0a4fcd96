"""Sharing: a fact that several users of a tenant state becomes a fact of their group (docs/design/consolidation.md).

The same rules decide twice: when the change is proposed, and when the reflector of the group applies it to the current
rows. The evidence of a shared fact names turns and observations, but has no quotes, because a quote is private to its
user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...schemas.commands import Change
from ...schemas.facts import Evidence, StoredFact
from ...schemas.turns import SENSITIVITIES, Owner, up_to
from ..facts.statements import Statement
from ..policies import SharingPolicy

SHARED_MAX = 20
"""Maximum proposals of a run: the limit of one command."""
SOURCES_MAX = 64
"""Maximum source facts of one proposal. Each source fact has a different user."""


def is_shareable(fact: StoredFact, policy: SharingPolicy) -> bool:
    """Return whether a fact may be shared.

    The fact must be active, belong to a user, be said by this user, and have no end. Its subject must not be `user`,
    which is a different person for each user. The policy must allow its category and sensitivity.
    """
    return (
        fact.owner.scope == "user"
        and fact.state == "active"
        and fact.valid_to is None
        and fact.trust == "user"
        and fact.subject not in ("user", fact.owner.id)
        and fact.category in policy.categories
        and fact.sensitivity in up_to(policy.ceiling)
    )


def sharing_changes(
    mine: Sequence[StoredFact], said: Sequence[StoredFact], *, group: Owner, policy: SharingPolicy
) -> tuple[Change, ...]:
    """Return proposals for the facts of one user that enough users state.

    `mine`: the facts of the user. `said`: all facts of the tenant with the same texts, of any owner and in any state. A
    fact that the group has or once had is not proposed again.
    """
    known = {_statement(each) for each in said if each.owner == group}
    changes: list[Change] = []
    for fact in mine:
        if not is_shareable(fact, policy) or _statement(fact) in known:
            continue
        sources = _by_user(fact.subject, fact.content_hash, said, policy)
        if len(sources) < policy.users:
            continue
        known.add(_statement(fact))
        changes.append(
            Change(
                action="new",
                subject=fact.subject,
                content=fact.content,
                category=fact.category,
                confidence=min(each.confidence for each in sources.values()),
                reason=_reason(len(sources)),
                source_fact_ids=tuple(each.fact_id for each in sources.values())[:SOURCES_MAX],
            )
        )
    return tuple(changes[:SHARED_MAX])


def shared_statement(statement: Statement, named: Sequence[StoredFact], policy: SharingPolicy) -> Statement | None:
    """Return the statement with the values of its source facts (`named`). Return None when too few users state it now,
    or when the group is not the configured group.

    The statement gets the lowest confidence, the highest sensitivity and the earliest start of its sources. Its time is
    the time of the newest evidence.
    """
    sources = _by_user(statement.subject, statement.content_hash, named, policy)
    if statement.owner != policy.shared_with or len(sources) < policy.users:
        return None
    rows = list(sources.values())
    earliest = min(rows, key=lambda each: each.valid_from)
    evidence = sorted((_unquoted(each) for each in rows if each.evidence), key=lambda each: each.occurred_at)
    return replace(
        statement,
        category=rows[0].category,
        confidence=min(each.confidence for each in rows),
        occurred_at=max((each.occurred_at for each in evidence), default=statement.occurred_at),
        valid_from=earliest.valid_from,
        valid_from_told=earliest.valid_from_told,
        sensitivity=max((each.sensitivity for each in rows), key=SENSITIVITIES.index),
        trust="user",
        evidence=tuple(evidence),
        source_episode_ids=(),
    )


def _statement(fact: StoredFact) -> tuple[str, str]:
    return (fact.subject, fact.content_hash)


def _by_user(
    subject: str, content_hash: str, facts: Sequence[StoredFact], policy: SharingPolicy
) -> Mapping[str, StoredFact]:
    """Return the oldest shareable fact with this statement for each user, by user id."""
    said = [each for each in facts if _statement(each) == (subject, content_hash) and is_shareable(each, policy)]
    sources: dict[str, StoredFact] = {}
    for each in sorted(said, key=lambda fact: (fact.owner.id, fact.recorded_at, fact.fact_id)):
        sources.setdefault(each.owner.id, each)
    return sources


def _unquoted(fact: StoredFact) -> Evidence:
    """Return the newest evidence that the user gave, without its quote."""
    said = [each for each in fact.evidence if each.trust in (None, "user")] or fact.evidence
    user = fact.owner.id if fact.owner.scope == "user" else said[-1].user_id
    return said[-1].model_copy(update={"quote": "", "user_id": user})


def _reason(users: int) -> str:
    return f"promoted to shared: {users} users say it"
