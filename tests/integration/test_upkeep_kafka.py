"""Upkeep on a real broker by two workers: maintenance that is asked for and what timers send, while workers die in the
middle of it, and while everything is told twice. Every count is as if one worker had done it once."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import JsonValue

from memstream.agents.consolidation.recall_counts import RecallRow, recall_row_key
from memstream.agents.consolidation.rows import Kind, ProgressRow
from memstream.agents.consolidation.steps.maintenance import COUNTS
from memstream.schemas import ids
from memstream.schemas.cloudevents import rfc3339
from memstream.schemas.commands import Command, CommandResult
from memstream.schemas.recall import RecalledRef, RecallReport
from memstream.schemas.topics import COMMANDS, RECALLED, RESULTS, changelog_of
from memstream.schemas.turns import Owner
from memstream.streams.engine.codec import tenant_of
from tests.support.faults import has_members, written_since
from tests.support.model_server import Answer, Ask, ModelServer, observing
from tests.support.partitioned_users import on_every_partition
from tests.support.pipeline import CRASHED, Json, Pipeline, running, turn, wait_for
from tests.support.pipeline_places import Place

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(240)]
PRUNE = "[memory.prune]\nfacts = 1\nchanged = 1\n"
BY_COMMAND = f'trigger = "manual"\nsummary_turns = 0\n{PRUNE}'
EVERY = timedelta(seconds=1)
BY_TIMER = f'trigger = "schedule"\nevery = {EVERY.total_seconds()}\nafter_run = 0.2\nsummary_turns = 0\n{PRUNE}'
AFTER_A_RUN: tuple[Kind, ...] = ("prune", "hygiene", "digest")
LONG_AGO, LATELY = (datetime.now(UTC) - timedelta(days=days) for days in (100, 1))
"""The first beyond both bounds of an episode: that of the janitor, and that of maintenance."""
LASTING: Json = {"durability": "persistent", "importance": 0.7}
SAID: dict[str, Any] = {
    "I ran a marathon": [{"content": "Ran a marathon in Oslo", "category": "event", **LASTING}],
    "I like tea": [{"content": "Likes tea", "category": "preference", **LASTING}],
    "I drink oolong": [{"content": "Drinks oolong", "category": "preference", **LASTING}],
    "I saw a red car": [{"content": "Saw a red car", "category": "attribute", **LASTING}],
}
TOGETHER = ("Likes tea", "Drinks oolong")
MERGED = "Likes tea and drinks oolong"
PATTERN = "Swims before breakfast, says ask "


def thinking(ask: Ask) -> Answer:
    """Other words at each ask: what is decided twice would be seen."""
    named = ask.prompt.id_of
    if ask.task == "consolidation":
        teas: list[JsonValue] = [each.id for each in ask.prompt.episodes.values() if each.content == "Likes tea"]
        fact: JsonValue = {
            "subject": "user",
            "content": f"{PATTERN}{ask.number}",
            "confidence": 0.6,
            "category": "pattern",
            "action": "new",
            "target_fact_id": None,
            "source_episode_ids": teas,
        }
        return {"facts": [fact]}
    if ask.task == "prune":
        removal: JsonValue = {"fact_id": named("Saw a red car"), "reason": f"noise, says ask {ask.number}"}
        sources: list[JsonValue] = [named("Likes tea"), named("Drinks oolong")]
        merge: JsonValue = {"source_fact_ids": sources, "merged_content": MERGED, "reason": f"ask {ask.number}"}
        return {"removals": [removal], "merges": [merge]}
    return {"text": f"Drinks tea, says ask {ask.number}."} if ask.task == "digest" else observing(SAID)(ask)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(thinking) as server:
        yield server


@pytest.fixture
async def pipeline(on_kafka: Place, model: ModelServer) -> AsyncIterator[Pipeline]:
    async with running(on_kafka.pipeline(model, consolidation="", policy=BY_COMMAND)) as ready:
        yield ready


# ------------------------------------------------------------------------------------------------ the two stories
async def test_what_timers_send_and_who_asks_for_has_one_effect_though_both_workers_die_in_the_middle(
    pipeline: Pipeline,
) -> None:
    """Two workers, each armed; whichever has whatever partitions, each dies, and the other goes on with what it left
    until its own time has come. Two more take over."""
    owners = await remembered(pipeline)
    counted = {key: row.counted_since for key, row in (await rows_of(pipeline, owners)).items()}
    pipeline.configure(BY_TIMER)
    await tell_of_recalls(pipeline, owners)
    asked = await ask_for_maintenance(pipeline, owners)
    pipeline.spawn("reflector")
    dying = [
        pipeline.spawn("consolidation", MEMSTREAM_CRASH_POINT=f"consolidation:{point}")
        for point in ("table:20", "publish:30")  # of 84 outcomes: a recall and six runs for each of twelve owners
    ]
    await wait_for(lambda: all(each.poll() is not None for each in dying), "the death of both workers", deadline=90)
    assert [each.returncode for each in dying] == [CRASHED, CRASHED]
    pipeline.spawn("consolidation")
    pipeline.spawn("consolidation")

    wanted: dict[str, dict[str, Kind]] = {}
    for key, since in counted.items():
        assert since is not None
        scheduled = ids.scheduled_command_id(key, since + EVERY)
        run = ids.run_id(key, scheduled)
        after: dict[str, Kind] = {ids.errand_command_id(run, kind, 0): kind for kind in AFTER_A_RUN}
        wanted[key] = {scheduled: "consolidate", **after, asked[key].first: "hygiene", asked[key].second: "hygiene"}
    await answered(pipeline, Counter(kind for each in wanted.values() for kind in each.values()))
    await pipeline.settled(deadline=90)
    before = await done_once(pipeline, owners, wanted, asked, consolidated=True)
    await has_members(pipeline, "consolidation", 2)
    await everything_again(pipeline)
    await pipeline.settled()
    assert await done_once(pipeline, owners, wanted, asked, consolidated=True) == before
    await is_whole(pipeline)


async def test_commands_that_two_workers_are_told_twice_have_one_effect(pipeline: Pipeline) -> None:
    owners = await remembered(pipeline)
    pipeline.spawn("reflector")
    both = [pipeline.spawn("consolidation"), pipeline.spawn("consolidation")]
    await has_members(pipeline, "consolidation", len(both))
    await tell_of_recalls(pipeline, owners)
    asked = await ask_for_maintenance(pipeline, owners)
    wanted: dict[str, dict[str, Kind]] = {}
    for key, owner in owners.items():
        wanted[key] = {asked[key].first: "hygiene", asked[key].second: "hygiene"}
        kinds: tuple[Kind, ...] = ("prune", "digest")
        for kind in kinds:
            told = command(pipeline, kind, owner)
            wanted[key][told.command_id] = kind
            await send(pipeline, told, told)
    await answered(pipeline, Counter(kind for each in wanted.values() for kind in each.values()))
    await pipeline.settled(deadline=90)
    logs = [path.read_text() for path in pipeline.folder.glob("worker-*-consolidation.log")]
    assert ["consolidation_run" in text for text in logs] == [True, True], "each has its share of the owners"
    before = await done_once(pipeline, owners, wanted, asked, consolidated=False)
    await everything_again(pipeline)
    await pipeline.settled()
    assert await done_once(pipeline, owners, wanted, asked, consolidated=False) == before
    await is_whole(pipeline)


# ------------------------------------------------------------------------------------------------ what is told
@dataclass(frozen=True)
class Asked:
    """Command ids of two maintenance runs of one owner, made at once; `first` is told twice."""

    first: str
    second: str


async def remembered(pipeline: Pipeline) -> dict[str, Owner]:
    """By key one owner on every partition, so that each worker has some; what they say is reflected, and counted."""
    users = on_every_partition(lambda user: ids.owner_key(pipeline.tenant, "user", user))
    worker = pipeline.spawn("all")
    for user in users:
        await pipeline.produce(
            turn("I ran a marathon in Oslo.", 1, user=user, occurred_at=rfc3339(LONG_AGO)),
            turn("I like tea, I drink oolong, and I saw a red car.", 2, user=user, occurred_at=rfc3339(LATELY)),
        )
    await pipeline.settled()
    pipeline.end(worker)
    owners = [Owner(scope="user", id=user) for user in users]
    return {owner.key(pipeline.tenant): owner for owner in owners}


def command(pipeline: Pipeline, kind: Kind, owner: Owner, **args: JsonValue) -> Command:
    return Command(
        command_id=str(uuid.uuid4()),
        kind=kind,
        tenant_id=pipeline.tenant,
        owner=owner,
        args=args,
        issued_at=datetime.now(UTC),
    )


async def send(pipeline: Pipeline, *commands: Command) -> None:
    for each in commands:
        await pipeline.log.append(COMMANDS.name, key=each.key.encode(), value=each.to_bytes())


async def ask_for_maintenance(pipeline: Pipeline, owners: Mapping[str, Owner]) -> dict[str, Asked]:
    asked = {}
    for key, owner in owners.items():
        first, second = (command(pipeline, "hygiene", owner, run="reflect") for _ in range(2))
        await send(pipeline, first, first, second)
        asked[key] = Asked(first.command_id, second.command_id)
    return asked


async def tell_of_recalls(pipeline: Pipeline, owners: Mapping[str, Owner]) -> None:
    """Of each owner two episodes that were recalled together, told twice."""
    found = await episodes_of(pipeline)
    for key, owner in owners.items():
        items = tuple(
            RecalledRef(tier="episodic", id=found[owner.id, content], rank=rank)
            for rank, content in enumerate(TOGETHER)
        )
        told = RecallReport(
            recall_id=str(uuid.uuid4()), tenant_id=pipeline.tenant, owner=owner, at=datetime.now(UTC), items=items
        )
        for _ in range(2):
            await pipeline.log.append(RECALLED.name, key=key.encode(), value=told.to_bytes())


async def everything_again(pipeline: Pipeline) -> None:
    """Every command and every recall of this tenant, also what the stages sent themselves: as workers do that die
    between a send and its commit."""
    for topic in (COMMANDS.name, RECALLED.name):
        for record in await written_since(pipeline, topic):
            if record.value is not None and tenant_of(record.value) == pipeline.tenant:
                await pipeline.log.append(topic, key=record.key, value=record.value)


# ------------------------------------------------------------------------------------------------ what came of it
async def episodes_of(pipeline: Pipeline) -> dict[tuple[str, str], str]:
    """Ids, by user and content, of the episodes that a fact was told of too."""
    return {
        (event.owner.id, event.fact.content): ids.episode_id(event.fact.evidence[0].observation_id)
        for event in await pipeline.updates()
    }


async def sent(pipeline: Pipeline) -> dict[str, list[Command]]:
    """The commands of this tenant by id, each as often as it was sent."""
    found: dict[str, list[Command]] = defaultdict(list)
    for record in await written_since(pipeline, COMMANDS.name):
        if record.value is not None and tenant_of(record.value) == pipeline.tenant:
            each = Command.read(record.value)
            found[each.command_id].append(each)
    return found


async def results(pipeline: Pipeline, of: Collection[str]) -> dict[str, set[bytes]]:
    """By command what was told of it, each different value once."""
    found: dict[str, set[bytes]] = defaultdict(set)
    for record in await written_since(pipeline, RESULTS.name):
        told = CommandResult.read(record.value or b"")
        if told.command_id in of:
            found[told.command_id].add(record.value or b"")
    return found


async def answered(pipeline: Pipeline, wanted: Counter[str], *, within: float = 90.0) -> None:
    """Until so many commands of each kind have a result."""
    missing = wanted
    try:
        async with asyncio.timeout(within):
            while missing:
                commands = await sent(pipeline)
                done = await results(pipeline, commands)
                missing = wanted - Counter(commands[each][0].kind for each in done)
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise AssertionError(f"no results within {within:.0f} s: {dict(missing)}\n{pipeline.logs()}") from None


async def changelog_rows(pipeline: Pipeline) -> dict[str, bytes]:
    """The rows of consolidation's table, as the next worker would restore them."""
    changelog = changelog_of("consolidation")
    assert changelog is not None
    records = await written_since(pipeline, changelog.name)
    return {record.key.decode(): record.value for record in records if record.key and record.value is not None}


async def rows_of(pipeline: Pipeline, owners: Collection[str]) -> dict[str, ProgressRow]:
    rows = await changelog_rows(pipeline)
    return {key: ProgressRow.read(rows[key]) for key in owners}


async def done_once(
    pipeline: Pipeline,
    owners: Mapping[str, Owner],
    wanted: Mapping[str, Mapping[str, Kind]],
    asked: Mapping[str, Asked],
    *,
    consolidated: bool,
) -> object:
    """`wanted`: by owner's key, of each command its kind. Returns what must not change any more."""
    commands = await sent(pipeline)
    rows = await rows_of(pipeline, owners)
    proposed: dict[str, str] = {}
    for key, of_owner in wanted.items():
        runs = rows[key].runs
        assert {run.run_id: run.kind for run in runs} == {
            ids.run_id(key, command_id): kind for command_id, kind in of_owner.items()
        }
        assert len(runs) == len(of_owner), "one record a run"
        assert {run.status for run in runs} <= {"done", "nothing"}
        proposing = [run for run in runs if run.kind in ("consolidate", "prune")]
        assert Counter((run.kind, run.changes) for run in proposing) == Counter(
            [("prune", 2), *([("consolidate", 1)] if consolidated else [])]
        )
        proposed |= {command_id: key for run in proposing for command_id in run.command_ids}
    assert {each: commands[each][0].key for each in commands} == proposed | {
        command_id: key for key, of_owner in wanted.items() for command_id in of_owner
    }
    told = await results(pipeline, commands)
    assert {command_id: len(told[command_id]) for command_id in commands} == dict.fromkeys(commands, 1)
    result = {command_id: CommandResult.read(value) for command_id, (value,) in told.items()}
    assert {each.status for each in result.values()} == {"applied"}
    for key, of_owner in wanted.items():
        hygiene = {each: result[each].result or {} for each, kind in of_owner.items() if kind == "hygiene"}
        second = hygiene[asked[key].second]
        assert {second[name] for name in COUNTS} == {0}
        (why,) = [part.why for run in rows[key].runs if run.run_id == second["run_id"] for part in run.phases]
        assert why.startswith("another run was active"), "not: there was nothing to do"
        culled = sum(int(str(each.get(n, 0))) for each in hygiene.values() for n in ("pruned", "culled_episodes"))
        assert culled == 1, "by maintenance or by the janitor"
        assert {hygiene[asked[key].first][name] for name in ("merged", "derived", "compacted", "reindexed")} == {0}
    return told, rows, await memory_once(pipeline, owners, rows, consolidated=consolidated)


async def memory_once(
    pipeline: Pipeline, owners: Mapping[str, Owner], rows: Mapping[str, ProgressRow], *, consolidated: bool
) -> object:
    facts = await pipeline.consistent()
    found = Counter(
        (each["owner"]["id"], each["content"].rstrip("0123456789"), each["state"], each["version"])
        for each in facts.values()
    )
    gold = [(MERGED, "active", 2), ("Drinks oolong", "superseded", 2), ("Saw a red car", "expired", 2)]
    if consolidated:
        gold.append((PATTERN, "active", 1))
    users = [owner.id for owner in owners.values()]
    assert found == {(user, *fact): 1 for user in users for fact in gold}

    who = ("--tenant", pipeline.tenant)
    episodes, digests = pipeline.several(("show", "episodes", *who, "--state", "all"), ("show", "digest", *who))
    assert Counter(
        (each["owner"]["id"], each["content"], each["deleted_at"] is not None, each["retrieval_count"])
        for each in episodes
    ) == {
        (user, content, deleted, recalls): 1
        for user in users
        for content, deleted, recalls in (
            ("Ran a marathon in Oslo", True, 0),
            ("Likes tea", False, 1),
            ("Drinks oolong", False, 1),
            ("Saw a red car", False, 0),
        )
    }
    assert sorted(each["run_id"] for each in digests) == sorted(
        run.run_id for row in rows.values() for run in row.runs if run.kind == "digest"
    )
    table = await changelog_rows(pipeline)
    ids_of = await episodes_of(pipeline)
    for key, owner in owners.items():
        ((one, other, weight, _),) = RecallRow.read(table[recall_row_key(key)]).links.unpacked()
        assert (one, other) == tuple(sorted(uuid.UUID(ids_of[owner.id, content]).bytes for content in TOGETHER))
        assert weight == pytest.approx(0.1), "it grew once"
    return facts, episodes, digests


async def is_whole(pipeline: Pipeline) -> None:
    assert await pipeline.dead_letters(COMMANDS.name) == []
    assert await pipeline.dead_letters(RECALLED.name) == []
    await pipeline.verified()
    pipeline.stop()
