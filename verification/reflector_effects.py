"""I1 for the reflector: every observed turn was reflected once, with all of its effects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..schemas import ids
from ..schemas.collections import EPISODES
from ..schemas.topics import COMMANDS, EPISODES_RECORDED, FACTS_UPDATED
from .rows import EventRow, History, ObservedRow, RecordedRow, TurnName, evidence_subject
from .verdicts import Expected, Findings, format_turn, positions

OPENING = frozenset(("reinforced", "updated", "merged", "approved", "promoted", "quarantined"))
"""Actions that apply an observation to an existing fact."""


class _Changes:
    """Events of facts, by the observation that caused them.

    Events that a command caused are left out: the observations of these events were reflected long before.
    """

    def __init__(self, history: History) -> None:
        self._events: dict[tuple[str, str], list[EventRow]] = defaultdict(list)
        self._evidence_keys = history.evidence_keys
        for event in (each for rows in history.events.values() for each in rows):
            for observation_id in event.observation_ids if event.command_id is None else ():
                self._events[event.owner_key, observation_id].append(event)

    def of(self, row: ObservedRow, observation_id: str) -> Sequence[EventRow]:
        return self._events.get((row.owner_key, observation_id), ())

    def has_evidence(self, row: ObservedRow, subject: str) -> bool:
        """Return whether a fact of this subject has evidence from this turn. The check then accepts an observation that
        made no fact: when a turn states something twice in different words, the second statement changes nothing. The
        rows contain only hashes, so the check cannot compare the words."""
        session_id = ids.split(row.session_key)[2]
        return (row.owner_key, session_id, row.turn_id, evidence_subject(subject)) in self._evidence_keys

    def of_turn(self, row: ObservedRow) -> list[EventRow]:
        return [event for each in row.observations for event in self.of(row, each.observation_id)]


def observations_are_reflected(history: History, expected: Expected, findings: Findings) -> None:
    """Check the records, events and episodes of every acknowledged observed turn."""
    dead_lettered = history.dead_lettered("reflector")
    changes = _Changes(history)
    retracted = history.retracted_turns()
    stored = _Stored(history, expected)
    for turn, rows in history.observed.items():
        row = rows[0]
        recorded = history.recorded.get((row.owner_key, turn), [])
        refused = row.position in dead_lettered and not recorded  # a dead letter that was put back has effects
        if not history.processed("reflector", row.position) or refused or turn in retracted:
            continue
        if history.keeps_effect([row], EPISODES_RECORDED.name, key=row.owner_key):
            findings.require(bool(recorded), f"{format_turn(turn)} was observed and not reflected", row.position)
        if recorded:
            _recorded(history, turn, row, recorded, changes, findings)
            stored.look_for(turn, row, findings)
            _facts_are_made(history, row, changes, findings)
    stored.look_for_strays(history, findings)


def _recorded(
    history: History,
    turn: TurnName,
    row: ObservedRow,
    recorded: list[RecordedRow],
    changes: _Changes,
    findings: Findings,
) -> None:
    """Check that the turn's record names the episodes of its observations and the facts that its events changed."""
    findings.require(
        len(recorded) == 1, f"{format_turn(turn)} was reflected twice, with different values", *positions(recorded)
    )
    # earlier versions made episodes of instructions, too
    instructions = {ids.episode_id(each.observation_id) for each in row.observations if each.is_instruction}
    findings.require(
        set(recorded[0].episode_ids) - instructions == _episodes(row),
        f"{format_turn(turn)}: its episodes do not match its observations",
        row.position,
        recorded[0].position,
    )
    if history.keeps_effect([row], FACTS_UPDATED.name, key=row.owner_key):
        events = changes.of_turn(row)
        findings.require(
            set(recorded[0].fact_ids) == {event.fact.fact_id for event in events},
            f"{format_turn(turn)}: its record names other facts than its events",
            recorded[0].position,
            *positions(events),
        )


def _facts_are_made(history: History, row: ObservedRow, changes: _Changes, findings: Findings) -> None:
    """Check that each observation that must lead to a fact made a fact, or was applied to an existing fact."""
    if not history.keeps_effect([row], FACTS_UPDATED.name, key=row.owner_key):
        return
    for each in row.observations:
        if not each.semantic:
            continue
        own = ids.fact_id(row.owner_key, each.observation_id)
        events = changes.of(row, each.observation_id)
        taken_up = any(event.fact.fact_id == own or event.action in OPENING for event in events)
        findings.require(
            taken_up or changes.has_evidence(row, each.subject),
            f"{format_turn(row.name)}: an observation made no fact",
            row.position,
            f"facts/{own}",
        )


class _Stored:
    """The episodes in the store. When an owner has more episodes than the policy keeps, consolidated episodes may be
    deleted."""

    def __init__(self, history: History, expected: Expected) -> None:
        self._ids = {point.id for point in history.points.get(EPISODES, ())}
        self._kept = expected.policy.routing.episodes_kept
        self._made: dict[str, int] = defaultdict(int)
        for (owner_key, _), rows in history.recorded.items():
            self._made[owner_key] += len(rows[0].episode_ids)
        self._recorded = {each for rows in history.recorded.values() for row in rows for each in row.episode_ids}
        flushed = {each for command in history.commands for each in command.kept}
        self._by_command = flushed - self._recorded  # an id in both sets is one episode
        for point in history.points.get(EPISODES, ()):
            self._made[point.owner_key] += (
                bool(point.summarised) or point.command_id is not None or point.id in self._by_command
            )

    def look_for(self, turn: TurnName, row: ObservedRow, findings: Findings) -> None:
        if 0 < self._kept < self._made[row.owner_key]:
            return
        for episode_id in sorted(_episodes(row)):
            where = f"{EPISODES}/{episode_id}"
            findings.require(
                episode_id in self._ids, f"{format_turn(turn)}: its episode is not in the store", row.position, where
            )

    def look_for_strays(self, history: History, findings: Findings) -> None:
        known = self._recorded | self._by_command
        for point in history.points.get(EPISODES, ()):
            # summaries and episodes added by hand come from commands; tenant_isolation.py checks them
            is_known = point.id in known or point.summarised or point.command_id is not None
            complete = (history.is_complete(topic.name, point.owner_key) for topic in (EPISODES_RECORDED, COMMANDS))
            if not is_known and all(complete):
                findings.require(False, "an episode is in the store and was never recorded", str(point))


def _episodes(row: ObservedRow) -> set[str]:
    return {ids.episode_id(each.observation_id) for each in row.observations if each.episodic}
