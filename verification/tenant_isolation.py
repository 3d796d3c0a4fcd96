"""I3: no read crosses tenants.

The check computes every id again from the tenant, user, session and turn of the record. When a record of one tenant is
in the memory of another tenant, its id does not match, or its evidence names an observation that the owner does not
have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..schemas import ids
from ..schemas.collections import ARCHIVE, EPISODES, TURNS, WORKING
from ..schemas.topics import COMMANDS_SESSION, EPISODES_RECORDED, FACTS, OBSERVATIONS
from .rows import EventRow, EvidenceRow, FactView, History, ObservationRow, ObservedRow, PointRow, TurnName
from .verdicts import Expected, Findings, InvariantVerdict, format_turn

PLACES = range(20)
"""Positions of a change in a facts.apply command."""


@dataclass(frozen=True, slots=True)
class ObservationOrigin:
    """The origin of an observation: its record, and its item in the record."""

    row: ObservedRow
    observation: ObservationRow


def no_read_crosses_tenants(history: History, expected: Expected) -> InvariantVerdict:
    findings = Findings()
    origins = {
        each.observation_id: ObservationOrigin(row, each)
        for rows in history.observed.values()
        for row in rows
        for each in row.observations
    }
    owners: dict[TurnName, set[str]] = {}
    for turn in history.turns:
        owners.setdefault(turn.name, set()).add(turn.owner_key)
    _observed(history, owners, findings)
    for event in (each for rows in history.events.values() for each in rows):
        _event(history, event, origins, findings)
    for state in history.states.values():
        if state.fact is not None:
            key = ids.fact_key(state.fact.tenant_id, state.fact.fact_id)
            findings.require(state.key == key, f"a fact on {FACTS.name} has the key of another fact", state.position)
    for piece, where in history.evidence.items():
        _evidence(history, piece, where, origins, findings)
    _points(history, owners, origins, findings)
    if not expected.policy.tiers.working_only:  # a working-only deployment writes no observations
        _working(history, origins, findings)
    return findings.verdict("I3", "no read crosses tenants")


def _observed(history: History, owners: dict[TurnName, set[str]], findings: Findings) -> None:
    for turn, rows in history.observed.items():
        for row in rows:
            if turn in owners and row.owner_key not in owners[turn]:
                findings.found(f"{format_turn(turn)}: its observations have another owner", row.position)
            if row.ce_id != ids.observed_id(*turn):
                findings.found(f"{format_turn(turn)}: the record's ce_id does not match the turn", row.position)
            for each in row.observations:
                findings.require(
                    each.derived, f"{format_turn(turn)}: an observation's id is not of this turn", row.position
                )
                if each.quoted is False:
                    findings.found(
                        f"{format_turn(turn)}: an observation has a quote that is not in the turn", row.position
                    )


def _event(history: History, event: EventRow, origins: dict[str, ObservationOrigin], findings: Findings) -> None:
    facts = (event.fact,) if event.before is None else (event.fact, event.before)
    same = all((fact.tenant_id, fact.owner_key) == (event.tenant_id, event.owner_key) for fact in facts)
    findings.require(same and event.key == event.owner_key, "an event mixes owners or tenants", event.position)
    for observation_id in event.observation_ids:
        origin = origins.get(observation_id)
        if origin is not None and origin.row.owner_key != event.owner_key:
            findings.found("an event's cause is an observation of another owner", event.position, origin.row.position)
    restored = event.owner_key in history.restored
    if event.fact.version == 1 and not restored and not _derived(event.fact, event.observation_ids, event.command_id):
        findings.found("a fact's id follows neither from its observation nor from its command", event.position)


def _derived(fact: FactView, observation_ids: Sequence[str], command_id: str | None) -> bool:
    causes = list(observation_ids)
    if command_id is not None:
        causes += [f"{command_id}/{place}" for place in PLACES]
    return any(ids.fact_id(fact.owner_key, cause) == fact.fact_id for cause in causes)


def _evidence(
    history: History, piece: EvidenceRow, where: str, origins: dict[str, ObservationOrigin], findings: Findings
) -> None:
    if piece.command_id is not None:
        stated = ids.edit_observation_id(piece.owner_key, piece.command_id)
        by_command = (piece.turn_id, piece.observation_id) == (stated, stated) or piece.owner_key in history.restored
        findings.require(by_command, "a fact's evidence does not match its command", where)
        return
    origin = origins.get(piece.observation_id)
    if origin is None:
        if history.is_complete(OBSERVATIONS.name, piece.owner_key):
            findings.require(False, "a fact's evidence names an observation that its owner does not have", where)
        return
    row = origin.row
    of = (row.tenant_id, row.owner_key, ids.split(row.session_key)[2], row.turn_id, origin.observation.quote)
    named_here = (piece.tenant_id, piece.owner_key, piece.session_id, piece.turn_id, piece.quote)
    findings.require(of == named_here, "a fact's evidence differs from its observation", where, row.position)


def _points(
    history: History, owners: dict[TurnName, set[str]], origins: dict[str, ObservationOrigin], findings: Findings
) -> None:
    for point in history.points.get(EPISODES, ()):
        findings.require(
            point.owner_key in history.restored or point.id == ids.episode_id(point.observation_id),
            "an episode's id does not match its observation",
            str(point),
        )
        if point.summarised:
            _summary(history, point, findings)
        elif point.command_id is not None:
            stated = ids.edit_observation_id(point.owner_key, point.command_id)
            by_command = point.observation_id == stated or point.owner_key in history.restored
            findings.require(by_command, "an episode does not match its command", str(point))
        else:
            _of_origin(history, point, origins, findings)
    _archive(history, findings)
    for point in history.points.get(TURNS, ()):
        turn = point.session_key, point.turn_id
        findings.require(
            point.id == ids.message_id(*turn, point.index),
            f"{format_turn(turn)}: a message's id does not match its turn",
            str(point),
        )
        if turn in owners and point.owner_key not in owners[turn]:
            findings.found(f"{format_turn(turn)}: a message has another owner", str(point))


def _working(history: History, origins: dict[str, ObservationOrigin], findings: Findings) -> None:
    stated = {
        (row.key, ids.edit_observation_id(row.key, row.command_id))
        for row in history.commands
        if row.kind == "working.add"
    }
    for point in history.points.get(WORKING, ()):
        findings.checked += 1
        by_hand = (point.session_key, point.observation_id) in stated
        if not by_hand and history.is_complete(COMMANDS_SESSION.name, point.session_key):
            _of_origin(history, point, origins, findings)


def _archive(history: History, findings: Findings) -> None:
    """Check the archived texts of episodes that have a gist. An archived text without an episode is allowed, because
    the archive keeps a text for some time after its episode is deleted."""
    episodes = {point.id: point for point in history.points.get(EPISODES, ())}
    for words in history.points.get(ARCHIVE, ()):
        episode_id = ids.episode_id(words.observation_id)
        findings.require(
            words.owner_key in history.restored or words.id == ids.archive_id(episode_id),
            "archived words have an id that does not match their episode",
            str(words),
        )
        episode = episodes.get(episode_id)
        if episode is not None and _origin_key(words) != _origin_key(episode):
            findings.found("archived words do not match their episode", str(words), str(episode))


def _origin_key(point: PointRow) -> tuple[str, ...]:
    return (point.owner_key, point.session_key, point.turn_id, point.content_hash)


def _summary(history: History, point: PointRow, findings: Findings) -> None:
    """Check a summary: its turns belong to its session and were reflected for its owner."""
    last = point.summarised[-1]
    derived = ids.summary_id(point.owner_key, point.session_key, last)
    findings.require(
        (point.observation_id, point.turn_id) == (derived, last), "a summary's id does not match its turns", str(point)
    )
    if point.content_hash == "wrong":
        findings.found("a summary's hash does not match its text", str(point))
    if not history.is_complete(EPISODES_RECORDED.name, point.owner_key):
        return
    for turn_id in point.summarised:
        turn = point.session_key, turn_id
        reflected = (point.owner_key, turn) in history.recorded
        findings.require(reflected, f"{format_turn(turn)}: it is summarised and was not reflected", str(point))


def _of_origin(history: History, point: PointRow, origins: dict[str, ObservationOrigin], findings: Findings) -> None:
    origin = origins.get(point.observation_id)
    if origin is None:
        if history.is_complete(OBSERVATIONS.name, point.owner_key):
            findings.found("it names an observation that its owner does not have", str(point))
        return
    row = origin.row
    same = point.session_key == row.session_key and (not point.turn_id or point.turn_id == row.turn_id)
    if point.collection == EPISODES:
        as_said = point.content_hash in ("", origin.observation.content_hash)  # "" after an edit by hand
        same = same and as_said and point.owner_key == row.owner_key
    if not same:
        findings.found("it differs from its observation", str(point), row.position)
