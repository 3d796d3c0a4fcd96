"""I5: the dead letters are exactly the poison set.

The poison set is the set of records that a stage must refuse. Decoding a record shows whether the record is invalid.
Only the dead letter shows whether the model refused the record, or whether the record killed a worker three times. In
these two cases the check accepts the reason of the dead letter, unless the caller gives the expected set.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..schemas.topics import DEAD_LETTER_SUFFIX
from ..streams.log.port import Position
from .rows import DeadLetterRow, History, Refusal
from .verdicts import Expected, Findings, InvariantVerdict, format_turn, positions

BY_DECISION = frozenset(("refused_by_model", "fatal"))
"""Reasons that only the dead letter shows."""
OF_DECODING = frozenset(("undecodable", "invalid", "unsupported_version"))
"""Reasons that the checker finds by decoding the record."""


def dead_letters_are_the_poison_set(history: History, expected: Expected) -> InvariantVerdict:
    findings = Findings()
    refusals = {refusal.position: refusal for refusal in history.refusals}
    by_original: dict[Position, list[DeadLetterRow]] = defaultdict(list)
    for letter in history.dead_letters:
        if letter.original is None or letter.original.topic + DEAD_LETTER_SUFFIX != letter.position.topic:
            findings.require(False, "a dead letter does not name its record", letter.position)
        else:
            by_original[letter.original].append(letter)
    for refusal in history.refusals:
        due = refusal.stage in expected.stages and history.processed(refusal.stage, refusal.position)
        if due and history.keeps_dead_letter(refusal):
            findings.require(
                refusal.position in by_original,
                f"a record that is {refusal.reason} has no dead letter",
                refusal.position,
            )
    for original, written in by_original.items():
        findings.checked += 1
        _letter(history, original, written, refusals.get(original), findings)
    if expected.refused_by_model is not None:
        _check_expected(history, expected, by_original, findings)
    return findings.verdict("I5", "dead letters are exactly the poison set")


def _letter(
    history: History, original: Position, written: Sequence[DeadLetterRow], refusal: Refusal | None, findings: Findings
) -> None:
    digest = history.originals.get(original)
    for letter in written:
        if digest is None:
            spans = history.spans.get(original.topic, ())
            gone = original.partition < len(spans) and original.offset < spans[original.partition].start
            if not gone:
                findings.found("a dead letter of a record that is not there", letter.position, original)
        elif letter.digest not in (None, digest):
            findings.found("a dead letter has other bytes than its record", letter.position, original)
        elif letter.reason in BY_DECISION:
            continue
        elif refusal is not None:
            if (letter.reason, letter.stage) != (refusal.reason, refusal.stage):
                findings.found(
                    f"refused by {letter.stage} as {letter.reason}; it is {refusal.reason} for {refusal.stage}",
                    letter.position,
                    original,
                )
        elif letter.reason in OF_DECODING:
            findings.found(
                f"it was refused as {letter.reason}, but its decoding shows no error", letter.position, original
            )


def _check_expected(
    history: History, expected: Expected, by_original: dict[Position, list[DeadLetterRow]], findings: Findings
) -> None:
    given = expected.refused_by_model or frozenset()
    refused = {
        turn: [letter for letter in by_original[original] if letter.reason in BY_DECISION]
        for original, turn in history.original_turns.items()
        if any(letter.reason in BY_DECISION for letter in by_original.get(original, ()))
    }
    for turn in sorted(given - set(refused)):
        findings.require(False, f"{format_turn(turn)} has no dead letter, though its decision fails")
    for turn, written in refused.items():
        if turn not in given:
            findings.require(
                False, f"{format_turn(turn)} is a dead letter, though nothing is wrong with it", *positions(written)
            )
