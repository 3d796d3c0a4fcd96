"""The recorder: the verbatim turn, searchable in Qdrant, with no model call.

The way of a turn: decode → is it the first of its id? → embed its texts → insert its messages (only where absent).
There is no table: ids are derived from the turn, so doing it twice is doing it once. Refused turns are counted here
and dead-lettered by the observer; misplaced ones are passed over, the observer sends them again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal

import structlog

from ..adapters.ports import Embedder, VectorStore
from ..schemas import ids
from ..schemas.collections import TURNS as TURNS_COLLECTION
from ..schemas.errors import Poison
from ..schemas.outcomes import InsertPoints, Outcome, OutPoint, Source, pack_vector
from ..schemas.topics import TURNS, Topic
from ..schemas.turns import Owner, Scope, Turn
from ..schemas.working import StoredMessage
from ..streams.metrics import StageMetrics
from ..streams.ports import Record
from ..streams.retry import Calls
from ..streams.stage import Decided, Routed, Rows
from .effects import apply_writes
from .routing import decode_turn, is_misplaced, occurred_at, value_hash

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Recording:
    """A decoded turn on its way into the index."""

    turn: Turn
    owner: Owner


class Recorder:
    """The only writer of the collection `turns`."""

    name: Literal["recorder"] = "recorder"
    reads: tuple[Topic, ...] = (TURNS,)

    def __init__(
        self,
        *,
        store: VectorStore,
        embedder: Embedder,
        calls: Calls,
        metrics: StageMetrics,
        partitions: int,
        default_scope: Scope = "user",
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._calls = calls
        self._metrics = metrics
        self._partitions = partitions
        self._default_scope: Scope = default_scope

    def letters(self, topic: str) -> bool:
        return False

    def route(self, record: Record) -> Routed[Recording]:
        turn, owner = decode_turn(record, default_scope=self._default_scope)
        return Routed(turn.session_key, Recording(turn, owner))

    def last(self, work: Recording, rows: Rows) -> Decided | None:
        return None

    async def decide(self, work: Recording, record: Record, rows: Rows) -> AsyncIterator[Decided]:
        turn = work.turn
        if is_misplaced(record, turn.session_key, partitions=self._partitions):
            self._metrics.counted("misplaced")
            return
        if not turn.messages:
            return
        if not await self._is_first(turn, value_hash(record)):
            self._metrics.counted("duplicate")
            return
        texts = [message.text for message in turn.messages]
        self._metrics.counted("parts_without_text", sum(message.other_parts for message in turn.messages))
        vectors = await self._vectors(turn.tenant_id, texts)
        points = tuple(
            OutPoint(
                id=stored.message_id,
                payload=stored.to_payload(),
                dense=vectors.get(stored.message_index),
                text=stored.content or None,
            )
            for stored in self._messages(work, record, texts)
        )
        position = record.position
        source = Source(topic=position.topic, partition=position.partition, offset=position.offset, id=turn.turn_id)
        yield Decided(Outcome(source=source, writes=(InsertPoints(collection=TURNS_COLLECTION, points=points),)))

    async def _is_first(self, turn: Turn, sha256: str) -> bool:
        """No message stands under this turn's id yet, or they are this very turn's."""
        first = ids.message_id(turn.session_key, turn.turn_id, 0)
        found = await self._calls.call(
            "store", lambda: self._store.get(TURNS_COLLECTION, tenant_id=turn.tenant_id, ids=[first])
        )
        return first not in found or found[first].payload.get("turn_sha256") == sha256

    async def _vectors(self, tenant_id: str, texts: list[str]) -> dict[int, str]:
        """Packed vectors by message index; empty messages have none. A turn that the embedder refuses is kept without
        vectors: its words find it still."""
        said = [(index, text) for index, text in enumerate(texts) if text.strip()]
        if not said:
            return {}
        try:
            vectors = await self._calls.call(
                "embedder", lambda: self._embedder.embed([text for _, text in said], tenant_id=tenant_id)
            )
        except Poison as refused:
            self._metrics.counted("not_embedded")
            log.warning("turn_not_embedded", why=str(refused))
            return {}
        return {index: pack_vector(vector) for (index, _), vector in zip(said, vectors, strict=True)}

    def _messages(self, work: Recording, record: Record, texts: list[str]) -> list[StoredMessage]:
        turn = work.turn
        when = occurred_at(turn, record)
        return [
            StoredMessage(
                message_id=ids.message_id(turn.session_key, turn.turn_id, index),
                message_index=index,
                role=message.role,
                name=message.name,
                content=texts[index],
                tenant_id=turn.tenant_id,
                owner_key=work.owner.key(turn.tenant_id),
                user_id=turn.user_id,
                session_id=turn.session_id,
                turn_id=turn.turn_id,
                occurred_at=when,
                sensitivity=turn.sensitivity or "internal",
                turn_sha256=value_hash(record) if index == 0 else None,
            )
            for index, message in enumerate(turn.messages)
        ]

    async def store(self, outcome: Outcome) -> None:
        await apply_writes(self._store, outcome.writes)

    async def publish_state(self, outcome: Outcome) -> None:
        return None

    def on_assigned(self, partitions: frozenset[int], rows: Rows) -> None:
        return None

    async def background(self) -> None:
        return None
