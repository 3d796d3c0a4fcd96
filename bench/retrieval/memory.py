"""The measured system: the real recorder writes the lines, the real recall answers the questions.

The recorder is called as its worker calls it: each session in the order of its lines, with many concurrent sessions.
The store is the embedded engine in a folder. There is no Kafka: a log in memory would only pass the records on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from prometheus_client import CollectorRegistry

from memstream.adapters.ports import Embedder, PeriodVectorStore, Reranker, VectorStore
from memstream.agents.recorder.stage import Recorder
from memstream.memory.policies import FusionPolicy, RecallPolicy, RoutingPolicy, SessionLogPolicy
from memstream.memory.recall.fusion import RankedList, fuse
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.recall.deadline import DeadlineReads
from memstream.recall.request import CUE_MAX, RecallRequest
from memstream.recall.search import MemorySearch
from memstream.recall.service import RecallService
from memstream.schemas import ids
from memstream.schemas.collections import LABELS
from memstream.schemas.collections import TURNS as COLLECTION
from memstream.schemas.topics import TURNS
from memstream.schemas.turns import Owner, turn_value
from memstream.streams.engine.lane_events import QueuedEvents
from memstream.streams.engine.metrics import Metrics, StageMetrics
from memstream.streams.engine.no_rows import NoRows
from memstream.streams.engine.retry import Calls
from memstream.streams.log.port import Position, Record

from .conversations import Conversation, Line, Question, Session

TENANT = "bench"
LIMIT = 10
SESSIONS_AT_ONCE = 32
BETWEEN_LINES = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question: the ids of the found lines, best first, and the time in seconds."""

    question: Question
    ranked: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Lists:
    """The ranked lists for a question, by message id."""

    question: Question
    lists: tuple[RankedList, ...]
    preferred: frozenset[str]
    turns: Mapping[str, str]
    """Line id by message id."""

    def ranked(self, fusion: FusionPolicy) -> list[str]:
        """Return the best lines by a policy whose weights are above 0."""
        best = fuse(self.lists, policy=fusion, pool=LIMIT, preferred=self.preferred)
        return [self.turns[identity] for identity in best]


async def remember(conversations: Sequence[Conversation], *, store: PeriodVectorStore, embedder: Embedder) -> None:
    """Store each conversation as a user's memory, each line as a turn with its speaker's name."""
    await store.ensure(COLLECTION, LABELS)
    metrics = StageMetrics(Metrics(CollectorRegistry()), "recorder")
    recorder = Recorder(
        store=store,
        embedder=embedder,
        calls=Calls(),
        metrics=metrics,
        partitions=1,
        secrets=SecretFilter(),
        routing=RoutingPolicy(),
        session_log=SessionLogPolicy(),
    )
    room = asyncio.Semaphore(SESSIONS_AT_ONCE)

    async def session(conversation: Conversation, each: Session) -> None:
        async with room:
            for place, line in enumerate(each.lines):
                await _record(recorder, _turn(conversation, each, place, line))

    await asyncio.gather(
        *(session(conversation, each) for conversation in conversations for each in conversation.sessions)
    )


async def _record(recorder: Recorder, record: Record) -> None:
    async for decided in recorder.decide(recorder.route(record).work, record, NoRows(), QueuedEvents()):
        await recorder.store(decided.outcome)


def _turn(conversation: Conversation, session: Session, place: int, line: Line) -> Record:
    value = turn_value(
        {
            "tenant_id": TENANT,
            "user_id": conversation.id,
            "session_id": session.id,
            "turn_id": line.id,
            "messages": [{"role": line.role, "name": line.speaker or None, "content": line.text}],
            "occurred_at": (session.begins + place * BETWEEN_LINES).isoformat(),
        }
    )
    key = ids.session_key(TENANT, conversation.id, session.id).encode()
    return Record(position=Position(TURNS.name, 0, place), key=key, value=value)


async def ask(
    conversations: Sequence[Conversation],
    *,
    store: VectorStore,
    embedder: Embedder,
    policy: RecallPolicy,
    reranker: Reranker | None = None,
) -> list[Answer]:
    """Ask the questions one after the other, so that each latency is the latency of a single read.

    All questions are asked today, long after their subject, so that no session is fresher than another.
    """
    recall = RecallService(store=store, embedder=embedder, policy=policy, reranker=reranker)
    return [
        await _answer(recall, conversation, question)
        for conversation in conversations
        for question in conversation.questions
    ]


async def lists(
    conversations: Sequence[Conversation], *, store: VectorStore, embedder: Embedder, policy: RecallPolicy
) -> list[Lists]:
    """Return the results of recall's searches before fusion. The parameters of the fusion are tuned on them."""
    found = []
    for conversation in conversations:
        for question in conversation.questions:
            searching = MemorySearch(
                store=store,
                embedder=embedder,
                collections=[COLLECTION],
                policy=policy,
                request=_request(conversation, question),
                now=datetime.now(UTC),
                parts=DeadlineReads(patience=policy.patience),
                messages=policy.pool,
            )
            pool = (await searching.run())["turns"]
            named = [identity for each in pool.lists for identity in each.ids]
            rows = await store.get(COLLECTION, tenant_id=TENANT, ids=named)
            turns = {identity: str(row.payload["turn_id"]) for identity, row in rows.items()}
            found.append(Lists(question, tuple(pool.lists), pool.preferred, turns))
    return found


def _request(conversation: Conversation, question: Question) -> RecallRequest:
    return RecallRequest(
        tenant_id=TENANT,
        owner=Owner(scope="user", id=conversation.id),
        cue=question.text[:CUE_MAX],
        limit=LIMIT,
        tiers=("turns",),
    )


async def _answer(recall: RecallService, conversation: Conversation, question: Question) -> Answer:
    begun = time.perf_counter()
    recalled = await recall.recall(_request(conversation, question), now=datetime.now(UTC))
    seconds = time.perf_counter() - begun
    if recalled.missing:
        raise RuntimeError(f"a part of memory did not answer: {recalled.missing}")
    turns = (source.turn_id for item in recalled.items for source in item.sources[:1])
    return Answer(question, tuple(dict.fromkeys(turn for turn in turns if turn is not None)), seconds)
