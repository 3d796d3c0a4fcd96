"""The checks of all invariants in the order of the report: one pure function each. I4 (erasure) has no check, because
this version has no erasure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise

from ..schemas.topics import TURNS, read_by
from .budget_check import spending_is_within_budget
from .dead_letters import dead_letters_are_the_poison_set
from .fact_projections import projections_agree
from .rows import History, ObservedRow, TurnRow
from .tenant_isolation import no_read_crosses_tenants
from .turn_effects import each_turn_has_one_effect
from .verdicts import Expected, Findings, InvariantVerdict, Violation, format_turn
from .versions import versions_are_monotonic

__all__ = ["CHECKS", "Expected", "InvariantVerdict", "Violation", "verify"]


def order_is_kept(history: History, expected: Expected) -> InvariantVerdict:
    """Check that turn numbers follow the order in which the turns of a session first arrived.

    Refused records are left out, and copies of a refused turn that arrived before its dead letter.
    """
    findings = Findings()
    dead_lettered = history.dead_lettered("observer")
    refused_at = {
        name: max(letter.timestamp for letter in dead_lettered[position])
        for position, name in history.original_turns.items()
        if position in dead_lettered
    }
    first: dict[tuple[str, str], TurnRow] = {}
    for turn in history.turns:
        if not turn.placed or turn.position in dead_lettered or turn.name not in history.observed:
            continue
        if refused_at.get(turn.name, -1) >= turn.timestamp:
            continue  # a duplicate: it came while the refused turn still counted as seen
        known = first.get(turn.name)
        if known is None or history.counts.place(turn.position) < history.counts.place(known.position):
            first[turn.name] = turn
    sessions: dict[str, list[tuple[TurnRow, ObservedRow]]] = defaultdict(list)
    for name, turn in first.items():
        observed = min(history.observed[name], key=lambda row: row.number)
        if history.is_complete(TURNS.name, turn.session_key):
            sessions[turn.session_key].append((turn, observed))
    for rows in sessions.values():
        rows.sort(key=lambda pair: history.counts.place(pair[0].position))
        for (turn_before, before), (turn, after) in pairwise(rows):
            findings.require(
                before.number < after.number,
                f"{format_turn(turn.name)} came after turn {turn_before.turn_id} and was observed before it",
                turn_before.position,
                turn.position,
                before.position,
                after.position,
            )
    _reflected_in_order(history, findings)
    return findings.verdict("I7", "order per session is kept")


def _reflected_in_order(history: History, findings: Findings) -> None:
    """Check that within an owner and session, turns were reflected in the order of their numbers.

    Dead letters that were put back are left out.
    """
    dead_lettered = history.dead_lettered("reflector")
    put_back = {
        name
        for name, rows in history.observed.items()
        if any(row.put_back or row.position in dead_lettered for row in rows)
    }
    sessions = defaultdict(list)
    for (owner_key, name), rows in history.recorded.items():
        if name in put_back:
            continue
        session_key = name[0]
        sessions[owner_key, session_key].append(rows[0])
    for recorded in sessions.values():
        recorded.sort(key=lambda row: history.counts.place(row.position))
        for before, after in pairwise(recorded):
            findings.require(
                before.number < after.number,
                f"{format_turn(after.name)} was reflected after turn {before.turn_id}, which is later",
                before.position,
                after.position,
            )


def lag_is_zero(history: History, expected: Expected) -> InvariantVerdict:
    """Check that committed offsets are at the ends of all topics that the stages read, and that no topic and no commit
    changed during the reading."""
    findings = Findings()
    for stage in sorted(expected.stages):
        for topic in read_by(stage):
            spans = history.spans.get(topic.name, ())
            committed = history.committed.get((stage, topic.name), ())
            for partition, span in enumerate(spans):
                at = committed[partition] if partition < len(committed) else None
                behind = span.end - (span.first if at is None else at)
                where = f"{topic.name}/{partition}@{span.end}"
                findings.require(behind <= 0, f"{stage} is {behind} records behind", where)
                if at is not None and at < span.first:
                    findings.found(f"retention deleted {span.first - at} records that {stage} had not read", where)
                if at is not None and behind < 0:
                    findings.found(f"{stage} has committed {-behind} records beyond the end", where)
    for lost in history.unread_deleted:
        if lost.stage in expected.stages:
            findings.note(
                f"{lost.at:%Y-%m-%d %H:%M} UTC: {lost.stage} passed over {lost.count} offsets from "
                f"{lost.topic}/{lost.partition}@{lost.first} on, which retention had deleted before it read them"
            )
    for name in history.moved:
        findings.found(f"{name} moved while it was read: run it again when no stage is at work", name)
    return findings.verdict("I8", "lag is zero")


CHECKS: tuple[Callable[[History, Expected], InvariantVerdict], ...] = (
    each_turn_has_one_effect,
    versions_are_monotonic,
    no_read_crosses_tenants,
    dead_letters_are_the_poison_set,
    spending_is_within_budget,
    order_is_kept,
    lag_is_zero,
    projections_agree,
)


def verify(history: History, expected: Expected) -> tuple[InvariantVerdict, ...]:
    """Run all checks."""
    return tuple(check(history, expected) for check in CHECKS)
