"""Erasure of a user or a session from facts: the erased form of a fact, and a fact without the erased evidence.

A fact is erased in two outcomes. The first one writes the erased form over the row, and publishes its event and its
state. The second one deletes the row, and sends the tombstone. So the check at the start of a worker distinguishes an
erased fact from a lost one after a crash between deletion and tombstone (agents/reflector/fact_state_topic.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...schemas import ids
from ...schemas.facts import APPLIED_KEPT, Decision, Evidence, Fact, StoredFact
from .transitions import Stamp, Transition

ERASED_TEXT: Final = "[erased]"
"""Text of a fact in erased form."""
ERASURE: Final = "erase"
"""Stage of the decisions of an erasure."""
_DECISION: Final = Decision(stage=ERASURE)


def erase_fact(fact: StoredFact, stamp: Stamp) -> Transition:
    """Return the change to the erased form of a fact: its ids and its version, without text. The state is `forgotten`,
    so that a reader that does not know the action drops the fact, too."""
    erased = StoredFact(
        fact_id=fact.fact_id,
        version=fact.version + 1,
        tenant_id=fact.tenant_id,
        owner=fact.owner,
        owner_key=fact.owner_key,
        subject="user",
        content=ERASED_TEXT,
        category="knowledge",
        confidence=0.0,
        state="forgotten",
        valid_from=stamp.now,
        recorded_at=stamp.now,
        embedder=fact.embedder,
        content_hash=ids.content_hash(ERASED_TEXT),
        applied=(*fact.applied, stamp.cause)[-APPLIED_KEPT:],
    )
    return Transition("erased", erased, None, "", _DECISION)


def is_erased_form(fact: Fact) -> bool:
    """Return whether a fact has the erased form. Such a row is about to be deleted."""
    return (fact.state, fact.content, fact.evidence) == ("forgotten", ERASED_TEXT, ())


def without_evidence(
    fact: StoredFact,
    is_erased: Callable[[Evidence], bool],
    episode_ids: frozenset[str],
    stamp: Stamp,
    *,
    reason: str = "evidence was erased",
    decision: Decision = _DECISION,
) -> Transition | None:
    """Return a fact without this evidence, or None if it has no other evidence.

    `episode_ids`: deleted episodes, which the fact must not name any more. The event has no `before`, because the
    earlier version has the quotes.
    """
    kept = tuple(each for each in fact.evidence if not is_erased(each))
    if not kept:
        return None
    users = sum((each.trust or fact.trust) == "user" for each in kept)
    changed = fact.model_copy(
        update={
            "version": fact.version + 1,
            "evidence": kept,
            "source_episode_ids": tuple(each for each in fact.source_episode_ids if each not in episode_ids),
            "reinforcement_count": min(fact.reinforcement_count, max(0, users - 1)),
            "applied": (*fact.applied, stamp.cause)[-APPLIED_KEPT:],
        }
    )
    return Transition("updated", changed, None, reason, decision)
