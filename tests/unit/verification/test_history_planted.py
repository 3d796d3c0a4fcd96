"""The checker finds every planted error in a real run: one loss, duplicate, disorder or foreign tenant at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from memstream.adapters.ports import VectorStore
from memstream.memory.policies import MemoryPolicy, RoutingPolicy
from memstream.memory.upkeep.gist import archive_row
from memstream.schemas import ids
from memstream.schemas.commands import Command, CommandResult, SessionRef
from memstream.schemas.episodes import StoredEpisode
from memstream.schemas.parking import UnreadDeleted
from memstream.schemas.topics import (
    COMMANDS,
    COMMANDS_SESSION,
    EPISODES_RECORDED,
    FACTS,
    FACTS_UPDATED,
    OBSERVATIONS,
    PARKED,
    RESULTS,
    TURNS,
)
from memstream.streams.engine.unread import UNREAD
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Log, Position, Record
from memstream.verification import Expected, HistoryScope, read_history, verify
from memstream.verification.decoding import COMPARED
from memstream.verification.rows import TurnName
from tests.support.history_dump import NO_JSON, PARTITIONS, Dump, DumpLog, DumpStore, Fields, parsed

LETTERS = TURNS.name + ".dlq"
CHANGELOG = "memory-observer-working_set-changelog"
Plant = Callable[[Dump], object]
quick = settings(max_examples=20, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink))


def of(**wanted: Any) -> Callable[[Fields], bool]:
    """The records whose fields are these; `fact__version` looks into `fact`."""

    def fits(fields: Fields) -> bool:
        for name, value in wanted.items():
            found: Any = fields
            for part in name.split("__"):
                found = found.get(part) if isinstance(found, dict) else None
            if found != value:
                return False
        return True

    return fits


FIRST = of(tenant_id="acme", user_id="u1", session_id="s1", turn_id="t1")
SECOND = of(tenant_id="acme", user_id="u1", session_id="s1", turn_id="t2")
GOOGLE = of(tenant_id="acme", owner__id="u1", content="Works at Google")


def google_event(version: int) -> Callable[[Fields], bool]:
    return of(tenant_id="acme", owner__id="u1", fact__content="Works at Google", fact__version=version)


async def shown(dump: Dump, invariant: str, **expected: Any) -> str:
    """What the checker says of one invariant."""
    verdict = (await dump.verdicts(**expected))[invariant]
    return "\n".join(f"{each.what} | {', '.join(each.records)}" for each in verdict.violations)


def again(dump: Dump, topic: str, change: Callable[[Fields], None], which: Callable[[Fields], bool]) -> None:
    """A second record of the same thing, with other bytes."""
    record = dump.records[topic][dump.find(topic, which)]
    fields = parsed(record.value)
    change(fields)
    dump.append(replace(record, value=json.dumps(fields).encode()))


def swapped(dump: Dump, topic: str, one: Callable[[Fields], bool], other: Callable[[Fields], bool]) -> None:
    """Two records of one partition change places."""
    records = dump.records[topic]
    a, b = dump.find(topic, one), dump.find(topic, other)
    assert records[a].position.partition == records[b].position.partition
    first, second = records[a].position, records[b].position
    records[a], records[b] = replace(records[a], position=second), replace(records[b], position=first)


def payload(dump: Dump, collection: str, which: Callable[[Fields], bool], **fields: Any) -> None:
    dump.point(collection, which)[1].update(fields)


def gone(dump: Dump, collection: str, which: Callable[[Fields], bool]) -> None:
    del dump.points[collection][dump.point(collection, which)[0]]


# ------------------------------------------------------------------------------------------------ planted losses
LOSSES: dict[str, tuple[Plant, str, str]] = {
    "a turn without an observation": (
        lambda dump: dump.drop(OBSERVATIONS.name, FIRST),
        "I1",
        "turn t1 of acme/u1/s1 is lost",
    ),
    "a turn that was never sent again": (
        lambda dump: dump.records[TURNS.name].remove(
            next(each for each in dump.records[TURNS.name] if dict(each.headers).get("memstream-rekeyed"))
        ),
        "I1",
        "turn t50 of acme/u1/astray was on the wrong partition and was not sent again",
    ),
    "a waiting row": (
        lambda dump: dump.append(
            replace(
                next(each for each in dump.records[CHANGELOG] if each.key == b"acme/u1/held/1"),
                value=None,
            )
        ),
        "I1",
        "turn t2 of acme/u1/held is lost",
    ),
    "a turn's words": (lambda dump: gone(dump, "turns", FIRST), "I1", "has no verbatim messages in the store"),
    "a reflection": (lambda dump: dump.drop(EPISODES_RECORDED.name, FIRST), "I1", "was observed and not reflected"),
    "an episode": (lambda dump: gone(dump, "episodes", FIRST), "I1", "its episode is not in the store"),
    "an observation's fact, everywhere": (lambda dump: _no_fact(dump), "I1", "an observation made no fact"),
    "a command's result": (lambda dump: dump.drop(RESULTS.name), "I1", "has no result"),
    "the dead letter of what the model refused": (
        lambda dump: dump.drop(LETTERS, of(turn_id="t51")),
        "I1",
        "turn t51 of acme/u1/s1 is lost",
    ),
    "the dead letter of what nobody can decode": (
        lambda dump: dump.records[LETTERS].remove(next(e for e in dump.records[LETTERS] if e.value == NO_JSON)),
        "I5",
        "a record that is undecodable has no dead letter",
    ),
    "the first version of a fact": (
        lambda dump: dump.drop(FACTS_UPDATED.name, google_event(1)),
        "I2",
        "begins at version 2",
    ),
    "the last version of a fact": (
        lambda dump: dump.drop(FACTS_UPDATED.name, google_event(2)),
        "facts",
        "differs between memory.facts.updated and the store",
    ),
    "the state of a fact": (lambda dump: _without(dump, FACTS.name, GOOGLE), "facts", "is not on memory.facts"),
    "a stored fact": (lambda dump: gone(dump, "facts", GOOGLE), "facts", "is not in the store"),
    "an event in the middle": (lambda dump: _middle(dump), "I2", "follows version"),
    "all events of a fact": (
        lambda dump: _without(dump, FACTS_UPDATED.name, of(tenant_id="acme", fact__content="Lives in Oslo")),
        "facts",
        "has no event on memory.facts.updated",
    ),
    "an event that a record names": (
        lambda dump: dump.drop(FACTS_UPDATED.name, google_event(1)),
        "I1",
        "turn t1 of acme/u1/s1: its record names other facts than its events",
    ),
    "an episode in its record": (
        lambda dump: dump.edit(EPISODES_RECORDED.name, lambda fields: fields.update(episodes=[]), FIRST),
        "I1",
        "its episodes do not match its observations",
    ),
    "a turn's number": (
        lambda dump: dump.drop(OBSERVATIONS.name, FIRST),
        "I2",
        "session acme/u1/s1: 1 turn numbers are missing, the first is 1",
    ),
}


def _without(dump: Dump, topic: str, which: Callable[[Fields], bool]) -> None:
    dump.records[topic] = [each for each in dump.records[topic] if not which(parsed(each.value))]


def _no_fact(dump: Dump) -> None:
    """The reflector made an episode of an observation and forgot its fact: nothing of it anywhere."""
    fact_id, _ = dump.point("facts", of(tenant_id="acme", owner__id="u1", content="Lives in Oslo"))
    del dump.points["facts"][fact_id]
    for topic in (FACTS.name, FACTS_UPDATED.name):
        kept = [each for each in dump.records[topic] if fact_id.encode() not in (each.value or b"")]
        assert len(kept) < len(dump.records[topic])
        dump.records[topic] = kept
    dump.edit(
        EPISODES_RECORDED.name,
        lambda fields: fields["fact_ids"].remove(fact_id),
        lambda fields: fact_id in fields["fact_ids"],
    )


def _middle(dump: Dump) -> None:
    versions = sorted(parsed(each.value)["fact"]["version"] for each in dump.records[FACTS_UPDATED.name])
    assert versions[-1] >= 3
    dump.drop(FACTS_UPDATED.name, of(fact__version=versions[-1] - 1))


# ------------------------------------------------------------------------------------------------ planted doubles
def _twin(fields: Fields) -> Fields:
    """Another fact of the same owner that says the same."""
    twin = fields | {"fact_id": ids.fact_id("acme/user/u1", "twin"), "supersedes": None, "superseded_by": None}
    return twin | {"version": 1, "state": "active"}


def _two_writers(dump: Dump) -> None:
    """Both looked, found no neighbour and inserted."""
    _, fact = dump.point("facts", of(tenant_id="acme", owner__id="u1", content="Likes green tea"))
    dump.points["facts"][_twin(fact)["fact_id"]] = _twin(fact)


DOUBLES: dict[str, tuple[Plant, str, str]] = {
    "another observation of a turn": (
        lambda dump: again(dump, OBSERVATIONS.name, lambda fields: fields.update(observations=[]), FIRST),
        "I1",
        "was observed twice, with different values",
    ),
    "another reflection of a turn": (
        lambda dump: again(dump, EPISODES_RECORDED.name, lambda fields: fields.update(evicted_persistent=7), FIRST),
        "I1",
        "was reflected twice",
    ),
    "another result of a command": (
        lambda dump: again(dump, RESULTS.name, lambda fields: fields.update(status="failed"), lambda fields: True),
        "I1",
        "has two different results",
    ),
    "an event with other bytes": (
        lambda dump: again(
            dump, FACTS_UPDATED.name, lambda fields: fields.update(at="2030-01-01T00:00:00Z"), google_event(1)
        ),
        "I2",
        "came with different bytes",
    ),
    "a fact of two writers": (_two_writers, "facts", "several active facts of one owner say the same"),
    "an episode that nobody recorded": (
        lambda dump: dump.points["episodes"].update({"0" * 8: dict(dump.point("episodes", FIRST)[1])}),
        "I1",
        "was never recorded",
    ),
    "a turn that nobody produced": (
        lambda dump: dump.drop(TURNS.name, SECOND),
        "I1",
        "was observed and never produced",
    ),
    "words that nobody produced": (
        lambda dump: dump.drop(TURNS.name, SECOND),
        "I1",
        "turn t2 of acme/u1/s1 is in the store and was never produced",
    ),
    "two turns with one number": (
        lambda dump: dump.edit(OBSERVATIONS.name, lambda fields: fields.update(turn_number=1), SECOND),
        "I2",
        "several turns have the number 1",
    ),
    "another turn under the id of the first": (
        lambda dump: payload(dump, "turns", FIRST, turn_sha256="0" * 64),
        "I1",
        "the store does not have the first turn of this id",
    ),
    "other words than were said": (
        lambda dump: payload(dump, "turns", FIRST, content="I work at Gogle."),
        "I1",
        "its stored messages differ from the turn",
    ),
}


# ------------------------------------------------------------------------------------------------ out of order
def _exchanged_numbers(dump: Dump) -> None:
    dump.edit(OBSERVATIONS.name, lambda fields: fields.update(turn_number=2), FIRST)
    dump.edit(OBSERVATIONS.name, lambda fields: fields.update(turn_number=1), SECOND)


def _older_last(dump: Dump) -> None:
    """Append the state of version 1 again. The run itself may send the state of version 2 only."""
    state = dump.records[FACTS.name][dump.find(FACTS.name, GOOGLE)]
    first = dump.records[FACTS_UPDATED.name][dump.find(FACTS_UPDATED.name, google_event(1))]
    dump.append(replace(state, value=json.dumps(parsed(first.value)["fact"]).encode()))


ORDER: dict[str, tuple[Plant, str, str]] = {
    "turns observed in another order": (
        lambda dump: _exchanged_numbers(dump),
        "I7",
        "turn t2 of acme/u1/s1 came after turn t1 and was observed before it",
    ),
    "observations in another order": (
        lambda dump: swapped(dump, OBSERVATIONS.name, FIRST, SECOND),
        "I2",
        "turn number 1 first came after 2",
    ),
    "turns reflected in another order": (
        lambda dump: swapped(dump, EPISODES_RECORDED.name, FIRST, SECOND),
        "I7",
        "was reflected after turn t2, which is later",
    ),
    "versions in another order": (
        lambda dump: swapped(dump, FACTS_UPDATED.name, google_event(1), google_event(2)),
        "I2",
        "begins at version 2",
    ),
    "an older state last": (
        lambda dump: _older_last(dump),
        "facts",
        "is version 1, not 2",
    ),
    "a version that begins elsewhere": (
        lambda dump: dump.edit(
            FACTS_UPDATED.name, lambda fields: fields["before"].update(confidence=0.1), google_event(2)
        ),
        "I2",
        "does not begin where version 1 ended",
    ),
    "a version without the one before": (
        lambda dump: dump.edit(FACTS_UPDATED.name, lambda fields: fields.update(before=None), google_event(2)),
        "I2",
        "`before` of version 2 is not version 1",
    ),
    "an event with another id": (
        lambda dump: dump.edit(FACTS_UPDATED.name, lambda fields: fields.update(event_id="x"), google_event(1)),
        "I2",
        "does not have the id of its fact and version",
    ),
}


# ------------------------------------------------------------------------------------------------ stale facts
def _everywhere(dump: Dump, **fields: Any) -> None:
    """The superseded fact as it would be had nobody closed it, in all three views."""
    payload(dump, "facts", GOOGLE, **fields)
    dump.edit(FACTS_UPDATED.name, lambda event: event["fact"].update(fields), google_event(2))
    dump.edit(FACTS.name, lambda fact: fact.update(fields), lambda fact: GOOGLE(fact) and fact["version"] == 2)


STALE: dict[str, tuple[Plant, str, str]] = {
    "superseded in the log, active in the store": (
        lambda dump: payload(dump, "facts", GOOGLE, state="active", superseded_by=None, version=1),
        "facts",
        "is superseded on memory.facts.updated and still active in the store",
    ),
    "replaced, and active in every view": (
        lambda dump: _everywhere(dump, state="active", superseded_by=None),
        "facts",
        "was replaced by",
    ),
    "active with a successor": (
        lambda dump: _everywhere(dump, state="active"),
        "facts",
        "has a successor and is still active",
    ),
    "erased, and still stored": (
        lambda dump: dump.append(replace(dump.records[FACTS.name][dump.find(FACTS.name, GOOGLE)], value=None)),
        "facts",
        "is erased and still stored",
    ),
    "replaced by nothing": (
        lambda dump: _everywhere(dump, superseded_by="3f9d3f0e-0000-5000-8000-000000000000"),
        "facts",
        "names no fact of its owner",
    ),
}


# ------------------------------------------------------------------------------------------------ foreign tenants
def _of_zeta(collection: str, which: Callable[[Fields], bool]) -> Plant:
    """A point of acme lies in zeta's memory, whole."""

    def plant(dump: Dump) -> None:
        _, fields = dump.point(collection, which)
        fields.update(tenant_id="zeta", owner_key=fields["owner_key"].replace("acme", "zeta"))

    return plant


def _evidence_of_zeta(dump: Dump) -> None:
    """A fact of acme has learnt from what someone of zeta said."""
    _, theirs = dump.point("facts", of(tenant_id="zeta", owner__id="u1", content="Likes green tea"))
    _, ours = dump.point("facts", of(tenant_id="acme", owner__id="u1", content="Likes green tea"))
    ours["evidence"] = [*ours["evidence"], theirs["evidence"][0]]


def _asked_of_zeta(dump: Dump) -> None:
    """An observation of zeta's turn in a record of acme's."""
    theirs = parsed(
        dump.records[OBSERVATIONS.name][dump.find(OBSERVATIONS.name, of(tenant_id="zeta", turn_id="t1"))].value
    )
    dump.edit(OBSERVATIONS.name, lambda fields: fields.update(observations=theirs["observations"]), FIRST)


def _key(dump: Dump, topic: str, which: Callable[[Fields], bool]) -> None:
    at = dump.find(topic, which)
    dump.records[topic][at] = replace(dump.records[topic][at], key=b"zeta/user/u1")


def _headers(dump: Dump, topic: str, which: Callable[[Fields], bool], **headers: bytes) -> None:
    at = dump.find(topic, which)
    record = dump.records[topic][at]
    dump.records[topic][at] = replace(record, headers=tuple((dict(record.headers) | headers).items()))


def _evidence(dump: Dump, **fields: str) -> Fields:
    """That of Google, changed."""
    evidence: Fields = dump.point("facts", GOOGLE)[1]["evidence"][0]
    return evidence | fields


def _observation_of_zeta(dump: Dump) -> str:
    at = dump.find(OBSERVATIONS.name, of(tenant_id="zeta", turn_id="t1"))
    found: str = parsed(dump.records[OBSERVATIONS.name][at].value)["observations"][0]["observation_id"]
    return found


def compress(dump: Dump, **wrong: str) -> None:
    """An episode of which a gist is left; `wrong` about its words in the archive."""
    fields = dump.point("episodes", FIRST)[1]
    row = archive_row(StoredEpisode.from_payload(fields), at=datetime.now(UTC))
    dump.points.setdefault("archive", {})[row.archive_id] = row.to_payload() | wrong
    fields.update(content="A gist", archived_at=row.to_payload()["archived_at"])


async def test_a_gist_and_its_words_are_as_they_should_be(dump: Dump) -> None:
    before = await dump.broken()
    compress(dump)
    assert await dump.broken() == before


def added_by_hand(dump: Dump, *, session: str = "s1") -> None:
    """Let the entries of session s1 be those that a command added to a session."""
    given = Command(
        command_id="c-entry",
        kind="working.add",
        tenant_id="acme",
        session=SessionRef(user_id="u1", session_id=session),
        args={"content": "Works at Google"},
        issued_at=datetime.now(UTC),
    )
    about = ids.session_key("acme", "u1", "s1")
    at = Position(COMMANDS_SESSION.name, partition_for(given.key.encode(), PARTITIONS), 0)
    dump.append(Record(at, given.key.encode(), given.to_bytes()))
    result = CommandResult(command_id="c-entry", status="applied", result={}, at=given.issued_at)
    dump.append(
        Record(Position(RESULTS.name, 0, 0), b"c-entry", result.to_bytes(), (("ce_subject", given.key.encode()),))
    )
    stated = ids.edit_observation_id(about, given.command_id)
    payload(dump, "working", of(tenant_id="acme", session_id="s1"), entry_id=stated, observation_id=stated)


def refused_again(dump: Dump, code: str) -> None:
    error = {"code": code, "message": "take a new key"}
    again(dump, RESULTS.name, lambda fields: fields.update(status="refused", result=None, error=error), lambda _: True)


ALLOWED: dict[str, Callable[[Dump], None]] = {
    "an entry that was added by hand": added_by_hand,
    "a used key with another request": lambda dump: refused_again(dump, "key_reused"),
    "a command that came again too late": lambda dump: refused_again(dump, "repeated"),
}


@pytest.mark.parametrize("what", ALLOWED)
async def test_what_is_no_fault_is_not_found(dump: Dump, what: str) -> None:
    before = await dump.broken()
    ALLOWED[what](dump)
    assert await dump.broken() == before


FOREIGN: dict[str, tuple[Plant, str, str]] = {
    "a fact": (_of_zeta("facts", GOOGLE), "I3", "differs from its observation"),
    "an episode": (_of_zeta("episodes", FIRST), "I3", "it differs from its observation"),
    "a working entry": (
        _of_zeta("working", of(tenant_id="acme", user_id="u1", session_id="s1")),
        "I3",
        "it differs from its observation",
    ),
    "a message": (_of_zeta("turns", FIRST), "I3", "a message's id does not match its turn"),
    "evidence": (_evidence_of_zeta, "I3", "a fact's evidence differs from its observation"),
    "an observation": (_asked_of_zeta, "I3", "an observation's id is not of this turn"),
    "a key on memory.observations": (
        lambda dump: _key(dump, OBSERVATIONS.name, FIRST),
        "I5",
        "a record that is invalid has no dead letter",
    ),
    "a key on memory.facts.updated": (
        lambda dump: _key(dump, FACTS_UPDATED.name, google_event(1)),
        "I3",
        "an event mixes owners or tenants",
    ),
    "a key on memory.facts": (
        lambda dump: _key(dump, FACTS.name, GOOGLE),
        "I3",
        "has the key of another fact",
    ),
    "the row before": (
        lambda dump: dump.edit(
            FACTS_UPDATED.name, lambda fields: fields["before"].update(tenant_id="zeta"), google_event(2)
        ),
        "I3",
        "an event mixes owners or tenants",
    ),
    "a command's key": (
        lambda dump: _key(dump, COMMANDS.name, of(tenant_id="acme", kind="facts.apply")),
        "I5",
        "a record that is invalid has no dead letter",
    ),
    "evidence of nobody": (
        lambda dump: payload(dump, "facts", GOOGLE, evidence=[_evidence(dump, observation_id="0" * 36)]),
        "I3",
        "a fact's evidence names an observation that its owner does not have",
    ),
    "evidence with another quote": (
        lambda dump: payload(dump, "facts", GOOGLE, evidence=[_evidence(dump, quote="I work")]),
        "I3",
        "a fact's evidence differs from its observation",
    ),
    "a fact's id": (
        lambda dump: dump.edit(
            FACTS_UPDATED.name, lambda fields: fields["cause"].update(observation_ids=[]), google_event(1)
        ),
        "I3",
        "follows neither from its observation nor from its command",
    ),
    "an event's cause": (
        lambda dump: dump.edit(
            FACTS_UPDATED.name,
            lambda fields: fields["cause"].update(observation_ids=[_observation_of_zeta(dump)]),
            google_event(2),
        ),
        "I3",
        "an event's cause is an observation of another owner",
    ),
    "an episode's observation": (
        lambda dump: payload(dump, "episodes", FIRST, observation_id=_observation_of_zeta(dump)),
        "I3",
        "an episode's id does not match its observation",
    ),
    "a working entry of nobody": (
        lambda dump: payload(dump, "working", of(tenant_id="acme", session_id="s1"), observation_id="0" * 36),
        "I3",
        "it names an observation that its owner does not have",
    ),
    "a working entry of a command to another session": (
        lambda dump: added_by_hand(dump, session="s2"),
        "I3",
        "it names an observation that its owner does not have",
    ),
    "words in the archive that were not put there": (
        lambda dump: compress(dump, content="Works at Apple"),
        "I3",
        "archived words do not match their episode",
    ),
    "words in the archive that nobody said": (
        lambda dump: compress(dump, content="Works at Apple", sha256=ids.text_hash("Works at Apple")),
        "I3",
        "archived words do not match their episode",
    ),
    "words in another's archive": (
        lambda dump: compress(dump, owner_key="acme/user/u2"),
        "I3",
        "archived words do not match their episode",
    ),
    "words of another's observation": (
        lambda dump: compress(dump, observation_id=_observation_of_zeta(dump)),
        "I3",
        "archived words have an id that does not match their episode",
    ),
    "a record's ce_id": (
        lambda dump: _headers(dump, OBSERVATIONS.name, FIRST, ce_id=b"another"),
        "I3",
        "the record's ce_id does not match the turn",
    ),
    "another user's message": (
        lambda dump: payload(dump, "turns", FIRST, owner_key="acme/user/u2"),
        "I3",
        "a message has another owner",
    ),
    "another user's observation": (
        lambda dump: dump.edit(
            OBSERVATIONS.name, lambda fields: fields.update(owner={"scope": "user", "id": "u2"}), FIRST
        ),
        "I5",
        "a record that is invalid has no dead letter",
    ),
    "a quote from elsewhere": (
        lambda dump: dump.edit(
            OBSERVATIONS.name, lambda fields: fields["observations"][0].update(evidence="my PIN is 1234"), FIRST
        ),
        "I3",
        "has a quote that is not in the turn",
    ),
}


# ------------------------------------------------------------------------------------------------ dead letters
def _letter_of(dump: Dump, value: bytes | None, **headers: bytes) -> None:
    at = next(place for place, each in enumerate(dump.records[LETTERS]) if each.value == NO_JSON)
    letter = dump.records[LETTERS][at]
    changed = dict(letter.headers) | headers
    dump.records[LETTERS][at] = replace(letter, value=value, headers=tuple(changed.items()))


def _letter_of_a_good_turn(dump: Dump, reason: bytes) -> None:
    turn = dump.records[TURNS.name][dump.find(TURNS.name, SECOND)]
    letter = dump.records[LETTERS][0]
    headers = dict(letter.headers) | {
        "kafka_dlt-original-partition": str(turn.position.partition).encode(),
        "kafka_dlt-original-offset": str(turn.position.offset).encode(),
        "memstream-reason": reason,
    }
    dump.append(replace(letter, key=turn.key, value=turn.value, headers=tuple(headers.items())))


POISON: dict[str, tuple[Plant, str, str]] = {
    "of a good turn": (lambda dump: _letter_of_a_good_turn(dump, b"invalid"), "I5", "it was refused as invalid"),
    "of an observed turn": (
        lambda dump: _letter_of_a_good_turn(dump, b"fatal"),
        "I1",
        "was observed, and each of its records is a dead letter too",
    ),
    "with other bytes": (lambda dump: _letter_of(dump, b"no json"), "I5", "has other bytes than its record"),
    "for another reason": (
        lambda dump: _letter_of(dump, NO_JSON, **{"memstream-reason": b"invalid"}),
        "I5",
        "refused by observer as invalid; it is undecodable",
    ),
    "without a place": (
        lambda dump: _letter_of(dump, NO_JSON, **{"kafka_dlt-original-offset": b"?"}),
        "I5",
        "does not name its record",
    ),
    "of no record": (
        lambda dump: _letter_of(dump, NO_JSON, **{"kafka_dlt-original-offset": b"4711"}),
        "I5",
        "of a record that is not there",
    ),
}
EVERYTHING = {
    f"{kind}: {name}": planted
    for kind, table in {
        "lost": LOSSES,
        "doubled": DOUBLES,
        "out of order": ORDER,
        "stale": STALE,
        "foreign": FOREIGN,
        "dead letter": POISON,
    }.items()
    for name, planted in table.items()
}


@pytest.mark.parametrize("planted", [pytest.param(planted, id=name) for name, planted in EVERYTHING.items()])
async def test_what_is_planted_is_found(dump: Dump, planted: tuple[Plant, str, str]) -> None:
    plant, invariant, says = planted
    plant(dump)
    assert says in await shown(dump, invariant)


async def test_an_acknowledged_turn_that_the_log_has_lost(dump: Dump) -> None:
    turns: frozenset[TurnName] = frozenset(row.name for row in (await dump.history()).turns)
    lost = dump.drop(TURNS.name, SECOND)
    dump.drop(OBSERVATIONS.name, SECOND)
    said = await shown(dump, "I1", acknowledged=turns)
    assert lost.value
    assert "turn t2 of acme/u1/s1 was acknowledged and is not in the log" in said


async def test_the_poison_set_when_it_is_given(dump: Dump) -> None:
    session = ids.session_key("acme", "u1", "s1")
    wanted = frozenset({(session, "t1")})
    said = await shown(dump, "I5", refused_by_model=wanted)
    assert "turn t1 of acme/u1/s1 has no dead letter" in said
    assert "turn t51 of acme/u1/s1 is a dead letter, though nothing is wrong with it" in said


async def test_an_episode_that_was_flushed_too_makes_no_room_for_a_loss(dump: Dump) -> None:
    """Beyond what is kept of an owner episodes may be gone; one that a turn and a flush have made counts once."""
    mine = of(tenant_id="acme", owner__id="u1")
    records = [parsed(each.value) for each in dump.records[EPISODES_RECORDED.name]]
    recorded = {each["episode_id"] for fields in records if mine(fields) for each in fields["episodes"]}
    summaries = [each for each in dump.points["episodes"].values() if mine(each) and each.get("turn_ids")]
    told = parsed(dump.records[OBSERVATIONS.name][dump.find(OBSERVATIONS.name, SECOND)].value)
    kept = {"turn_id": "t2", "occurred_at": told["occurred_at"], "observation": told["observations"][0]}
    like = dump.records[COMMANDS.name][dump.find(COMMANDS.name, mine)]
    flush = parsed(like.value) | {
        "command_id": "flushed",
        "kind": "episodes.keep",
        "args": {"user_id": "u1", "session_id": "s1", "observations": [kept]},
    }
    dump.append(replace(like, value=json.dumps(flush).encode()))
    gone(dump, "episodes", FIRST)
    policy = MemoryPolicy(routing=RoutingPolicy(episodes_kept=len(recorded) + len(summaries)))
    assert "its episode is not in the store" in await shown(dump, "I1", policy=policy)


async def test_money_that_tier_free_may_not_spend(dump: Dump) -> None:
    said = await shown(dump, "I6", tier="free", free_models=frozenset(("offline-rules/1",)))
    assert "tier free, and consolidation used scripted-1, which costs money" in said
    assert not await dump.broken(tier="free", free_models=frozenset(("scripted-1",)))


async def test_lag_and_an_offset_beyond_the_end(dump: Dump) -> None:
    at = dump.committed["memory-observer", TURNS.name]
    at[0], at[1] = (at[0] or 0) - 1, (at[1] or 0) + 2
    said = await shown(dump, "I8")
    assert "observer is 1 records behind | memory.turns/0@" in said
    assert "observer has committed 2 records beyond the end" in said


async def test_records_that_retention_deleted_before_a_stage_read_them(dump: Dump) -> None:
    at, starts = dump.committed["memory-observer", TURNS.name], dump.starts[TURNS.name]
    at[0], starts[0] = 0, 2
    assert "retention deleted 2 records that observer had not read" in await shown(dump, "I8")


async def test_records_that_a_stage_passed_over_are_a_note(dump: Dump) -> None:
    for stage in ("observer", "recorder"):
        note = UnreadDeleted(stage=stage, topic=TURNS.name, partition=0, first=3, until=5, at=datetime.now(UTC))
        dump.append(Record(Position(PARKED.name, 0, 0), UNREAD + stage.encode(), note.to_bytes()))
    verdict = (await dump.verdicts(stages=frozenset(("observer",))))["I8"]
    assert verdict.ok
    (said,) = verdict.notes
    assert "observer passed over 2 offsets from memory.turns/0@3 on" in said


async def test_a_topic_that_grows_while_it_is_read(dump: Dump) -> None:
    class Growing(DumpLog):
        async def ends(self, topic: str) -> tuple[int, ...]:
            ends = await super().ends(topic)
            if topic == FACTS_UPDATED.name:
                dump.append(dump.records[topic][0])
            return ends

    history = await read_history(
        log=cast(Log, Growing(dump)), store=cast(VectorStore, DumpStore(dump)), scope=HistoryScope()
    )
    verdicts = {each.invariant: each for each in verify(history, Expected(tier="standard"))}
    assert [name for name, each in verdicts.items() if not each.ok] == ["I8"]
    assert "memory.facts.updated moved while it was read" in verdicts["I8"].violations[0].what


async def test_a_record_of_ours_that_nobody_can_read(dump: Dump) -> None:
    at = dump.find(FACTS_UPDATED.name, google_event(1))
    dump.records[FACTS_UPDATED.name][at] = replace(dump.records[FACTS_UPDATED.name][at], value=b"{}")
    assert "cannot be read: invalid" in await shown(dump, "I2")


async def test_no_content_is_told(dump: Dump) -> None:
    """Of all that can be planted: violations name records and ids, never words."""
    for plant, _, _ in EVERYTHING.values():
        copy = dump.copy()
        plant(copy)
        told = str([verdict.violations for verdict in (await copy.verdicts()).values()])
        assert not [word for word in ("Google", "tea", "Jake", "Oslo", "PIN") if word in told]


@quick
@given(data=st.data())
def test_no_record_can_be_lost(real_dump: Dump, data: st.DataObject) -> None:
    """Whatever record of ours had never arrived, something says so."""
    dump = real_dump.copy()
    topics = (OBSERVATIONS.name, EPISODES_RECORDED.name, FACTS_UPDATED.name, RESULTS.name, LETTERS, TURNS.name)
    topic = data.draw(st.sampled_from(topics))
    record = data.draw(st.sampled_from(dump.records[topic]))
    turns = frozenset(row.name for row in asyncio.run(dump.history()).turns)
    same = [each for each in dump.records[topic] if each.value == record.value]
    if topic == LETTERS:
        same = [record]
    elif topic == TURNS.name and not record.value:
        return  # a null value that never arrived is nothing
    dump.records[topic] = [each for each in dump.records[topic] if each not in same]
    assert asyncio.run(dump.broken(acknowledged=turns)), record.position


@quick
@given(field=st.sampled_from(COMPARED), data=st.data())
def test_no_field_of_a_stored_fact_can_change(real_dump: Dump, field: str, data: st.DataObject) -> None:
    dump = real_dump.copy()
    fact_id, theirs = data.draw(st.sampled_from(sorted(dump.points["facts"].items(), key=lambda item: item[0])))
    _, other = data.draw(st.sampled_from(sorted(dump.points["facts"].items(), key=lambda item: item[0])))
    if other[field] == theirs[field]:
        return
    dump.points["facts"][fact_id] = theirs | {field: other[field]}
    assert asyncio.run(dump.broken())
