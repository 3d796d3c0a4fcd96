"""Maintenance, prune and digest of many owners on a real broker, by two workers of which one dies in the middle: each
has its effect once, and memory ends as if nobody had died."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from memstream.schemas.commands import Command, CommandResult
from memstream.schemas.topics import COMMANDS, RESULTS, group_of
from memstream.schemas.turns import Owner
from memstream.streams.partitioner import partition_for
from tests.support.model_server import Answer, Ask, ModelServer, observing
from tests.support.pipeline import CRASHED, Json, Pipeline, running, turn, wait_for
from tests.support.qdrant import QdrantServer

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(240)]
PARTITIONS = 12
LASTING: Json = {"durability": "persistent", "importance": 0.7}
SAID: dict[str, Any] = {
    "ran a marathon": [{"content": "Ran a marathon in Oslo", "category": "event", **LASTING}],
    "like tea": [{"content": "Likes tea", "category": "preference", **LASTING}],
    "red car": [{"content": "Saw a red car", "category": "attribute", **LASTING}],
}
LONG_AGO = datetime.now(UTC) - timedelta(days=50)
KINDS: tuple[tuple[str, dict[str, JsonValue]], ...] = (
    ("hygiene", {"run": "reflect"}),
    ("prune", {"force": True}),
    ("digest", {}),
)


def thinking(ask: Ask) -> Answer:
    """Other words at each ask: what is decided twice would be seen."""
    if ask.task == "prune":
        removal: JsonValue = {"fact_id": ask.prompt.id_of("Saw a red car"), "reason": f"noise, ask {ask.number}"}
        return {"removals": [removal], "merges": []}
    return {"text": f"Drinks tea, says ask {ask.number}."} if ask.task == "digest" else observing(SAID)(ask)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(thinking) as server:
        yield server
        assert server.script_errors == ()


@pytest.fixture
async def pipeline(
    tmp_path: Path, kafka_broker: str, shared_qdrant: QdrantServer, model: ModelServer
) -> AsyncIterator[Pipeline]:
    made = Pipeline(
        folder=tmp_path,
        broker=f"kafka://{kafka_broker}",
        qdrant=shared_qdrant,
        model=model,
        policy="[memory.prune]\nfacts = 1\n",
    )
    async with running(made) as ready:
        yield ready


def owners_of_each_partition(tenant: str) -> list[Owner]:
    """One owner on every partition, so that each of two workers has some."""
    found: dict[int, Owner] = {}
    for n in itertools.count():
        if len(found) == PARTITIONS:
            return list(found.values())
        owner = Owner(scope="user", id=f"u{n}")
        found.setdefault(partition_for(owner.key(tenant).encode(), PARTITIONS), owner)
    raise AssertionError


async def test_upkeep_of_two_workers_has_one_effect_though_one_of_them_dies(pipeline: Pipeline) -> None:
    owners = owners_of_each_partition(pipeline.tenant)
    users = sorted(owner.id for owner in owners)
    pipeline.spawn("recorder", "observer", "reflector")
    counting = pipeline.spawn("consolidation")
    for user in users:
        await pipeline.produce(
            turn("I ran a marathon in Oslo.", 1, user=user, occurred_at=LONG_AGO.isoformat().replace("+00:00", "Z")),
            turn("I like tea.", 2, user=user),
            turn("I saw a red car.", 3, user=user),
        )
    await pipeline.settled()
    pipeline.end(counting)

    dying = pipeline.spawn("consolidation", MEMSTREAM_CRASH_POINT="consolidation:store:8")
    pipeline.spawn("consolidation")
    async with asyncio.timeout(60):
        while await pipeline.log.members(group_of("consolidation")) < 2:
            await asyncio.sleep(0.1)
    commands: dict[str, str] = {}
    for kind, args in KINDS:
        for owner in owners:
            command = Command(
                command_id=f"{kind}-{owner.id}-{pipeline.tenant}",
                kind=kind,
                tenant_id=pipeline.tenant,
                owner=owner,
                args=args,
                issued_at=datetime.now(UTC),
            )
            commands[command.command_id] = kind
            await pipeline.log.append(COMMANDS.name, key=command.key.encode(), value=command.to_bytes())
    await wait_for(lambda: dying.poll() is not None, "the death of one worker", 60)
    assert dying.returncode == CRASHED
    await pipeline.settled(deadline=90)

    results: dict[str, set[bytes]] = defaultdict(set)
    for record in await pipeline.records(RESULTS.name):
        result = CommandResult.read(record.value or b"")
        if result.command_id in commands:
            results[result.command_id].add(record.value or b"")
    assert set(results) == set(commands)
    assert {len(values) for values in results.values()} == {1}, "one decision each"
    counted: Counter[str] = Counter()
    for command_id, (value,) in results.items():
        told = CommandResult.read(value)
        assert told.status == "applied", told
        if commands[command_id] == "hygiene":
            assert told.result is not None
            counted.update({name: int(str(told.result[name])) for name in ("pruned", "merged", "derived", "compacted")})
    assert counted == {"pruned": len(users), "merged": 0, "derived": 0, "compacted": 0}

    facts = await pipeline.consistent()
    gold = {("Likes tea", "active", 1), ("Saw a red car", "expired", 2)}
    assert Counter(
        (each["owner"]["id"], each["content"], each["state"], each["version"]) for each in facts.values()
    ) == {(user, *fact): 1 for user in users for fact in gold}
    assert Counter(event.action for event in {each.event_id: each for each in await pipeline.updates()}.values()) == {
        "new": 2 * len(users),
        "pruned": len(users),
    }
    episodes = pipeline.json_lines("show", "episodes", "--tenant", pipeline.tenant, "--state", "all")
    assert Counter((each["owner"]["id"], each["content"]) for each in episodes if each["deleted_at"] is not None) == {
        (user, "Ran a marathon in Oslo"): 1 for user in users
    }
    digests = pipeline.json_lines("show", "digest", "--tenant", pipeline.tenant)
    assert sorted(each["owner"]["id"] for each in digests) == users
    assert await pipeline.letters(COMMANDS.name) == []
    await pipeline.verified()
    pipeline.stop()
