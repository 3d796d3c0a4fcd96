"""The checker accepts a dead letter of the reflector that was put back after later turns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memstream.schemas.errors import Poison
from memstream.schemas.topics import EPISODES_RECORDED, OBSERVATIONS
from memstream.streams.engine.dead_letters import dead_letter
from memstream.streams.engine.redrive import redrive_of
from memstream.streams.log.port import Position, Record
from tests.support.history_dump import Dump, Fields


def first(fields: Fields) -> bool:
    return _is_turn(fields, "t1")


def second(fields: Fields) -> bool:
    return _is_turn(fields, "t2")


def _is_turn(fields: Fields, turn_id: str) -> bool:
    whose = tuple(fields.get(name) for name in ("tenant_id", "user_id", "session_id", "turn_id"))
    return whose == ("acme", "u1", "s1", turn_id)


@pytest.mark.long
async def test_a_turn_that_is_put_back_may_be_reflected_after_a_later_one(dump: Dump) -> None:
    recorded = dump.records[EPISODES_RECORDED.name]
    one, other = dump.find(EPISODES_RECORDED.name, first), dump.find(EPISODES_RECORDED.name, second)
    before, after = recorded[one].position, recorded[other].position
    recorded[one], recorded[other] = replace(recorded[one], position=after), replace(recorded[other], position=before)
    assert await dump.broken() == {"I7"}

    observed = dump.records[OBSERVATIONS.name][dump.find(OBSERVATIONS.name, first)]
    error = Poison("fatal", "an earlier version")
    letter = dead_letter(observed, stage="reflector", reason=error.reason, error=error, attempts=3)
    written = dump.append(
        Record(Position(letter.topic, 0, 0), letter.key, letter.value, letter.headers, observed.timestamp)
    )
    dump.append(replace(observed, headers=redrive_of(written).headers))
    assert await dump.broken() == set()

    dump.drop(OBSERVATIONS.name, first)
    dump.starts[OBSERVATIONS.name][observed.position.partition] = observed.position.offset + 1  # retention
    dump.records[OBSERVATIONS.name] = [
        each
        for each in dump.records[OBSERVATIONS.name]
        if each.position.offset >= dump.starts[OBSERVATIONS.name][each.position.partition]
    ]
    verdicts = await dump.verdicts()
    assert verdicts["I2"].ok, verdicts["I2"].violations
    assert verdicts["I7"].ok, verdicts["I7"].violations
