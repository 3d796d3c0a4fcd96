"""The reader of memory.policies over a real log: what is in force, what is refused, and what a new process finds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from memstream.cli.process.policy_reader import PolicyReader, read_policies
from memstream.memory.policies import MemoryPolicy
from memstream.memory.tenant_policies import TenantPolicies
from memstream.schemas.errors import Transient
from memstream.schemas.topics import POLICIES
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import Headers, Record, TopicSpec

DEADLINE = 20.0


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EmbeddedLog]:
    made = EmbeddedLog(folder=tmp_path)
    await made.start()
    any_time = {"message.timestamp.after.max.ms": str(2**62)}  # as brokers before Kafka 4 have it
    await made.create([TopicSpec(POLICIES.name, 1, 1, {**POLICIES.settings(), **any_time})])
    yield made
    await made.close()


async def put(log: EmbeddedLog, tenant: str, value: object, headers: Headers = ()) -> None:
    raw = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
    await log.append(POLICIES.name, key=tenant.encode(), value=raw, headers=headers)


def threshold(policies: TenantPolicies, tenant: str = "acme") -> float:
    return policies.of(tenant).capture.threshold


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not condition():
            await asyncio.sleep(0.01)


async def test_the_last_of_each_tenant_is_in_force(log: EmbeddedLog) -> None:
    await put(log, "acme", {"capture": {"threshold": 0.5}})
    await put(log, "b%2Fc", {"capture": {"threshold": 0.6}})
    await put(log, "acme", {"capture": {"threshold": 0.7}})
    policies = await read_policies(log, MemoryPolicy())
    assert [threshold(policies, each) for each in ("acme", "b/c", "other")] == [0.7, 0.6, 0.4]


async def test_what_comes_later_holds_without_a_restart(log: EmbeddedLog) -> None:
    await put(log, "acme", {"capture": {"threshold": 0.5}})
    reader = PolicyReader(log, TenantPolicies(MemoryPolicy()))
    await reader.read_whole()
    async with reader.following():
        await put(log, "acme", {"capture": {"threshold": 0.7}})
        await until(lambda: threshold(reader.policies) == 0.7)
        await put(log, "acme", None)
        await until(lambda: threshold(reader.policies) == 0.4)
        assert reader.states["acme"].in_force is None


async def test_a_wrong_one_is_told_and_the_last_good_one_stays(log: EmbeddedLog) -> None:
    await put(log, "acme", {"capture": {"threshold": 0.5}})
    for wrong in (b"\xff", {"capture": {"threshold": 7}}, {"nothing": {}}):
        await put(log, "acme", wrong)
    await put(log, "acme", {"capture": {"threshold": 0.6}}, headers=(("ce_type", b"memstream.policy.v2"),))
    await put(log, "other", {"capture": {"threshold": 0.8}})
    reader = PolicyReader(log, TenantPolicies(MemoryPolicy()))
    await reader.read_whole()
    assert (threshold(reader.policies), threshold(reader.policies, "other")) == (0.5, 0.8)
    state = reader.states["acme"]
    assert state.in_force == {"capture": {"threshold": 0.5}}
    assert state.refused == ("major version 2 is not supported; this version reads 1",)
    await put(log, "acme", {"capture": {"threshold": 0.6}})
    await reader.read_whole()
    assert reader.states["acme"].refused == ()


HOSTILE = (
    b"[" * 900 + b"]" * 900,
    b'{"a":' * 900 + b"1" + b"}" * 900,
    b'{"capture": {"threshold": 1e999}}',
    b'{"recall": {"limit": 1',
)
"""Nested deeply, a number that is none, cut off."""


@pytest.mark.parametrize("timestamp", [0, 2**62 - 1])
async def test_what_a_foreign_producer_writes_ends_no_reader(log: EmbeddedLog, timestamp: int) -> None:
    for value in HOSTILE:
        for key in (b"acme", b"", b"\xff", b"%zz/%00", None):
            await log.append(POLICIES.name, key=key, value=value, timestamp=timestamp)
    await put(log, "acme", {"capture": {"threshold": 0.5}})
    assert threshold(await read_policies(log, MemoryPolicy())) == 0.5


async def test_a_log_that_goes_away_is_read_again(log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PolicyReader, "pause", 0.01)
    reader = PolicyReader(log, TenantPolicies(MemoryPolicy()))
    await reader.read_whole()
    read, failures = log.read, iter((1, 1))

    def failing(*given: object, **named: object) -> object:
        if next(failures, None) is not None:
            raise Transient("broker", "away")
        return read(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(log, "read", failing)
    async with reader.following():
        await put(log, "acme", {"capture": {"threshold": 0.5}})
        await until(lambda: threshold(reader.policies) == 0.5)


async def test_what_is_read_again_comes_into_force_at_once(log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    await put(log, "acme", {"capture": {"threshold": 0.5}})
    await put(log, "gone", {"capture": {"threshold": 0.6}})
    reader = PolicyReader(log, TenantPolicies(MemoryPolicy()))
    await reader.read_whole()
    read, seen = log.read, []

    async def watched(topic: str, **named: Any) -> AsyncGenerator[Record, None]:
        async for record in read(topic, **named):
            yield record
            seen.append(threshold(reader.policies))

    async def without_gone(topic: str, **named: Any) -> AsyncGenerator[Record, None]:
        async for record in watched(topic, **named):
            if record.key != b"gone":  # compaction has deleted it, tombstone and all
                yield record

    await put(log, "acme", {"capture": {"threshold": 0.9}})
    await put(log, "acme", {"capture": {"threshold": 0.7}})
    monkeypatch.setattr(log, "read", without_gone)
    await reader.read_whole()
    assert seen
    assert set(seen) == {0.5}, "no policy of the past between the old one and the new one"
    assert [threshold(reader.policies, each) for each in ("acme", "gone")] == [0.7, 0.4]
    assert "gone" not in reader.states


async def test_a_log_without_the_topic_has_no_policies(tmp_path: Path) -> None:
    log = EmbeddedLog(folder=tmp_path)
    await log.start()
    assert (await read_policies(log, MemoryPolicy())).of("acme") == MemoryPolicy()
    await log.close()
