"""Turns that come twice, late, out of their order, with holes between them, or all of them once more."""

from __future__ import annotations

import json
import random

import pytest
from aiokafka import AIOKafkaProducer

from memstream.schemas import ids
from memstream.schemas.topics import OBSERVATIONS, STAGES, TURNS
from memstream.streams.log.broker_url import kafka_servers
from memstream.streams.log.partitioner import partition_for
from tests.support.faults import check_all_remembered, said_by, written_since
from tests.support.model_server import ModelServer
from tests.support.pipeline import Json, Pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120, func_only=True)]
USERS = tuple(f"u{n}" for n in range(12))


def key_of(pipeline: Pipeline, turn: Json) -> bytes:
    return ids.session_key(pipeline.tenant, turn["user_id"], turn["session_id"]).encode()


def interleaved(rng: random.Random, queues: list[list[Json]]) -> list[Json]:
    """One of the queues' turns after the other, each queue in its order."""
    waiting = [list(queue) for queue in queues]
    mixed: list[Json] = []
    while waiting := [queue for queue in waiting if queue]:
        mixed.append(rng.choice(waiting).pop(0))
    return mixed


def sometimes_twice(rng: random.Random, turns: list[Json]) -> list[Json]:
    """Some come again, at once or after a few others; and then perhaps with other words under the same id."""
    sent: list[Json] = []
    for turn in turns:
        sent.append(turn)
        while rng.random() < 0.4:
            earlier = rng.choice(sent[-5:])
            other = {**earlier, "messages": [{"role": "user", "content": "I work at Google, or so I say."}]}
            sent.append(rng.choice([earlier, other]))
    return sent


@pytest.mark.fault(
    broken="a replayer: duplicates, also with other words, and then the whole log once more",
    holds="I1 I7; nobody is asked again, nothing is told again",
)
async def test_turns_that_come_again_have_no_effect_again(
    pipeline: Pipeline, model: ModelServer, fault_seed: int
) -> None:
    rng = random.Random(fault_seed)
    pipeline.spawn(*STAGES, MEMSTREAM_SESSION_TIMEOUT="10")
    await pipeline.produce(*interleaved(rng, [sometimes_twice(rng, said_by(user)) for user in USERS]))
    await pipeline.settled()
    await check_all_remembered(pipeline, USERS, consolidated=True)
    asked, told, known = len(model.asks), len(await pipeline.updates()), pipeline.stored()
    for record in await written_since(pipeline, TURNS.name):
        await pipeline.log.append(TURNS.name, key=record.key, value=record.value, headers=record.headers)
    await pipeline.settled()
    assert (len(model.asks), len(await pipeline.updates())) == (asked, told)
    assert pipeline.stored() == known
    await pipeline.verified()
    pipeline.stop()


@pytest.mark.fault(
    broken="turns whose times go back and forth, of sessions that alternate, with holes in their ids",
    holds="order is order of arrival; I1 I7",
)
async def test_order_is_order_of_arrival_whatever_times_and_ids_say(
    pipeline: Pipeline, model: ModelServer, fault_seed: int
) -> None:
    rng = random.Random(fault_seed)
    pipeline.spawn(*STAGES, MEMSTREAM_SESSION_TIMEOUT="10")
    queues = []
    for user in USERS[:6]:
        for session in ("first", "second"):  # two of one owner: their facts meet
            turns = [turn | {"session_id": session} for turn in said_by(user)]
            rng.shuffle(turns)
            names = rng.sample(range(1_000), len(turns))
            queues.append([turn | {"turn_id": f"t{name}"} for turn, name in zip(turns, names, strict=True)])
    sent = interleaved(rng, queues)
    await pipeline.produce(*sent)
    await pipeline.settled()
    arrived: dict[tuple[str, str], list[str]] = {}
    for turn in sent:
        arrived.setdefault((turn["user_id"], turn["session_id"]), []).append(turn["turn_id"])
    numbered: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for record in await written_since(pipeline, OBSERVATIONS.name):
        fields = json.loads(record.value or b"")
        found = numbered.setdefault((fields["user_id"], fields["session_id"]), [])
        found.append((fields["turn_number"], fields["turn_id"]))
    assert {session: list(enumerate(names, 1)) for session, names in arrived.items()} == numbered
    await pipeline.consistent()
    await pipeline.verified()
    pipeline.stop()


@pytest.mark.fault(
    broken="holes in the offsets: transactions of a producer, some aborted, their markers last in the log",
    holds="aborted turns have no effect, the others one; I1 I7 I8",
)
async def test_transactions_of_a_producer_leave_holes_that_nothing_falls_into(
    pipeline: Pipeline, model: ModelServer
) -> None:
    pipeline.spawn(*STAGES, MEMSTREAM_SESSION_TIMEOUT="10")
    producer = AIOKafkaProducer(
        bootstrap_servers=kafka_servers(pipeline.broker), transactional_id=pipeline.tenant, request_timeout_ms=20_000
    )
    await producer.start()
    try:
        for turns in zip(*map(said_by, USERS), strict=True):
            for aborted in (True, False):
                await producer.begin_transaction()
                for turn in turns:
                    said = turn | {"tenant_id": pipeline.tenant}
                    if aborted:
                        said |= {"turn_id": f"aborted-{turn['turn_id']}"}
                    await say(pipeline, producer, said)
                await (producer.abort_transaction() if aborted else producer.commit_transaction())
    finally:
        await producer.stop()
    await pipeline.settled()
    assert not any("aborted" in value.decode() for value in await pipeline.observed())
    await check_all_remembered(pipeline, USERS, consolidated=True)
    await pipeline.verified()
    pipeline.stop()


async def say(pipeline: Pipeline, producer: AIOKafkaProducer, turn: Json) -> None:
    key = key_of(pipeline, turn)
    partition = partition_for(key, await pipeline.log.partitions(TURNS.name) or 1)
    await producer.send(TURNS.name, json.dumps(turn).encode(), key=key, partition=partition)
