"""Dead letters on a log in a folder are put back: which, as what, how often, how fast."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from memstream.schemas.errors import DeadLetterReason, Poison, Transient
from memstream.schemas.topics import TURNS
from memstream.streams.engine.dead_letters import WHOLE_MAX_BYTES, dead_letter
from memstream.streams.engine.redrive import REDRIVEN, NotRedrivable, redrive_of, redriven_letter
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Headers, Log, Position, Record, TopicSpec
from memstream.tools.dead_letters.letters import LetterFilter
from memstream.tools.dead_letters.redriver import Redriver, RedriveStep

DLQ = TURNS.name + ".dlq"
PARTITIONS = 4
AT = 1_795_168_800_000


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EmbeddedLog]:
    log = EmbeddedLog(folder=tmp_path)
    await log.start()
    await log.create([TopicSpec(TURNS.name, PARTITIONS, 1, {}), TopicSpec(DLQ, 3, 1, {})])
    yield log
    await log.close()


async def refuse(
    log: Log,
    key: str | None = "acme/u1/s1",
    value: bytes | None = b'{"tenant_id": "acme"}',
    *,
    reason: DeadLetterReason = "refused_by_model",
    headers: Headers = (),
) -> str:
    """Append a record and its dead letter; return the name of the letter."""
    raw = None if key is None else key.encode()
    at = await log.append(TURNS.name, key=raw, value=value, headers=headers, timestamp=AT)
    refused = Record(at, raw, value, headers, AT)
    out = dead_letter(refused, stage="observer", reason=reason, error=Poison(reason, "no"), attempts=1)
    place = await log.append(DLQ, key=out.key, value=out.value, headers=out.headers)
    return f"{place.topic}/{place.partition}@{place.offset}"


async def redriven(log: Log, stop_after: int | None = None, through: Any = None, **fields: Any) -> list[RedriveStep]:
    redriver = Redriver(**{"log": through or log, "chosen": LetterFilter(), "rate": 10_000.0, "who": "cli:me"} | fields)
    steps: list[RedriveStep] = []
    async with aclosing(redriver.run((DLQ,))) as running:
        async for step in running:
            steps.append(step)
            if len(steps) == stop_after:
                break
    return steps


async def put_back(log: Log) -> list[Record]:
    return [each async for each in log.read(TURNS.name) if redriven_letter(each) is not None]


# ------------------------------------------------------------------------------------------------ as what
async def test_it_is_the_record_as_it_came_with_one_header(log: EmbeddedLog) -> None:
    came = (("ce_id", b"t1"), ("kafka_dlt-original-topic", b"of another tool"), ("memstream-masked", b"1"))
    letter = await refuse(log, headers=came)
    (step,) = await redriven(log)
    (back,) = await put_back(log)
    assert (back.key, back.value, back.timestamp) == (b"acme/u1/s1", b'{"tenant_id": "acme"}', AT)
    assert back.headers == (*came, (REDRIVEN, letter.encode()))
    assert back.position.partition == partition_for(b"acme/u1/s1", PARTITIONS)
    assert (step.action, step.redrive is not None and step.redrive.masked) == ("put_back", True)


async def test_a_record_of_another_partition_goes_where_its_key_belongs_now(log: EmbeddedLog) -> None:
    right = partition_for(b"acme/u1/s1", PARTITIONS)
    astray = Record(Position(TURNS.name, (right + 1) % PARTITIONS, 0), b"acme/u1/s1", b"{}", (), AT)
    out = dead_letter(astray, stage="observer", reason="invalid", error=Poison("invalid", "no"), attempts=1)
    await log.append(DLQ, key=out.key, value=out.value, headers=out.headers)
    await redriven(log)
    assert [each.position.partition for each in await put_back(log)] == [right]
    assert await redriven(log) == []


async def test_a_letter_of_a_letter_has_the_header_once(log: EmbeddedLog) -> None:
    await refuse(log)
    await redriven(log)
    (back,) = await put_back(log)
    out = dead_letter(back, stage="observer", reason="fatal", error=Poison("fatal", "no"), attempts=3)
    at = await log.append(DLQ, key=out.key, value=out.value, headers=out.headers)
    await redriven(log)
    again = (await put_back(log))[-1]
    assert [name for name, _ in again.headers] == [REDRIVEN]
    assert redriven_letter(again) == f"{DLQ}/{at.partition}@{at.offset}"
    assert await redriven(log) == []


async def test_what_cannot_be_put_back_is_named_and_the_others_go(log: EmbeddedLog) -> None:
    await refuse(log, value=b"x" * (WHOLE_MAX_BYTES + 1))
    await log.append(DLQ, key=b"acme/u1/s1", value=b"not ours")
    await refuse(log, value=None)
    steps = await redriven(log)
    assert [(step.action, step.why) for step in steps] == [
        ("failed", "its key or value was cut"),
        ("failed", "its headers do not name its record"),
        ("put_back", ""),
    ]


def test_a_letter_of_another_topic_is_refused() -> None:
    refused = Record(Position("memory.commands", 0, 0), b"k", b"v")
    out = dead_letter(refused, stage="reflector", reason="invalid", error=Poison("invalid", "no"), attempts=1)
    with pytest.raises(NotRedrivable, match="another topic"):
        redrive_of(Record(Position(DLQ, 0, 0), out.key, out.value, out.headers))


# ------------------------------------------------------------------------------------------------ which
@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (LetterFilter(), 4),
        (LetterFilter(reason="fatal"), 1),
        (LetterFilter(key="acme/u2/s1"), 1),
        (LetterFilter(tenant="zeta"), 1),
        (LetterFilter(reason="fatal", tenant="zeta"), 0),
    ],
)
async def test_filters(log: EmbeddedLog, chosen: LetterFilter, expected: int) -> None:
    await refuse(log)
    await refuse(log, reason="fatal")
    await refuse(log, "acme/u2/s1")
    await refuse(log, "zeta/u1/s1", b'{"tenant_id": "zeta"}')
    assert len(await redriven(log, chosen=chosen)) == expected
    assert len(await put_back(log)) == expected


async def test_a_limit_is_of_those_that_are_put_back_and_the_next_call_goes_on(log: EmbeddedLog) -> None:
    letters = [await refuse(log, f"acme/u{n}/s1") for n in range(5)]
    for expected in (2, 4, 5, 5):
        await redriven(log, limit=2)
        back = [redriven_letter(each) for each in await put_back(log)]
        assert len(back) == len(set(back)) == expected
    assert set(back) == set(letters)


async def test_a_dry_run_sends_nothing(log: EmbeddedLog) -> None:
    await refuse(log)
    await refuse(log)
    assert [step.action for step in await redriven(log, dry_run=True)] == ["would_put_back"] * 2
    assert len(await redriven(log, dry_run=True, limit=1)) == 1
    assert await put_back(log) == []


# ------------------------------------------------------------------------------------------------ how often
@pytest.mark.parametrize("keys", [["acme/u1/s1"] * 5, [f"acme/u{n}/s1" for n in range(5)], [None] * 5])
async def test_killed_in_the_middle_and_called_again_each_is_put_back_once(
    log: EmbeddedLog, keys: list[str | None]
) -> None:
    letters = [await refuse(log, key) for key in keys]
    for stop_after in range(1, 6):
        await redriven(log, stop_after=1)
        assert len(await put_back(log)) == stop_after
        await log.append(TURNS.name, key=b"acme/u1/s1", value=b"later")
    assert await redriven(log) == []
    assert sorted(str(redriven_letter(each)) for each in await put_back(log)) == sorted(letters)


async def test_a_letter_that_lies_behind_that_of_a_later_record_is_found(log: EmbeddedLog) -> None:
    refused = [await log.append(TURNS.name, key=b"acme/u1/s1", value=b"{}", timestamp=AT) for _ in range(4)]
    for at in (refused[0], refused[3]):
        record, error = Record(at, b"acme/u1/s1", b"{}", (), AT), Poison("invalid", "no")
        out = dead_letter(record, stage="observer", reason="invalid", error=error, attempts=1)
        await log.append(DLQ, key=out.key, value=out.value, headers=out.headers)
        await redriven(log, limit=1)
    late = Record(Position(TURNS.name, refused[0].partition, 90), b"acme/u1/s1", b"{}", (), AT)
    out = dead_letter(late, stage="observer", reason="invalid", error=Poison("invalid", "no"), attempts=1)
    await log.append(DLQ, key=out.key, value=out.value, headers=out.headers)
    assert len(await redriven(log)) == 1
    assert len(await put_back(log)) == 3


class LosesAnswers:
    """A log that appends a record and says that the broker is away."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, topic: str, **fields: Any) -> Position:
        await self._log.append(topic, **fields)
        raise Transient("broker", "away")


async def test_an_append_whose_answer_is_lost_is_found(log: EmbeddedLog) -> None:
    await refuse(log)
    with pytest.raises(Transient):
        await redriven(log, through=LosesAnswers(log))
    assert await redriven(log) == []
    assert len(await put_back(log)) == 1


async def test_a_rate_is_kept(log: EmbeddedLog) -> None:
    for _ in range(4):
        await refuse(log)
    begin = asyncio.get_running_loop().time()
    await redriven(log, rate=20.0)
    assert asyncio.get_running_loop().time() - begin >= 3 / 20
