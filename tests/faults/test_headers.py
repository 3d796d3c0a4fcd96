"""Records with header names that are not UTF-8: whoever can write to a topic can write them, the broker takes them."""

from __future__ import annotations

import json

import pytest

from memstream.schemas import ids
from memstream.schemas.cloudevents import REKEYED_HEADER
from memstream.schemas.topics import TURNS
from memstream.streams.log.partitioner import partition_for
from tests.support.pipeline import Json, Pipeline, turn
from tests.support.raw_records import GZIP, NONE, Header, Odd, send_odd

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120)]
NAMES: tuple[Header, ...] = ((b"\xff\xfe", b"x"), (b"r\xe9sum\xe9", None))
READ = [(r"\xff\xfe", b"x"), (r"r\xe9sum\xe9", b"")]
PARTITIONS = 12


@pytest.mark.fault(
    broken="header names that are not UTF-8, among records of one batch",
    holds="handled or a dead letter like any other, neighbours too; the commands read such topics",
)
@pytest.mark.parametrize("compression", [NONE, GZIP], ids=["plain", "gzip"])
async def test_a_header_name_that_is_not_utf_8_stops_nobody(pipeline: Pipeline, compression: int) -> None:
    pipeline.spawn("recorder", "observer", "reflector")
    user, tenant = "u1", pipeline.tenant
    key = ids.session_key(tenant, user, "s1").encode()
    partition = partition_for(key, PARTITIONS)

    def told(text: str, n: int) -> bytes:
        given: Json = turn(text, n, user=user, tenant_id=tenant)
        return json.dumps(given).encode()

    batch: list[Odd] = [
        (key, told("I work at Google.", 1), []),
        (key, told("By the way, my name is Jake.", 2), NAMES),
        (key, b"{no JSON", NAMES),
        (key, told("I like green tea.", 3), []),
    ]
    server = pipeline.broker.removeprefix("kafka://")
    positions = await send_odd(server, TURNS.name, partition, batch, compression=compression)
    misplaced = (partition + 1) % PARTITIONS
    await send_odd(server, TURNS.name, misplaced, [(key, told("I joined Stripe last week.", 4), NAMES)])
    await pipeline.produce(turn("My friend Jennifer lives in Oslo.", 5, user=user))  # the next one of the key
    await pipeline.settled("recorder", "observer", "reflector")

    stored = pipeline.shown("turns")[tenant]["turns"]
    assert {row["turn_id"] for row in stored} == {"t1", "t2", "t3", "t4", "t5"}
    facts = await pipeline.consistent()
    assert {fact["content"] for fact in facts.values() if fact["state"] == "active"} == {
        "Works at Stripe", "Name is Jake", "Likes green tea", "Lives in Oslo"
    }  # fmt: skip
    (letter,) = await pipeline.dead_letters()
    assert (letter.key, letter.value, list(letter.headers)[:2]) == (key, b"{no JSON", READ)
    assert int(dict(letter.headers)["kafka_dlt-original-offset"]) == positions[2].offset
    (again,) = [r for r in await pipeline.records(TURNS.name) if r.key == key and REKEYED_HEADER in dict(r.headers)]
    assert (again.position.partition, list(again.headers)) == (partition, [*READ, (REKEYED_HEADER, b"1")])
    assert r"r\xe9sum\xe9" in pipeline.cli(
        "dlq", "show", letter.position.topic, str(letter.position.partition), str(letter.position.offset)
    )
    await pipeline.verified("recorder", "observer", "reflector")
