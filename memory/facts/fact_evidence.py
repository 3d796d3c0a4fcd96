"""The evidence of a fact: its source turns, their trust, and the turns that count as reinforcement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from ...schemas.facts import EVIDENCE_KEPT, Evidence, StoredFact, Trust
from .statements import Statement
from .trust_order import TRUST, Trusted

Merged = tuple[tuple[Evidence, ...], int, int]
"""The merged evidence, the number of new user turns (they reinforce), and the number of new or more trusted turns."""


def newest_evidence_time(fact: StoredFact, said: Trusted) -> datetime | None:
    """Return the time of the newest evidence that is not less trusted than `said`; None without such evidence."""
    least = TRUST.index(said.trust)
    return max(
        (each.occurred_at for each, trust in _trusted_evidence(fact) if TRUST.index(trust) >= least), default=None
    )


def count_reinforcements(fact: StoredFact, added: int) -> int:
    """Return the number of distinct user turns minus one, never below 0. The count keeps growing when the row no longer
    keeps all evidence."""
    known = fact.reinforcement_count > 0 or any(trust == "user" for _, trust in _trusted_evidence(fact))
    return fact.reinforcement_count + added if known else max(0, added - 1)


def adds_no_evidence(fact: StoredFact, statement: Statement) -> bool:
    """Return whether the row's evidence already contains every turn of the statement's evidence."""
    turns = {(each.session_id, each.turn_id) for each in fact.evidence}
    return bool(statement.evidence) and all((each.session_id, each.turn_id) in turns for each in statement.evidence)


def _trusted_evidence(fact: StoredFact) -> Iterable[tuple[Evidence, Trust]]:
    """Return the row's evidence with its trust. Evidence from earlier versions, without a trust, has the fact's
    trust."""
    return ((each, each.trust or fact.trust) for each in fact.evidence)


def _with_trust(evidence: Evidence, whose: Trusted) -> Evidence:
    return evidence if evidence.trust else evidence.model_copy(update={"trust": whose.trust})


def first_evidence(evidence: Sequence[Evidence], whose: Trusted) -> Merged:
    """Return the evidence of a new row. Entries without a trust get the trust of `whose`, the statement."""
    return _merged((), [_with_trust(each, whose) for each in evidence])


def add_evidence(fact: StoredFact, new: Sequence[Evidence], whose: Trusted) -> Merged:
    """Merge new evidence into a row's evidence. New entries without a trust get the trust of `whose`."""
    return _merged([_with_trust(each, fact) for each in fact.evidence], [_with_trust(each, whose) for each in new])


def _merged(kept: Sequence[Evidence], new: Sequence[Evidence]) -> Merged:
    """Keep the most trusted entry for each (session, turn), oldest first."""
    entries = {(each.session_id, each.turn_id): each for each in kept}
    added = better = 0
    for each in new:
        turn = (each.session_id, each.turn_id)
        known = entries.get(turn)
        if known is not None and _rank(known) >= _rank(each):
            continue
        entries[turn] = each
        better += 1
        added += each.trust == "user"
    return _bounded(sorted(entries.values(), key=lambda each: each.occurred_at)), added, better


def _bounded(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Keep the first 32 and the last 32 entries. Entries not from a user are removed first, so that they never displace
    a user's words."""
    over = len(evidence) - 2 * EVIDENCE_KEPT
    if over <= 0:
        return tuple(evidence)
    echoes = [place for place, each in enumerate(evidence) if each.trust != "user"]
    start = max(0, len(echoes) - over) // 2
    gone = set(echoes[start : start + over])
    rest = tuple(each for place, each in enumerate(evidence) if place not in gone)
    return rest if len(rest) <= 2 * EVIDENCE_KEPT else rest[:EVIDENCE_KEPT] + rest[-EVIDENCE_KEPT:]


def _rank(evidence: Evidence) -> int:
    return TRUST.index(evidence.trust or "tool")
