"""What rows of the fault matrix have in common: a conversation for every user, and the memory that must come of it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from memstream.schemas.topics import STAGES, group_of, read_by
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
from tests.support.pipeline import Json, Pipeline, actions
from tests.support.verifying import ends_of

FROM_CONSOLIDATION = (CONSOLIDATED, CONSOLIDATED + AGAIN)

EMPTY_WITHIN = 15.0
"""Seconds until a group is without its members that were killed."""


async def nothing_left_of_others(pipeline: Pipeline, bootstrap: str) -> None:
    """On a broker that is shared: every group stands at the end of what it reads, so that a row's workers, model and
    crash points meet the events of this row alone."""
    ends = await ends_of(pipeline.log)
    for stage in STAGES:
        wanted = {
            TopicPartition(topic.name, partition): end
            for topic in read_by(stage)
            for partition, end in ends[topic.name].items()
        }
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap, group_id=group_of(stage), enable_auto_commit=False, request_timeout_ms=5_000
        )
        await consumer.start()
        try:
            consumer.assign(list(wanted))
            await _commit(consumer, wanted)
        finally:
            await consumer.stop()


async def _commit(consumer: AIOKafkaConsumer, offsets: dict[TopicPartition, int]) -> None:
    """The broker takes it from a stranger when the group is empty."""
    end = time.monotonic() + EMPTY_WITHIN
    while True:
        try:
            await consumer.commit(offsets)
            return
        except KafkaError:
            if time.monotonic() > end:
                raise
        await asyncio.sleep(0.1)


def said_by(user: str) -> list[Json]:
    """The conversation of this user. Its texts name the user, so that no two users ask the model the same."""
    turns: list[Json] = [{**turn, "user_id": user, "session_id": f"of-{user}"} for turn in conversation()]
    for turn in turns:
        turn["messages"][0]["content"] += f" ({user})"
    return turns


def repeated(asks: Sequence[Ask]) -> Counter[str]:
    """By last user message, how many asks came after a first one with the same."""
    counts = Counter(ask.last_user_message for ask in asks)
    return Counter({said: n - 1 for said, n in counts.items() if n > 1})


async def all_is_remembered(pipeline: Pipeline, users: Collection[str], *, consolidated: bool = False) -> None:
    """Of every user's conversation exactly the expected memory, whichever of its answers the model gave."""
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
    assert len(set(await pipeline.observed())) == len(users) * len(CONVERSATION)
    assert await pipeline.letters() == []
