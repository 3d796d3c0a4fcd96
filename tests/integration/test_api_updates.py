"""Turns in and changes out over a real socket, on the folder and on a real broker: whoever comes back with the id of
the last event misses nothing and gets nothing twice, also from another server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from memstream.api.app import new_followers
from memstream.api.credentials import Credentials
from memstream.api.limits import Limits
from memstream.api.updates import Audience
from memstream.schemas.facts import FactUpdated
from memstream.schemas.topics import FACTS_UPDATED, TURNS
from memstream.schemas.turns import Owner
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.kafka import KafkaLog
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Log, Position, Record, TopicSpec
from tests.support.api_server import app_over, bearer, entry, served
from tests.support.record_builders import stored_fact
from tests.support.sse import Stream, streaming

pytestmark = pytest.mark.timeout(180)
PARTITIONS = 3
TOKENS = Credentials(
    [
        entry("acme"),
        entry("rival", tenants=["rival"]),
        entry("u1", users=["u1"]),
        entry("secret", scopes=["memory:read", "memory:read-secret"]),
    ]
)


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Log]:
    made: Log
    if request.param == "kafka":
        made = KafkaLog(servers=[request.getfixturevalue("own_kafka").bootstrap], timeout=30)
    else:
        made = EmbeddedLog(folder=tmp_path / "log")
    await made.start()
    await made.create([TopicSpec(topic.name, PARTITIONS, 1, {}) for topic in (TURNS, FACTS_UPDATED)])
    try:
        yield made
    finally:
        await made.close()


class Server:
    """One server over the log; `url` while it runs."""

    def __init__(self, log: Log, limits: Limits | None = None) -> None:
        self.log, self.limits = log, limits or Limits(heartbeat_seconds=0.3)

    async def __aenter__(self) -> str:
        self.followers = new_followers(self.log, self.limits)
        app = app_over(log=self.log, followers=self.followers, limits=self.limits, credentials=TOKENS)
        self._served = served(app, limits=self.limits, followers=self.followers)
        return await self._served.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        await self._served.__aexit__(*error)


async def change(log: Log, n: int, *, tenant: str = "acme", user: str = "u1", **fields: Any) -> str:
    """A change on the topic as the reflector writes it; its event id."""
    owner = Owner(scope="user", id=user)
    fact = stored_fact(f"Fact {n}", changes={"tenant_id": tenant, "owner": owner} | fields).public()
    event = FactUpdated(
        event_id=f"{tenant}-{user}-{n}", action="new", at=fact.recorded_at, tenant_id=tenant, owner=owner, fact=fact
    )
    await log.append(FACTS_UPDATED.name, key=owner.key(tenant).encode(), value=event.to_bytes())
    return event.event_id


def told(stream: Stream) -> list[str]:
    return [block.json["event_id"] for block in stream.blocks if block.event == "fact.updated"]


async def test_a_turn_lies_where_its_session_belongs(log: Log) -> None:
    turn = {
        "user_id": "ü/1", "session_id": "s1", "turn_id": "t1", "messages": [{"role": "user", "content": "Hi"}],
        "unknown": {"a": [1]},
    }  # fmt: skip
    async with Server(log) as url, httpx.AsyncClient(base_url=url, headers=bearer("acme")) as client:
        answer = await client.post("/v1/turns", json=turn)
    assert answer.status_code == 202
    (record,) = [record async for record in log.read(TURNS.name)]
    key = b"acme/%C3%BC%2F1/s1"
    assert (record.key, json.loads(record.value or b"")) == (key, turn | {"tenant_id": "acme"})
    assert answer.json() == {
        "topic": TURNS.name, "partition": partition_for(key, PARTITIONS), "offset": 0, "turn_id": "t1"
    }  # fmt: skip
    assert record.position.partition == answer.json()["partition"]


async def test_streams_resume_at_another_server_with_nothing_missing_and_nothing_twice(log: Log) -> None:
    """Owners lie on all partitions; others' changes lie between; the stream breaks off after each few events."""
    wanted = [await change(log, n, user=f"u{n % 5}") for n in range(10)]
    for n in range(10):
        await change(log, n, tenant="rival")
    heard: list[str] = []
    last: str | None = None
    async with Server(log) as url:
        for take in (3, 1, 2):
            async with streaming(url, last=last, begin="beginning", headers=bearer("acme")) as stream:
                await stream.changes(take)
                heard, last = heard + told(stream), stream.last
    wanted += [await change(log, n, user=f"u{n % 5}") for n in range(10, 20)]  # nobody serves
    async with Server(log) as url, streaming(url, last=last, headers=bearer("acme")) as stream:
        wanted.append(await change(log, 20))
        await stream.changes(len(wanted) - len(heard))
        heard += told(stream)
    assert sorted(heard) == sorted(wanted)
    for user in range(5):
        mine = [each for each in heard if each.startswith(f"acme-u{user}-")]
        assert mine == [each for each in wanted if each in mine], "those of an owner in their order"


async def test_who_is_cut_off_before_the_first_change_loses_none(log: Log) -> None:
    async with Server(log) as url:
        async with streaming(url, headers=bearer("acme")) as stream:
            assert stream.last is not None
        missed = await change(log, 1)
        async with streaming(url, last=stream.last, headers=bearer("acme")) as again:
            (block,) = await again.changes(1)
            assert block.json["event_id"] == missed


def test_a_change_of_another_owner_is_not_decoded() -> None:
    fact = stored_fact("Likes tea").public()
    event = FactUpdated(
        event_id="e1", action="new", at=fact.recorded_at, tenant_id=fact.tenant_id, owner=fact.owner, fact=fact
    )
    audience = Audience(fact.tenant_id, fact.owner, "internal")
    for key, heard in (
        (fact.owner.key(fact.tenant_id), True),
        (Owner(scope="user", id="u9").key(fact.tenant_id), False),
    ):
        record = Record(Position(FACTS_UPDATED.name, 0, 0), key.encode(), event.to_bytes())
        assert audience.hears(record) is heard, key


async def test_each_hears_what_is_its_own(log: Log) -> None:
    async with (
        Server(log) as url,
        streaming(url, headers=bearer("acme")) as acme,
        streaming(url, headers=bearer("rival")) as rival,
        streaming(url, headers=bearer("u1")) as one,
        streaming(url, headers=bearer("acme"), user="u2") as two,
        streaming(url, headers=bearer("secret"), ceiling="secret") as secret,
    ):
        first, second = await change(log, 1), await change(log, 2, user="u2")
        hidden = await change(log, 3, sensitivity="secret")
        others = await change(log, 1, tenant="rival")
        last = await change(log, 4), await change(log, 5, user="u2"), await change(log, 6, tenant="rival")
        expected = [
            (acme, {first, second, last[0], last[1]}),
            (rival, {others, last[2]}),
            (one, {first, last[0]}),
            (two, {second, last[1]}),
            (secret, {first, second, hidden, last[0], last[1]}),
        ]
        for stream, events in expected:
            await stream.changes(len(events))
            assert set(told(stream)) == events


@pytest.mark.parametrize(
    ("token", "query"),
    [
        ("acme", {"tenant": "rival"}),
        ("u1", {"user": "u2"}),
        ("u1", {"scope": "org", "id": "o"}),
        ("acme", {"ceiling": "secret"}),
    ],
)
async def test_nobody_hears_what_the_token_does_not_allow(log: Log, token: str, query: dict[str, str]) -> None:
    async with Server(log) as url:
        with pytest.raises(httpx.HTTPStatusError) as refused:
            async with streaming(url, headers=bearer(token), **query):
                pass
    assert refused.value.response.status_code == 403


async def test_heartbeats_move_the_place_past_what_is_others(log: Log) -> None:
    async with Server(log) as url:
        async with streaming(url, headers=bearer("acme")) as stream:
            began = stream.last
            await change(log, 1, tenant="rival")
            async with asyncio.timeout(30):
                async for block in stream.iterator:
                    if block.comment == "heartbeat" and block.id not in (None, began):
                        break
        async with streaming(url, last=stream.last, headers=bearer("acme")) as again:
            event = await change(log, 2)
            await again.changes(1)
            assert told(again) == [event]


async def test_a_place_that_the_log_does_not_have_is_gone(log: Log) -> None:
    async with Server(log) as url:
        for last, status in (("1.OSw5LDk", 410), ("nonsense", 422)):  # 9,9,9
            with pytest.raises(httpx.HTTPStatusError) as refused:
                async with streaming(url, last=last, headers=bearer("acme")):
                    pass
            assert refused.value.response.status_code == status
            assert refused.value.response.headers["content-type"] == "application/problem+json"
            assert status != 410 or "memory.facts" in refused.value.response.json()["detail"]


async def test_there_are_as_many_streams_as_may_be_and_all_end_with_the_server(log: Log) -> None:
    limits = Limits(streams=2, heartbeat_seconds=0.3)
    server = Server(log, limits)
    url = await server.__aenter__()
    async with streaming(url, headers=bearer("acme")) as one, streaming(url, headers=bearer("acme")) as other:
        with pytest.raises(httpx.HTTPStatusError) as refused:
            async with streaming(url, headers=bearer("acme")):
                pass
        assert refused.value.response.status_code == 503
        assert "retry-after" in refused.value.response.headers
        ending = asyncio.create_task(server.__aexit__(None, None, None))
        for stream in (one, other):
            assert (await stream.ended()).json["reason"] == "shutdown"
    await ending
