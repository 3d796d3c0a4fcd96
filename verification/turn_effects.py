"""I1: each acknowledged turn has exactly one effect in every stage; each command has one result.

A turn that was neither observed nor refused is lost when its offset is below the committed offset of the observer.
There are two exceptions: the turn waits (deferred), or the record is a duplicate of a record that was refused after the
duplicate arrived.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from ..agents.common.seen_ids import SEEN_KEPT
from ..schemas.collections import TURNS as TURNS_COLLECTION
from ..schemas.command_kinds import END_SESSION, TRIM_SESSION
from ..schemas.periods import Period
from ..schemas.topics import OBSERVATIONS, RESULTS, TURNS
from ..streams.engine.parking import RETRY
from ..streams.log.port import Position, Record
from .reflector_effects import observations_are_reflected
from .rows import CommandRow, History, ObservedRow, PointRow, TurnName, TurnRow
from .verdicts import Expected, Findings, InvariantVerdict, format_turn, positions


def each_turn_has_one_effect(history: History, expected: Expected) -> InvariantVerdict:
    findings = Findings()
    turns: dict[TurnName, list[TurnRow]] = defaultdict(list)
    for row in history.turns:
        turns[row.name].append(row)
    _acknowledged(history, expected, turns, findings)
    if "observer" in expected.stages and not expected.policy.tiers.working_only:
        _observed(history, turns, findings)  # a working-only deployment writes no record for a turn
    if "recorder" in expected.stages:
        _verbatim(history, turns, findings)
    if "reflector" in expected.stages:
        observations_are_reflected(history, expected, findings)
    _answered(history, expected, findings)
    return findings.verdict("I1", "each acknowledged turn has exactly one effect")


def _acknowledged(
    history: History, expected: Expected, turns: Mapping[TurnName, Sequence[TurnRow]], findings: Findings
) -> None:
    for turn in sorted(expected.acknowledged):
        if turn in turns or history.is_complete(TURNS.name, turn[0]):
            findings.require(turn in turns, f"{format_turn(turn)} was acknowledged and is not in the log")


# ------------------------------------------------------------------------------------------------ observer
def _observed(history: History, turns: Mapping[TurnName, Sequence[TurnRow]], findings: Findings) -> None:
    dead_lettered = history.dead_lettered("observer")
    retracted = history.retracted_turns()
    resent = {(row.name, row.digest) for row in history.turns if row.placed}
    waiting = 0
    for turn, rows in turns.items():
        _sent_again(history, [row for row in rows if not row.placed], resent, dead_lettered, findings)
        placed = sorted((row for row in rows if row.placed), key=lambda row: row.position.offset)
        observed = history.observed.get(turn, ())
        _one_value(turn, observed, findings)
        if observed:
            refused = bool(placed) and all(row.position in dead_lettered for row in placed)
            findings.require(
                not (refused and history.is_complete(TURNS.name, turn[0])),
                f"{format_turn(turn)} was observed, and each of its records is a dead letter too",
                *positions(observed),
                *positions(placed),
            )
            continue
        last_letter = max(
            (letter.timestamp for row in placed for letter in dead_lettered.get(row.position, ())), default=None
        )
        if not placed or not history.keeps_effect(placed, OBSERVATIONS.name, key=placed[0].owner_key):
            continue
        if turn in retracted:
            continue
        for row in placed:
            if not history.processed("observer", row.position) or row.position in dead_lettered:
                continue
            if row.position in history.waiting or any(each.position in history.waiting for each in placed):
                waiting += 1
                continue
            if last_letter is not None and last_letter >= row.timestamp:
                continue  # a duplicate: it came while the refused turn still counted as seen
            findings.require(
                False, f"{format_turn(turn)} is lost: neither observed nor a dead letter", *positions(placed)
            )
            break
        else:
            findings.checked += 1
    for turn, observed in history.observed.items():
        if turn not in turns and history.is_complete(TURNS.name, turn[0]):
            findings.require(False, f"{format_turn(turn)} was observed and never produced", *positions(observed))
    if waiting:
        findings.note(f"{waiting} turns wait to be observed: they have rows in the observer's table")


def _sent_again(
    history: History,
    misplaced: Sequence[TurnRow],
    resent: Collection[tuple[TurnName, str]],
    dead_lettered: Collection[Position],
    findings: Findings,
) -> None:
    """Check that each misplaced turn was sent again, unchanged, to the partition of its key."""
    for row in misplaced:
        done = history.processed("observer", row.position) and row.position not in dead_lettered
        if (
            done
            and history.keeps_dead_letter(row)
            and history.keeps_since(TURNS.name, row.timestamp, key=row.session_key)
        ):
            sent = (row.name, row.digest) in resent
            findings.require(
                sent, f"{format_turn(row.name)} was on the wrong partition and was not sent again", row.position
            )


def _one_value(turn: TurnName, observed: Sequence[ObservedRow], findings: Findings) -> None:
    """Check that a turn was observed once. A session forgets the id of a turn after `SEEN_KEPT` further turns, and when
    the row of the session is deleted. After that, a turn with the same id may be observed again."""
    rows = sorted(observed, key=lambda row: row.number)
    for before, after in pairwise(rows):
        findings.require(
            after.number.epoch > before.number.epoch or after.number.n - before.number.n >= SEEN_KEPT,
            f"{format_turn(turn)} was observed twice, with different values",
            before.position,
            after.position,
        )


# ------------------------------------------------------------------------------------------------ recorder
def _verbatim(history: History, turns: Mapping[TurnName, Sequence[TurnRow]], findings: Findings) -> None:
    dead_lettered = history.dead_lettered("recorder")
    retracted = history.retracted_turns()
    stored: dict[TurnName, list[PointRow]] = defaultdict(list)
    for point in history.points.get(TURNS_COLLECTION, ()):
        stored[point.session_key, point.turn_id].append(point)
    for turn, rows in turns.items():
        with_messages = sorted(
            (row for row in rows if row.placed and row.messages and row.position not in dead_lettered),
            key=lambda row: row.position.offset,
        )
        if not with_messages or not history.processed("recorder", with_messages[0].position):
            continue
        points = stored.get(turn, [])
        if not points and (turn in retracted or _may_be_dropped(with_messages[0], history)):
            continue
        first = next((point.turn_sha256 for point in points if point.index == 0), None)
        known = with_messages[:1] if history.is_complete(TURNS.name, turn[0]) else with_messages
        kept = next((texts for row in known if (texts := row.stored_as(first)) is not None), None)
        where: list[Position | str] = [*positions(known), *(str(point) for point in points)]
        if not points:
            findings.require(False, f"{format_turn(turn)} has no verbatim messages in the store", *where)
        elif kept is None:
            findings.require(False, f"{format_turn(turn)}: the store does not have the first turn of this id", *where)
        else:
            said = {(point.index, point.text) for point in points}
            findings.require(
                said == set(enumerate(kept)),
                f"{format_turn(turn)}: its stored messages differ from the turn",
                *where,
            )
    for turn, points in stored.items():
        if turn not in turns and history.is_complete(TURNS.name, turn[0]):
            findings.require(False, f"{format_turn(turn)} is in the store and was never produced", *map(str, points))


def _may_be_dropped(row: TurnRow, history: History) -> bool:
    """Return whether the retention of the session log may have dropped the turn."""
    written = Record(row.position, None, None, timestamp=row.timestamp).written_at
    over = history.over_since
    return over is not None and written is not None and Period.of(written).ends <= over


# ------------------------------------------------------------------------------------------------ commands
def _answered(history: History, expected: Expected, findings: Findings) -> None:
    """Check that each command has exactly one result, even when the command was sent several times. A result that
    refuses a repetition does not count. Commands that a worker sends itself (outcome.retry, sessions.end,
    sessions.trim) have no result."""
    commands: dict[tuple[str, str], list[CommandRow]] = defaultdict(list)
    for row in history.commands:
        if row.kind not in (RETRY, END_SESSION, TRIM_SESSION):
            commands[row.key, row.command_id].append(row)
    for (key, command_id), rows in commands.items():
        stage = rows[0].stage
        if stage not in expected.stages:
            continue
        dead_lettered = history.dead_lettered(stage)
        due = [row for row in rows if history.processed(stage, row.position) and row.position not in dead_lettered]
        if not history.keeps_effect(rows, RESULTS.name, key=None):
            due = []
        results = history.results.get((key, command_id), ())
        if due:
            findings.require(bool(results), f"command {command_id} of {key} has no result", *positions(due))
        first = [row for row in results if not row.of_repetition]
        if len(first) > 1:
            findings.require(False, f"command {command_id} of {key} has two different results", *positions(first))
