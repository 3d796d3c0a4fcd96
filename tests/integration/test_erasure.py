"""Erasure of a user in the middle of traffic, on Kafka and in a folder: workers die at each step of it, and the run is
begun again. Nothing of the user is in a store, a table or a compacted topic afterwards, and nobody else lost anything.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memstream.schemas.erasures import ErasureReceipt
from memstream.schemas.topics import COMMANDS_SESSION, ERASURES, FACTS, PARKED, STAGES, changelog_of
from memstream.streams.log.broker_url import is_embedded
from memstream.tools.erasure.eraser import signed
from tests.support.model_server import Answer, Ask, ModelServer, nothing
from tests.support.openai_bodies import OBSERVATION
from tests.support.pipeline import CRASHED, Json, Pipeline, running, turn, wait_for
from tests.support.pipeline_places import BROKERS, Place, place_for

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]
ANA, BOB = "ana", "bob"
CANARY = re.compile(rb"ana\d+canary")
PACKED = re.compile(rb'"value":"([A-Za-z0-9+/]+=*)"')
"""The value of a record that a row keeps."""


def canary(user: str, n: int) -> str:
    return f"Knows the word {user}{n}canary"


def takes_down_everything(ask: Ask) -> Answer:
    if ask.task != "observations":
        return nothing(ask)
    item = {"durability": "permanent", "importance": 0.9, "category": "knowledge"}
    return {
        "observations": [
            {**OBSERVATION, **item, "turn": name, "content": line, "evidence": line}
            for name, text in ask.turns.items()
            for line in (each.partition(": ")[2] for each in text.splitlines())
            if line
        ]
    }


def said(user: str, n: int, **fields: Any) -> Json:
    """Return a turn that is said now."""
    now = datetime.now(UTC).isoformat()
    return turn(canary(user, n), n, user=user, session=f"s{n % 2}", occurred_at=now, **fields)


def in_team(user: str, n: int, text: str) -> Json:
    now = datetime.now(UTC).isoformat()
    return turn(text, n, user=user, session=f"team-{user}", scope="group", group_id="team", occurred_at=now)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(takes_down_everything) as server:
        yield server


@pytest.fixture(params=BROKERS)
async def pipeline(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, model: ModelServer
) -> AsyncIterator[Pipeline]:
    place: Place = place_for(request, tmp_path_factory)
    async with running(place.pipeline(model)) as ready:
        yield ready


async def compacted(pipeline: Pipeline) -> dict[str, bytes]:
    """Return the last record of each key of the compacted topics, as one text by topic and key."""
    topics = [FACTS.name, PARKED.name, ERASURES.name]
    topics += [changelog.name for stage in STAGES if (changelog := changelog_of(stage)) is not None]
    latest: dict[str, bytes] = {}
    for topic in topics:
        for record in await pipeline.records(topic):
            key = f"{topic}/{record.position.partition}/{(record.key or b'').decode('utf-8', 'replace')}"
            if record.value is None:
                latest.pop(key, None)
            else:
                packed = (base64.b64decode(each) for each in PACKED.findall(record.value) if len(each) % 4 == 0)
                latest[key] = b" ".join((key.encode(), record.value, *packed))
    mine, other = pipeline.tenant.encode(), f"{pipeline.tenant}-b".encode()
    return {key: value for key, value in latest.items() if mine in value and other not in value}


def shown(pipeline: Pipeline, user: str, tenant: str) -> list[set[str]]:
    """Return the texts of a user's facts, episodes and messages."""
    whose = ("--tenant", tenant, "--user", user)
    rows = pipeline.several(*(["show", kind, *whose] for kind in ("facts", "episodes", "turns")))
    return [{str(each["content"]) for each in kind} for kind in rows]


async def crash_while_erasing(pipeline: Pipeline, at: str) -> None:
    """Begin the erasure, and let a stage die at this step of it. The command is killed, too."""
    line = ("erase", "--tenant", pipeline.tenant, "--user", ANA)
    if is_embedded(pipeline.broker):  # the stages run in the process of the command
        await asyncio.to_thread(pipeline.cli, *line, expect=CRASHED, timeout=120, MEMSTREAM_CRASH_POINT=at)
        return
    dying = pipeline.spawn("all", MEMSTREAM_CRASH_POINT=at)
    command = asyncio.create_task(asyncio.to_thread(pipeline.cli, *line, expect=None, timeout=120))
    await wait_for(lambda: dying.poll() is not None, f"the crash at {at}", deadline=90, detail=pipeline.logs)
    assert dying.returncode == CRASHED
    pipeline.spawn("all")  # the command goes on with another worker
    await command


async def test_a_user_is_erased_in_the_middle_of_traffic(pipeline: Pipeline) -> None:
    other = f"{pipeline.tenant}-b"
    pipeline.spawn("all")
    first = [said(user, n) for user in (ANA, BOB) for n in range(4)]
    await pipeline.produce(*first, *(said(ANA, n, tenant_id=other) for n in range(2)))
    await pipeline.produce(in_team(ANA, 1, "The release is on Friday"), in_team(BOB, 1, "The release is on Friday"))
    await pipeline.produce(in_team(ANA, 2, canary(ANA, 99)))
    await pipeline.settled(deadline=90)
    for kind in ("tasks.add", "blocks.define", "procedures.define"):
        args: Json = {
            "tasks.add": {"content": canary(ANA, 50), "due_at": (datetime.now(UTC) + timedelta(days=1)).isoformat()},
            "blocks.define": {"name": "Notes", "value": canary(ANA, 51)},
            "procedures.define": {"name": "Deploy", "trigger": "now", "steps": [canary(ANA, 52)]},
        }[kind]
        await pipeline.command(kind, user=ANA, **args)
    await pipeline.settled(deadline=60)
    assert all(canary(ANA, n) in texts for texts in shown(pipeline, ANA, pipeline.tenant) for n in range(4))
    pipeline.stop()

    # the stage dies in the middle of the erasure, in a folder together with the command
    probes = await pipeline.log.partitions(COMMANDS_SESSION.name)
    for number, at in enumerate(
        (f"observer:store:{probes + 1}", "reflector:table", f"consolidation:store:{probes + 1}")
    ):
        await crash_while_erasing(pipeline, at)
        await pipeline.produce(said(ANA, 10 + number), said(BOB, 10 + number))
        pipeline.spawn("all")
        await pipeline.settled(deadline=90)
        pipeline.stop()
    pipeline.spawn("all")
    [made] = pipeline.json_lines("erase", "--tenant", pipeline.tenant, "--user", ANA, timeout=120)
    receipt = ErasureReceipt.from_payload(made)
    assert signed(receipt) == receipt
    assert {place.place: place.with_ids for place in receipt.places if place.with_ids} == {}
    await pipeline.produce(*first, said(BOB, 90))  # a redelivery from before, and traffic
    await pipeline.settled(deadline=90)

    assert shown(pipeline, ANA, pipeline.tenant) == [set(), set(), set()]
    states = await compacted(pipeline)
    assert [key for key, value in states.items() if CANARY.search(value) or "/ana" in key] == []
    assert any(b"bob0canary" in value for value in states.values())
    expected = {canary(BOB, n) for n in (*range(4), 10, 11, 12, 90)}
    facts, episodes, turns = shown(pipeline, BOB, pipeline.tenant)
    assert (facts, episodes) == (expected, expected)
    assert turns >= expected
    assert all(canary(ANA, n) in texts for texts in shown(pipeline, ANA, other) for n in range(2))
    [shared] = pipeline.json_lines("show", "facts", "--tenant", pipeline.tenant, "--scope", "group", "--id", "team")
    assert (shared["content"], [each["user_id"] for each in shared["evidence"]]) == ("The release is on Friday", [BOB])

    await pipeline.produce(said(ANA, 200))  # the user comes back
    await pipeline.settled(deadline=60)
    assert shown(pipeline, ANA, pipeline.tenant) == [{canary(ANA, 200)}] * 3
    [again] = pipeline.json_lines("erase", "--receipt", receipt.erasure_id)
    assert again == json.loads(receipt.model_dump_json())
    pipeline.stop()
