"""Turns without a key, with another key, or by another partitioner: the same memory as turns with the right one."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

from memstream.schemas import ids
from memstream.schemas.cloudevents import REKEYED_HEADER
from memstream.schemas.topics import TURNS
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Headers, Position, Record
from tests.support.conversation import ACTIONS, CONVERSATION, KNOWN, STATES
from tests.support.model_server import ModelServer, observing
from tests.support.pipeline import Json, Pipeline, actions, turn, wait_for
from tests.support.pipeline_places import BROKERS, Place, place_for
from tests.support.whole_worker import parsed, told, whole

pytestmark = [pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="module")]
STARTED = int(time.time() * 1000) - 3_600_000
TRACE: Headers = (("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), ("x", b"\xff\x00"))


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(observing(KNOWN)) as server:
        yield server


@pytest.fixture(scope="module", params=BROKERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_for(request, tmp_path_factory)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(place: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with whole(place, model, env={"MEMSTREAM_TIER": "free"}) as running:
        yield running


def written(user: str, tenant: str) -> list[tuple[bytes, int]]:
    """The conversation as some JavaScript would write it: spaces, an unknown field, escapes; and without times, which
    come from the record's timestamp then. (value, timestamp)"""
    made = []
    for n, text in enumerate(CONVERSATION, start=1):
        fields = turn(text, n, user=user, tenant_id=tenant, clientVersion="1.2 – β", metadata={"n": 1.0})
        del fields["occurred_at"]
        made.append((json.dumps(fields, indent=1).encode() + b"\r\n", STARTED + n * 1_000))
    return made


class Sessions:
    """Users whose one session is produced in one way each."""

    def __init__(self, pipeline: Pipeline, partitions: int) -> None:
        self._pipeline = pipeline
        self.partitions = partitions

    def key(self, user: str) -> bytes:
        return ids.session_key(self._pipeline.tenant, user, "s1").encode()

    def right(self, user: str) -> int:
        return partition_for(self.key(user), self.partitions)

    def crc32(self, user: str) -> int:
        """librdkafka's own default."""
        return zlib.crc32(self.key(user)) % self.partitions

    def where_it_matters(self, name: str) -> str:
        """A user like `name` whose session lies elsewhere by user id, and elsewhere by the other partitioner."""
        for n in range(100):
            user = f"{name}{n}"
            if self.right(user) not in (self.crc32(user), partition_for(user.encode(), self.partitions)):
                return user
        raise AssertionError("no such user")

    async def produce(self, value: bytes, at: int, *, key: bytes | None, partition: int | None = None) -> Position:
        log = self._pipeline.log
        return await log.append(TURNS.name, key=key, value=value, headers=TRACE, partition=partition, timestamp=at)


async def of_session(pipeline: Pipeline, user: str) -> list[Record]:
    """The records of a user's turns on memory.turns."""
    wanted = ("user_id", user), ("tenant_id", pipeline.tenant)
    return [
        record
        for record in await pipeline.records(TURNS.name)
        if (fields := parsed(record.value)) and all(fields.get(name) == value for name, value in wanted)
    ]


def by_owner(pipeline: Pipeline, user: str, rows: list[Json]) -> list[Any]:
    owner = ids.owner_key(pipeline.tenant, "user", user)
    return sorted((told(row, USER=user, OWNER=owner) for row in rows), key=json.dumps)


@pytest.mark.long
async def test_turns_that_lie_wrong_become_the_same_memory(pipeline: Pipeline, model: ModelServer) -> None:
    partitions = await pipeline.log.partitions(TURNS.name)
    sessions = Sessions(pipeline, partitions or 0)
    right, keyless, other_key, partitioner = users = [
        sessions.where_it_matters(name) for name in ("right", "keyless", "otherkey", "librdkafka")
    ]
    for user in (right, other_key, partitioner):
        key = user.encode() if user == other_key else sessions.key(user)
        for value, at in written(user, pipeline.tenant):
            partition = sessions.crc32(user) if user == partitioner else None
            await sessions.produce(value, at, key=key, partition=partition)
    await pipeline.settled()
    asked = len(model.asks)
    for n, (value, at) in enumerate(written(keyless, pipeline.tenant)):  # round robin; the first lies right by chance
        partition = (sessions.right(keyless) + n) % sessions.partitions
        await sessions.produce(value, at, key=None, partition=partition)
        await wait_for(lambda n=n: len(model.asks) > asked + n, "its observation")  # type: ignore[misc]
    value, at = written(right, pipeline.tenant)[0]
    wrong = (sessions.right(right) + 1) % sessions.partitions
    await sessions.produce(value, at, key=None, partition=wrong)  # sent twice, the second time by another producer
    await pipeline.settled()

    updates = await pipeline.updates()
    results: dict[str, list[Any]] = {user: [] for user in users}
    for user in users:
        mine = [event for event in updates if event.owner.id == user]
        assert actions(mine) == ACTIONS, user
        results[user].append([told(json.loads(event.to_bytes()), USER=user) for event in mine])
    for found in pipeline.shown("facts", "episodes", "working", "turns")[pipeline.tenant].values():
        for user in users:
            mine_too = [row for row in found if (row["user_id"] if "user_id" in row else row["owner"]["id"]) == user]
            results[user].append(by_owner(pipeline, user, mine_too))
    assert {fact["content"]: fact["state"] for fact in results[right][1]} == STATES
    assert len(results[right][4]) == len(CONVERSATION)
    for user in users[1:]:
        assert results[user] == results[right], user
    assert len({(json.loads(v)["user_id"], json.loads(v)["turn_id"]) for v in await pipeline.observed()}) == len(
        await pipeline.observed()
    ) == 4 * len(CONVERSATION)  # fmt: skip

    for user, misplaced in ((right, 1), (keyless, len(CONVERSATION)), (other_key, 8), (partitioner, 8)):
        await resent_exactly(pipeline, sessions, user, misplaced)
    assert await pipeline.dead_letters() == []


async def resent_exactly(pipeline: Pipeline, sessions: Sessions, user: str, misplaced: int) -> None:
    """Each misplaced record has one twin on the right partition, under the right key, equal otherwise."""
    found = await of_session(pipeline, user)
    lies_right = [record for record in found if record.position.partition == sessions.right(user)]
    twins = [record for record in lies_right if (REKEYED_HEADER, b"1") in record.headers]
    originals = [record for record in found if record not in lies_right]
    by_chance = sum(record.key is None for record in lies_right)
    assert len(originals) == len(twins) == misplaced - by_chance
    assert {record.key for record in twins} == {sessions.key(user)}

    def of(record: Record) -> tuple[object, ...]:
        return record.value, record.timestamp, tuple(h for h in record.headers if h[0] != REKEYED_HEADER)

    assert sorted(map(of, twins)) == sorted(map(of, originals))
    assert all(record.headers[: len(TRACE)] == TRACE for record in twins)


async def test_one_that_was_sent_again_and_still_lies_wrong_is_a_dead_letter(
    pipeline: Pipeline, model: ModelServer
) -> None:
    """Parties that disagree on the partition count would send it round for ever. Put back rightly it is observed."""
    sessions = Sessions(pipeline, await pipeline.log.partitions(TURNS.name) or 0)
    user = sessions.where_it_matters("lost")
    before = len(await pipeline.dead_letters())
    value, at = written(user, pipeline.tenant)[0]
    headers = (*TRACE, (REKEYED_HEADER, b"1"))
    wrong = (sessions.right(user) + 1) % sessions.partitions
    position = await pipeline.log.append(
        TURNS.name, key=sessions.key(user), value=value, headers=headers, partition=wrong, timestamp=at
    )
    await pipeline.settled()
    (letter,) = (await pipeline.dead_letters())[before:]
    assert (letter.key, letter.value, letter.headers[: len(headers)]) == (sessions.key(user), value, headers)
    assert (
        dict(letter.headers).items()
        >= {
            "kafka_dlt-original-topic": TURNS.name.encode(),
            "kafka_dlt-original-partition": b"%d" % wrong,
            "kafka_dlt-original-offset": b"%d" % position.offset,
            "kafka_dlt-original-timestamp": b"%d" % at,
            "kafka_dlt-original-consumer-group": b"memory-observer",
            "memstream-stage": b"observer",
            "memstream-reason": b"invalid",
            "memstream-attempts": b"1",
            "memstream-tenant": pipeline.tenant.encode(),
        }.items()
    )
    assert len(await of_session(pipeline, user)) == 1
    assert not any(json.loads(value)["user_id"] == user for value in await pipeline.observed())
    assert not any(row["user_id"] == user for row in pipeline.shown("turns")[pipeline.tenant]["turns"])
    await sessions.produce(value, at, key=sessions.key(user))
    await pipeline.settled()
    (observed,) = [json.loads(value) for value in await pipeline.observed() if json.loads(value)["user_id"] == user]
    assert (observed["turn_id"], observed["turn_number"]) == ("t1", 1)
    assert len(await pipeline.dead_letters()) == before + 1
    (message,) = [row for row in pipeline.shown("turns")[pipeline.tenant]["turns"] if row["user_id"] == user]
    assert message["content"] == CONVERSATION[0]
