"""Evidence of facts: merge evidence entries, and count the user turns that reinforce a fact."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from ...schemas.facts import EVIDENCE_KEPT, Evidence, StoredFact, Trust
from .statements import Statement
from .trust_order import TRUST, Trusted

Merged = tuple[tuple[Evidence, ...], int, int]
"""Three values: the merged evidence; the number of added user entries, which reinforce the fact; the number of all
added entries. An entry is added when its turn is new, or when it is more trusted than the known entry of its turn."""


def newest_evidence_time(fact: StoredFact, said: Trusted) -> datetime | None:
    """Return the time of the newest evidence that is at least as trusted as `said`; None without such evidence."""
    least = TRUST.index(said.trust)
    return max(
        (each.occurred_at for each, trust in _trusted_evidence(fact) if TRUST.index(trust) >= least), default=None
    )


def count_reinforcements(fact: StoredFact, added: int) -> int:
    """Return the row's reinforcement count after `added` user turns: the number of its user turns minus one, at least
    0.

    The count grows from the stored count, because the row may have dropped old evidence.
    """
    known = fact.reinforcement_count > 0 or any(trust == "user" for _, trust in _trusted_evidence(fact))
    return fact.reinforcement_count + added if known else max(0, added - 1)


def adds_no_evidence(fact: StoredFact, statement: Statement) -> bool:
    """Return whether the statement has evidence and the row's evidence already contains each of its turns."""
    turns = set(map(_turn, fact.evidence))
    return bool(statement.evidence) and all(_turn(each) in turns for each in statement.evidence)


def _turn(evidence: Evidence) -> tuple[str | None, str, str]:
    """Return the identity of the evidence's turn. Two users of a shared memory may have the same ids of session and
    turn."""
    return evidence.user_id, evidence.session_id, evidence.turn_id


def _trusted_evidence(fact: StoredFact) -> Iterable[tuple[Evidence, Trust]]:
    """Return each entry of the row's evidence with its trust. Old entries have no trust; they get the fact's trust."""
    return ((each, each.trust or fact.trust) for each in fact.evidence)


def _with_trust(evidence: Evidence, whose: Trusted) -> Evidence:
    return evidence if evidence.trust else evidence.model_copy(update={"trust": whose.trust})


def first_evidence(evidence: Sequence[Evidence], whose: Trusted) -> Merged:
    """Return the evidence of a new row. `whose` is the statement; entries without a trust get its trust."""
    return _merged((), [_with_trust(each, whose) for each in evidence])


def add_evidence(fact: StoredFact, new: Sequence[Evidence], whose: Trusted) -> Merged:
    """Merge new evidence into a row's evidence. `whose` is the source of the new entries; entries without a trust get
    its trust."""
    return _merged([_with_trust(each, fact) for each in fact.evidence], [_with_trust(each, whose) for each in new])


def _merged(kept: Sequence[Evidence], new: Sequence[Evidence]) -> Merged:
    """Merge the entries, oldest first. For each turn, keep only the most trusted entry."""
    entries = {_turn(each): each for each in kept}
    added = better = 0
    for each in new:
        turn = _turn(each)
        known = entries.get(turn)
        if known is not None and _rank(known) >= _rank(each):
            continue
        entries[turn] = each
        better += 1
        added += each.trust == "user"
    return _bounded(sorted(entries.values(), key=lambda each: each.occurred_at)), added, better


def _bounded(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return at most 2 * EVIDENCE_KEPT entries.

    Entries that are not from a user are removed first, from the middle. If there are still too many entries, the first
    EVIDENCE_KEPT and the last EVIDENCE_KEPT remain.
    """
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
