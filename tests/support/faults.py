"""Common parts of the fault matrix: a conversation for every user, and the memory that must result."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from memstream.schemas.errors import Transient
from memstream.schemas.topics import StageName, catalogue, group_of
from memstream.streams.log import sqlite_tables
from memstream.streams.log.broker_url import kafka_servers
from memstream.streams.log.port import Position, Record
from tests.support.conversation import (
    AGAIN,
    CONSOLIDATED,
    CONVERSATION,
    STATES,
    conversation,
    expected_actions,
    states,
)
from tests.support.model_server import Ask
from tests.support.pipeline import Json, Pipeline, actions, wait_for
from tests.support.polling import at_least

FROM_CONSOLIDATION = (CONSOLIDATED, CONSOLIDATED + AGAIN)

GROUP_WITHIN = 60.0


async def written_since(pipeline: Pipeline, topic: str) -> list[Record]:
    """Records written to a topic since the pipeline began."""
    return [record async for record in pipeline.log.read(topic, start=pipeline.began.get(topic))]


async def written_by(pipeline: Pipeline, stage: StageName) -> dict[str, int]:
    """Count the records of each topic that this stage writes, its changelog included."""
    return {topic.name: sum(await pipeline.log.ends(topic.name)) for topic in catalogue() if stage in topic.written_by}


async def has_members(pipeline: Pipeline, stage: StageName, count: int) -> None:
    """Wait until the stage's group is stable with this number of members."""
    await _group(pipeline, stage, lambda state, members: state == "Stable" and members == count, f"{count} members")


async def is_joined(pipeline: Pipeline, stage: StageName) -> None:
    """Wait until a worker asks to join the group and the others have to join again."""
    await _group(pipeline, stage, lambda state, members: state == "PreparingRebalance", "a rebalance")


async def _group(pipeline: Pipeline, stage: StageName, holds: Callable[[str, int], bool], what: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=",".join(kafka_servers(pipeline.broker)))
    await admin.start()

    async def state_and_members() -> tuple[str, int]:
        (answer,) = await admin.describe_consumer_groups([group_of(stage)])
        ((_, _, state, _, _, members, *_),) = answer.groups
        return state, len(members)

    what = f"{what} of the {stage}'s group"
    try:
        await wait_for(state_and_members, what, until=lambda seen: holds(*seen), deadline=GROUP_WITHIN, pause=0.02)
    finally:
        await admin.close()


def is_kafka(pipeline: Pipeline) -> bool:
    return pipeline.broker.startswith("kafka")


async def delete_up_to(pipeline: Pipeline, at: Position) -> None:
    """Delete the records of a partition up to this one, as retention does."""
    if is_kafka(pipeline):
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka_servers(pipeline.broker))
        await admin.start()
        try:
            partition = TopicPartition(at.topic, at.partition)
            await admin.delete_records({partition: RecordsToDelete(before_offset=at.offset + 1)})
        finally:
            await admin.close()
        return
    with closing(sqlite_tables.connect(Path(pipeline.broker.removeprefix("embedded://")))) as conn:
        (part,) = conn.execute(
            "SELECT part.id FROM part JOIN topic ON topic.id = part.topic WHERE topic.name = ? AND part.number = ?",
            (at.topic, at.partition),
        ).fetchone()
        low, high = sqlite_tables.row_id(part, 0), sqlite_tables.row_id(part, at.offset + 1)
        with conn:
            conn.execute("DELETE FROM record WHERE at >= ? AND at < ?", (low, high))
            conn.execute("UPDATE part SET first = ? WHERE id = ?", (at.offset + 1, part))


def said_by(user: str) -> list[Json]:
    """Return the conversation of this user. Its texts name the user, so that no two users ask the model the same."""
    turns: list[Json] = [{**turn, "user_id": user, "session_id": f"of-{user}"} for turn in conversation()]
    for turn in turns:
        turn["messages"][0]["content"] += f" ({user})"
    return turns


def repeated(asks: Sequence[Ask]) -> Counter[str]:
    """Count repeated model calls, by a turn's text (one call may show several turns) or by a whole consolidation
    prompt.
    """
    counts = Counter(asked for ask in asks for asked in asked_in(ask))
    return Counter({asked: n - 1 for asked, n in counts.items() if n > 1})


def asked_in(ask: Ask) -> Collection[str]:
    return set(ask.turns.values()) if ask.task == "observations" else {ask.last_user_message}


class Load:
    """Conversations of many users, a few side by side, turn by turn, until stopped; the begun ones are then finished.

    Each user says the whole CONVERSATION, so that the expected memory is known (`check_all_remembered`). While the
    broker is away a turn is sent again, so it may arrive twice.
    """

    def __init__(self, pipeline: Pipeline, *, at_once: int = 3, pause: float = 0.4, name: str = "u") -> None:
        self._pipeline, self._at_once, self._pause, self._name = pipeline, at_once, pause, name
        self.users: list[str] = []
        self.tried_again = 0
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        while not self._stopping.is_set():
            some = [f"{self._name}{len(self.users) + n}" for n in range(self._at_once)]
            self.users += some
            for turns in zip(*map(said_by, some), strict=True):
                await asyncio.gather(*map(self._say, turns))
                await asyncio.sleep(self._pause)

    async def goes_on(self, rounds: int = 1, *, deadline: float = 60.0) -> None:
        """Wait until this number of further rounds is complete."""
        until = len(self.users) + (rounds + 1) * self._at_once
        await wait_for(lambda: len(self.users), "load", until=at_least(until), deadline=deadline)

    async def _say(self, turn: Json) -> None:
        while True:
            try:
                return await self._pipeline.produce(turn)
            except Transient:
                self.tried_again += 1


@asynccontextmanager
async def loaded(pipeline: Pipeline, **options: Any) -> AsyncIterator[Load]:
    """Produce load while the block runs; finish every conversation at its end."""
    load = Load(pipeline, **options)
    running = asyncio.create_task(load.run())
    try:
        yield load
        load.stop()
        await running
    finally:
        running.cancel()


async def check_all_remembered(
    pipeline: Pipeline, users: Collection[str], *, consolidated: bool = False, lost: Collection[bytes] = ()
) -> None:
    """Check that each user has exactly the expected memory of the conversation, whichever answer the model gave.

    `lost`: observations that the log had and may have lost since.
    """
    facts = await pipeline.consistent()
    updates = await pipeline.updates()
    learnt: dict[str, dict[str, Json]] = defaultdict(dict)
    for fact_id, fact in facts.items():
        learnt[fact["owner"]["id"]][fact_id] = fact
    assert set(learnt) == set(users)
    for user in users:
        found = states(learnt[user])
        direct = {text.removesuffix(AGAIN): state for text, state in found.items() if text not in FROM_CONSOLIDATION}
        assert direct == STATES, user
        told = actions([event for event in updates if event.owner.id == user])
        told_directly = [(action, text.removesuffix(AGAIN)) for action, text in told if text not in FROM_CONSOLIDATION]
        assert told_directly == expected_actions(told), user
        if consolidated:
            assert [found[text] for text in FROM_CONSOLIDATION if text in found] == ["active"], user
    assert len({*lost, *await pipeline.observed()}) == len(users) * len(CONVERSATION)
    assert await pipeline.dead_letters() == []
