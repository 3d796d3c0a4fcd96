"""Turns on the wrong partition: sent again, byte for byte, and only once."""

from __future__ import annotations

import pytest

from memstream.schemas import ids
from memstream.schemas.row_keys import INDEX
from memstream.schemas.topics import COMMANDS_SESSION, TURNS
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Record
from tests.support.model_server import observing
from tests.support.observer_world import LETTERS, SESSION, ObserverWorld

PARTITIONS = 4
KEY = ids.session_key(*SESSION).encode()
RIGHT = partition_for(KEY, PARTITIONS)
WRONG = (RIGHT + 1) % PARTITIONS
HEADERS = (("traceparent", b"00-x"), ("odd", b"\xff"))


def new_world() -> ObserverWorld:
    return ObserverWorld(observing({"I work at Google": [{"content": "Works at Google"}]}), partitions=PARTITIONS)


def misplaced(world: ObserverWorld, key: bytes | None) -> Record:
    return world.turn("I work at Google.", key=key, partition=WRONG, headers=HEADERS, timestamp=1_700_000_123_456)


@pytest.mark.parametrize("key", [None, b"another key", KEY], ids=["no key", "another key", "another partitioner"])
async def test_a_misplaced_turn_goes_to_its_partition_and_gives_what_a_right_one_gives(key: bytes | None) -> None:
    world = new_world()
    turn = misplaced(world, key)
    await world.deliver(turn)
    (sent,) = world.harness.sent
    assert (sent.topic, sent.key, sent.value, sent.timestamp) == (TURNS.name, KEY, turn.value, 1_700_000_123_456)
    assert sent.headers == (*HEADERS, ("memstream-rekeyed", b"1"))
    assert world.harness.rows.local == {}
    assert world.model.asks == []
    await world.deliver(world.again(sent))
    right = new_world()
    await right.deliver(right.turn("I work at Google.", timestamp=1_700_000_123_456))
    assert world.observed() == right.observed()
    assert world.working() == right.working()


async def test_one_under_another_key_goes_to_its_lane_where_it_lies_right() -> None:
    """Lanes go by the record's key. In another key's lane the turn touches no row: the session's lane may write it."""
    world = new_world()
    await world.deliver(world.turn("I work at Google."))
    rows = dict(world.harness.rows.local)
    turn = world.turn("I work at Stripe.", turn_id="t2", key=b"another key", partition=RIGHT)
    await world.deliver(turn)
    (sent,) = world.harness.on(TURNS.name)
    assert (sent.key, sent.value, world.harness.rows.local) == (KEY, turn.value, rows)
    await world.deliver(world.again(sent))
    assert [r.turn_number for r in world.observed()] == [1, 2]


async def test_one_without_a_key_that_happens_to_lie_right_is_handled_under_its_session() -> None:
    world = new_world()
    await world.deliver(world.turn("I work at Google.", key=None, partition=RIGHT))
    assert [r.turn_number for r in world.observed()] == [1]
    assert [key for key in world.harness.rows.local if not key.startswith(INDEX)] == [KEY.decode()]
    assert world.harness.on(TURNS.name) == []


async def test_the_second_time_it_is_a_dead_letter_and_touches_no_table() -> None:
    world = new_world()
    turn = world.turn("x", partition=WRONG, headers=(("memstream-rekeyed", b"1"),))
    await world.deliver(turn)
    (letter,) = world.harness.on(LETTERS)
    assert (letter.key, letter.value) == (turn.key, turn.value)
    assert world.dead_letters()[0]["memstream-reason"] == "invalid"
    assert world.harness.rows.local == {}
    assert world.harness.on(TURNS.name) == []


async def test_the_header_alone_does_not_matter_where_it_lies_right() -> None:
    world = new_world()
    await world.deliver(world.turn("x", headers=(("memstream-rekeyed", b"1"),)))
    assert len(world.observed()) == 1


async def test_an_invalid_turn_is_refused_where_it_lies() -> None:
    world = new_world()
    await world.deliver(world.turn("x", "", partition=WRONG))
    assert [sent.topic for sent in world.harness.sent] == [LETTERS]


async def test_delivered_again_it_is_sent_again_and_the_second_is_a_duplicate() -> None:
    world = new_world()
    turn = misplaced(world, None)
    await world.deliver(turn, turn)
    one, two = world.harness.sent
    assert one == two
    await world.deliver(world.again(one), world.again(two))
    assert [r.turn_number for r in world.observed()] == [1]


async def test_a_misplaced_command_is_a_dead_letter() -> None:
    world = new_world()
    command = world.command()
    wrong = world.topics.record(COMMANDS_SESSION.name, command.key, command.value, partition=WRONG)
    await world.deliver(wrong)
    assert [sent.topic for sent in world.harness.sent] == [COMMANDS_SESSION.name + ".dlq"]
    assert world.harness.rows.local == {}
