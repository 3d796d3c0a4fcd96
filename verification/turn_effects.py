"""I1: each acknowledged turn has exactly one effect. Followed stage by stage: recorder, observer, reflector; commands.

A turn that is neither observed nor refused is lost, once its offset lies below the observer's committed one, unless it
waits (deferred), or was refused under another offset after this one had come.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from ..agents.common.seen_ids import SEEN_KEPT
from ..schemas.collections import TURNS as TURNS_COLLECTION
from ..schemas.topics import OBSERVATIONS, RESULTS, TURNS
from ..streams.log.port import Position
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
        _observed(history, turns, findings)  # where the working set is alone no turn has a record
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
        if turn in turns or history.whole(TURNS.name, turn[0]):
            findings.require(turn in turns, f"{format_turn(turn)} was acknowledged and is not in the log")


# ------------------------------------------------------------------------------------------------ observer
def _observed(history: History, turns: Mapping[TurnName, Sequence[TurnRow]], findings: Findings) -> None:
    lettered = history.lettered("observer")
    resent = {(row.name, row.digest) for row in history.turns if row.placed}
    waiting = 0
    for turn, rows in turns.items():
        _sent_again(history, [row for row in rows if not row.placed], resent, lettered, findings)
        placed = sorted((row for row in rows if row.placed), key=lambda row: row.position.offset)
        observed = history.observed.get(turn, ())
        _one_value(turn, observed, findings)
        if observed:
            refused = bool(placed) and all(row.position in lettered for row in placed)
            findings.require(
                not (refused and history.whole(TURNS.name, turn[0])),
                f"{format_turn(turn)} was observed, and each of its records is a dead letter too",
                *positions(observed),
                *positions(placed),
            )
            continue
        last_letter = max(
            (letter.timestamp for row in placed for letter in lettered.get(row.position, ())), default=None
        )
        if not placed or not history.effect_kept(placed, OBSERVATIONS.name, key=placed[0].owner_key):
            continue
        for row in placed:
            if not history.processed("observer", row.position) or row.position in lettered:
                continue
            if row.position in history.waiting or any(each.position in history.waiting for each in placed):
                waiting += 1
                continue
            if last_letter is not None and last_letter >= row.timestamp:
                continue  # it came while the one that was refused was still counted as seen
            findings.require(
                False, f"{format_turn(turn)} is lost: neither observed nor a dead letter", *positions(placed)
            )
            break
        else:
            findings.checked += 1
    for turn, observed in history.observed.items():
        if turn not in turns and history.whole(TURNS.name, turn[0]):
            findings.require(False, f"{format_turn(turn)} was observed and never produced", *positions(observed))
    if waiting:
        findings.note(f"{waiting} turns wait to be observed: they have rows in the observer's table")


def _sent_again(
    history: History,
    misplaced: Sequence[TurnRow],
    resent: Collection[tuple[TurnName, str]],
    lettered: Collection[Position],
    findings: Findings,
) -> None:
    """What lay on another partition than its key's lies on the right one too, with its own time."""
    for row in misplaced:
        done = history.processed("observer", row.position) and row.position not in lettered
        if done and history.letter_kept(row) and history.kept_since(TURNS.name, row.timestamp, key=row.session_key):
            sent = (row.name, row.digest) in resent
            findings.require(sent, f"{format_turn(row.name)} lay wrong and was not sent again", row.position)


def _one_value(turn: TurnName, observed: Sequence[ObservedRow], findings: Findings) -> None:
    """The same id may be observed again once a session has forgotten it, which is a thousand turns later."""
    rows = sorted(observed, key=lambda row: row.turn_number)
    for before, after in pairwise(rows):
        findings.require(
            after.turn_number - before.turn_number >= SEEN_KEPT,
            f"{format_turn(turn)} was observed twice, with different values",
            before.position,
            after.position,
        )


# ------------------------------------------------------------------------------------------------ recorder
def _verbatim(history: History, turns: Mapping[TurnName, Sequence[TurnRow]], findings: Findings) -> None:
    lettered = history.lettered("recorder")
    stored: dict[TurnName, list[PointRow]] = defaultdict(list)
    for point in history.points.get(TURNS_COLLECTION, ()):
        stored[point.session_key, point.turn_id].append(point)
    for turn, rows in turns.items():
        spoken = sorted(
            (row for row in rows if row.placed and row.messages and row.position not in lettered),
            key=lambda row: row.position.offset,
        )
        if not spoken or not history.processed("recorder", spoken[0].position):
            continue
        points = stored.get(turn, [])
        first = next((point.turn_sha256 for point in points if point.index == 0), None)
        known = spoken[:1] if history.whole(TURNS.name, turn[0]) else spoken
        kept = next((row for row in known if row.digest == first), None)
        where: list[Position | str] = [*positions(known), *(str(point) for point in points)]
        if not points:
            findings.require(False, f"{format_turn(turn)} is not in the store word by word", *where)
        elif kept is None:
            findings.require(False, f"{format_turn(turn)}: another turn than the first of its id is kept", *where)
        else:
            said = {(point.index, point.text) for point in points}
            findings.require(
                said == set(enumerate(kept.messages)),
                f"{format_turn(turn)}: its messages are not kept as they came",
                *where,
            )
    for turn, points in stored.items():
        if turn not in turns and history.whole(TURNS.name, turn[0]):
            findings.require(False, f"{format_turn(turn)} is in the store and was never produced", *map(str, points))


# ------------------------------------------------------------------------------------------------ commands
def _answered(history: History, expected: Expected, findings: Findings) -> None:
    """One result a command, however often it comes."""
    commands: dict[tuple[str, str], list[CommandRow]] = defaultdict(list)
    for row in history.commands:
        commands[row.key, row.command_id].append(row)
    for (key, command_id), rows in commands.items():
        stage = rows[0].stage
        if stage not in expected.stages:
            continue
        lettered = history.lettered(stage)
        due = [row for row in rows if history.processed(stage, row.position) and row.position not in lettered]
        if not history.effect_kept(rows, RESULTS.name, key=None):
            due = []
        results = history.results.get((key, command_id), ())
        if due:
            findings.require(bool(results), f"command {command_id} of {key} has no result", *positions(due))
        if len(results) > 1:
            findings.require(False, f"command {command_id} of {key} has two different results", *positions(results))
