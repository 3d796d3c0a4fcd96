"""The check that three places agree about each fact: its newest version on memory.facts.updated, its last state on
memory.facts, and its point in Qdrant. No superseded fact may be active in any of the three places."""

from __future__ import annotations

from collections import defaultdict

from ..schemas import ids
from ..schemas.collections import FACTS as FACTS_COLLECTION
from ..schemas.topics import FACTS, FACTS_UPDATED
from .decoding import COMPARED
from .rows import EventRow, FactView, History, StateRow, format_position
from .verdicts import Expected, Findings, InvariantVerdict

CLOSED = frozenset(("superseded", "invalidated", "expired", "forgotten", "quarantined"))


def projections_agree(history: History, expected: Expected) -> InvariantVerdict:
    findings = Findings()
    if "reflector" not in expected.stages:
        return findings.verdict("facts", "the log's facts and the store's are the same")
    folded: dict[str, EventRow] = {}
    for rows in history.events.values():
        known = folded.get(rows[0].fact.fact_id)
        if known is None or known.fact.version < rows[0].fact.version:
            folded[rows[0].fact.fact_id] = rows[0]
    states: dict[str, StateRow] = {}
    erased: set[str] = set()
    for state in history.states.values():
        if state.fact is None:
            erased.add(ids.split(state.key)[-1])
        else:
            states[state.fact.fact_id] = state
            findings.require(
                state.fact.version == state.highest,
                f"the last state of fact {state.fact.fact_id} is version {state.fact.version}, not {state.highest}",
                state.position,
            )
    for fact_id in sorted({*folded, *states, *history.stored_facts}):
        if fact_id in erased:
            findings.require(
                fact_id not in history.stored_facts, f"fact {fact_id} is erased and still stored", _point(fact_id)
            )
            continue
        _one(history, fact_id, folded.get(fact_id), states.get(fact_id), findings)
    current = {fact_id: event.fact for fact_id, event in folded.items()}
    current |= {fact_id: state.fact for fact_id, state in states.items() if state.fact is not None}
    current |= history.stored_facts
    _links(current, erased, findings)
    _doubles(current, findings)
    return findings.verdict("facts", "the log's facts and the store's are the same")


def _one(history: History, fact_id: str, event: EventRow | None, state: StateRow | None, findings: Findings) -> None:
    """Compare the three views of one fact."""
    stored = history.stored_facts.get(fact_id)
    views = (event.fact if event else None, state.fact if state else None, stored)
    owner_key = next(view.owner_key for view in views if view is not None)
    where = [format_position(event.position)] if event else []
    where += [format_position(state.position)] if state else []
    where += [_point(fact_id)] if stored else []
    findings.checked += 1
    if event is None and history.is_complete(FACTS_UPDATED.name, owner_key):
        findings.found(f"fact {fact_id} has no event on {FACTS_UPDATED.name}", *where)
    if state is None:
        findings.found(f"fact {fact_id} is not on {FACTS.name}", *where)
    if stored is None:
        findings.found(f"fact {fact_id} is not in the store", *where)
    if event is not None and stored is not None:
        _same(fact_id, FACTS_UPDATED.name, event.fact, stored, where, findings)
    if state is not None and state.fact is not None and stored is not None:
        _same(fact_id, FACTS.name, state.fact, stored, where, findings)


def _same(fact_id: str, topic: str, log: FactView, stored: FactView, where: list[str], findings: Findings) -> None:
    if log.fields == stored.fields:
        return
    if stored.state == "active" and log.state in CLOSED:
        findings.found(f"fact {fact_id} is {log.state} on {topic} and still active in the store", *where)
        return
    names = [name for name, a, b in zip(COMPARED, log.fields, stored.fields, strict=True) if a != b]
    findings.found(f"fact {fact_id} differs between {topic} and the store: {', '.join(names)}", *where)


def _links(current: dict[str, FactView], erased: set[str], findings: Findings) -> None:
    """Check that a fact's links name existing facts of its owner, and that no replaced fact is active."""
    for fact in current.values():
        for name, other_id in (("superseded_by", fact.superseded_by), ("supersedes", fact.supersedes)):
            if other_id is None or other_id in erased:
                continue
            findings.checked += 1
            other = current.get(other_id)
            where = (_point(fact.fact_id), _point(other_id))
            if other is None or other.owner_key != fact.owner_key:
                findings.found(f"`{name}` of fact {fact.fact_id} names no fact of its owner", *where)
            elif name == "supersedes" and other.state == "active":
                findings.found(f"fact {other_id} was replaced by {fact.fact_id} and is still active", *where)
        if fact.superseded_by is not None and fact.state == "active":
            findings.found(f"fact {fact.fact_id} has a successor and is still active", _point(fact.fact_id))


def _doubles(current: dict[str, FactView], findings: Findings) -> None:
    """Find active facts of one owner and subject with the same text. Such facts come from two writers that did not see
    each other's writes."""
    said: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for fact in current.values():
        if fact.state == "active":
            said[fact.owner_key, fact.subject, fact.content_hash].append(fact.fact_id)
    for same in said.values():
        if len(same) > 1:
            findings.found("several active facts of one owner say the same", *map(_point, same))


def _point(fact_id: str) -> str:
    return f"{FACTS_COLLECTION}/{fact_id}"
