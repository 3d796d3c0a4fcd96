"""I2: the versions of a fact are 1, 2, 3 …, and each version has one value. Within each epoch, the turn numbers of a
session are 1, 2, 3 …, and each number has one turn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise

from ..schemas import ids
from ..schemas.topics import FACTS_UPDATED, OBSERVATIONS
from ..schemas.turn_number import TurnNumber
from .rows import EventRow, History, ObservedRow
from .verdicts import Expected, Findings, InvariantVerdict, positions


def versions_are_monotonic(history: History, expected: Expected) -> InvariantVerdict:
    findings = Findings()
    for where, why in history.unreadable.items():
        findings.require(False, f"cannot be read: {why}", where)
    _events(history, findings)
    _turn_numbers(history, findings)
    return findings.verdict("I2", "versions are monotonic per fact and session")


def _events(history: History, findings: Findings) -> None:
    per_fact: dict[str, list[EventRow]] = defaultdict(list)
    for event_id, rows in history.events.items():
        findings.require(len(rows) == 1, f"event {event_id} came with different bytes", *positions(rows))
        for row in rows:
            derived = ids.event_id(row.fact.fact_id, row.fact.version)
            if not row.event_id == row.ce_id == derived:
                findings.found(f"event {event_id} does not have the id of its fact and version", row.position)
        per_fact[rows[0].fact.fact_id].append(rows[0])
    for fact_id, events in per_fact.items():
        # all events of a fact are on one partition, so their offsets give the order in which they first came
        events.sort(key=lambda row: (row.position.partition, row.position.offset))
        _one_fact(
            fact_id, events, whole=history.is_complete(FACTS_UPDATED.name, events[0].owner_key), findings=findings
        )


def _one_fact(fact_id: str, events: list[EventRow], *, whole: bool, findings: Findings) -> None:
    known: EventRow | None = None
    for row in events:
        findings.checked += 1
        version = row.fact.version
        if known is None:
            if whole and version != 1:
                findings.found(
                    f"fact {fact_id} begins at version {version}: the earlier versions are missing", row.position
                )
        elif version != known.fact.version + 1:
            findings.found(
                f"fact {fact_id}: version {version} follows version {known.fact.version}",
                known.position,
                row.position,
            )
        elif row.before is not None and row.before.fields != known.fact.fields:
            findings.found(
                f"fact {fact_id}: version {version} does not begin where version {known.fact.version} ended",
                known.position,
                row.position,
            )
        has_begun = row.before is not None or version == 1 or row.erases
        if not has_begun or (row.before is not None and row.before.version != version - 1):
            findings.found(f"fact {fact_id}: `before` of version {version} is not version {version - 1}", row.position)
        known = row


def _turn_numbers(history: History, findings: Findings) -> None:
    """Check that the numbers of a session are complete and unique, and rise within a partition.

    The turns of a session may have several owners, and may therefore be on several partitions.
    """
    sessions: dict[str, list[ObservedRow]] = defaultdict(list)
    for rows in history.observed.values():
        for row in rows:
            sessions[row.session_key].append(row)
    for session_key, rows in sessions.items():
        findings.checked += 1
        by_number: dict[TurnNumber, list[ObservedRow]] = defaultdict(list)
        for row in rows:
            by_number[row.number].append(row)
        for number, same in by_number.items():
            if len({row.turn_id for row in same}) > 1:
                findings.found(f"session {session_key}: several turns have the number {number}", *positions(same))
        if history.all_complete(OBSERVATIONS.name):
            for _, numbers in groupby(sorted(by_number), key=lambda number: number.epoch):
                _complete(session_key, list(numbers), by_number, findings)
        _rising(session_key, rows, findings)


def _complete(
    session_key: str,
    numbers: Sequence[TurnNumber],
    by_number: Mapping[TurnNumber, Sequence[ObservedRow]],
    findings: Findings,
) -> None:
    """Check that the numbers of an epoch count from 1. `numbers`: the numbers in rising order."""
    lacking = numbers[-1].n - len(numbers)
    if lacking:
        place, after = next((n, number) for n, number in enumerate(numbers, start=1) if number.n != n)
        first = after._replace(n=place)
        findings.found(
            f"session {session_key}: {lacking} turn numbers are missing, the first is {first}",
            *positions(by_number[after]),
        )


def _rising(session_key: str, rows: list[ObservedRow], findings: Findings) -> None:
    rows = [row for row in rows if not row.put_back]
    rows.sort(key=lambda row: (row.position.partition, row.position.offset))
    for before, after in pairwise(rows):
        if before.position.partition == after.position.partition and after.number < before.number:
            findings.found(
                f"session {session_key}: turn number {after.number} first came after {before.number}",
                before.position,
                after.position,
            )
