"""The recorder: the verbatim turn, searchable in Qdrant, with no model call.

The way of a turn: decode → is it the first of its id? → what was said before it? → embed its texts and windows →
insert its messages (only where absent) → complete the window of the message before it. There is no table: ids and
places are derived from the turn and from what stands before it, so doing it twice is doing it once. Refused turns are
counted here and dead-lettered by the observer; misplaced ones are passed over, the observer sends them again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import structlog
from qdrant_client import models

from ..adapters.ports import Embedder, VectorStore
from ..adapters.vectors.conditions import equals
from ..memory.recall.context_windows import NEIGHBOURS, MessageWindows, WindowMessage, build_windows, is_talk
from ..memory.recall.prompt_framing import remove_framed
from ..schemas import ids
from ..schemas.collections import TURNS as TURNS_COLLECTION
from ..schemas.errors import Poison
from ..schemas.outcomes import InsertPoints, NewWindows, Outcome, OutPoint, OutWindow, Source, Write, pack_vector
from ..schemas.topics import TURNS, Topic
from ..schemas.turns import Owner, Scope, Turn
from ..schemas.working_set import StoredMessage
from ..streams.engine.handler import Decision, RoutedEvent, Rows
from ..streams.engine.metrics import StageMetrics
from ..streams.engine.retry import Calls
from ..streams.log.port import Record
from .common.store_writes import apply_writes
from .common.turn_routing import decode_turn, is_misplaced, occurred_at, value_hash

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RecordedMessages:
    """A decoded turn on its way into the index."""

    turn: Turn
    owner: Owner


@dataclass(frozen=True, slots=True)
class EarlierMessages:
    """What stands before a turn in its session's thread."""

    place: int | None
    """Of the turn's first message; None of a turn that 0.1 recorded."""
    messages: tuple[StoredMessage, ...] = ()
    """The last `NEIGHBOURS`, oldest first."""


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

    def writes_dead_letters(self, topic: str) -> bool:
        return False

    def route(self, record: Record) -> RoutedEvent[RecordedMessages]:
        turn, owner = decode_turn(record, default_scope=self._default_scope)
        return RoutedEvent(turn.session_key, RecordedMessages(turn, owner))

    def last(self, work: RecordedMessages, rows: Rows) -> Decision | None:
        return None

    async def decide(self, work: RecordedMessages, record: Record, rows: Rows) -> AsyncIterator[Decision]:
        turn = work.turn
        if is_misplaced(record, turn.session_key, partitions=self._partitions):
            self._metrics.counted("misplaced")
            return
        if not turn.messages:
            return
        first = await self._first(turn)
        if first is not None and first.turn_sha256 != value_hash(record):
            self._metrics.counted("duplicate")
            return
        before = await self._before(turn, first)
        messages = self._messages(work, record, before.place)
        self._metrics.counted("parts_without_text", sum(message.other_parts for message in turn.messages))
        talk = [message for message in messages if is_talk(message.role, _said(message))]
        found_by = build_windows(_lines(before.messages), _lines(talk))
        window_of = dict(zip((message.message_id for message in talk), found_by.turn, strict=True))
        vectors = await self._vectors(turn.tenant_id, [_said(message) for message in messages], found_by)
        points = tuple(_point(message, window_of.get(message.message_id), vectors) for message in messages)
        writes: tuple[Write, ...] = (InsertPoints(collection=TURNS_COLLECTION, points=points),)
        if found_by.before is not None:
            completed = OutWindow(
                id=before.messages[-1].message_id, text=found_by.before, window=vectors.get(found_by.before)
            )
            writes += (NewWindows(collection=TURNS_COLLECTION, tenant_id=turn.tenant_id, points=(completed,)),)
        position = record.position
        source = Source(topic=position.topic, partition=position.partition, offset=position.offset, id=turn.turn_id)
        yield Decision(Outcome(source=source, writes=writes))

    async def _first(self, turn: Turn) -> StoredMessage | None:
        """Message 0 of this turn's id, when it stands."""
        first = ids.message_id(turn.session_key, turn.turn_id, 0)
        found = await self._calls.call(
            "store", lambda: self._store.get(TURNS_COLLECTION, tenant_id=turn.tenant_id, ids=[first])
        )
        return StoredMessage.from_payload(found[first].payload) if first in found else None

    async def _before(self, turn: Turn, first: StoredMessage | None) -> EarlierMessages:
        """The messages before this turn, in the order of the log: before its own place when it has one already, else
        the last of the session. Its own messages do not count: a store may have kept some without message 0."""
        place = None if first is None else first.first_place
        if first is not None and place is None:
            return EarlierMessages(place=None)
        found = await self._calls.call(
            "store",
            lambda: self._store.last(
                TURNS_COLLECTION,
                tenant_id=turn.tenant_id,
                where=_others_of_session(turn, below=place),
                order_by="session_place",
                limit=NEIGHBOURS,
            ),
        )
        messages = tuple(StoredMessage.from_payload(each.payload) for each in reversed(found))
        if place is None:
            place = 1 + max((message.session_place or 0 for message in messages), default=-1)
        return EarlierMessages(place, messages)

    async def _vectors(self, tenant_id: str, texts: Sequence[str], found_by: MessageWindows) -> dict[str, str]:
        """Packed vectors by text, all in one call. When the embedder refuses one of them the messages are tried without
        their windows, for it may be a neighbour's; a turn that it refuses all the same is kept without vectors: its
        words find it still."""
        own = list(dict.fromkeys(text for text in texts if text.strip()))
        around = [*found_by.turn, *([] if found_by.before is None else [found_by.before])]
        every = list(dict.fromkeys([*own, *around]))
        if len(own) < len(every):
            try:
                return await self._embedded(tenant_id, every)
            except Poison as refused:
                log.warning("windows_not_embedded", why=str(refused), texts=len(every))
        try:
            return await self._embedded(tenant_id, own)
        except Poison as refused:
            log.warning("turn_not_embedded", why=str(refused), texts=len(own))
            self._metrics.counted("not_embedded")
            return {}

    async def _embedded(self, tenant_id: str, texts: Sequence[str]) -> dict[str, str]:
        if not texts:
            return {}
        vectors = await self._calls.call("embedder", lambda: self._embedder.embed(texts, tenant_id=tenant_id))
        return {text: pack_vector(vector) for text, vector in zip(texts, vectors, strict=True)}

    def _messages(self, work: RecordedMessages, record: Record, place: int | None) -> list[StoredMessage]:
        turn = work.turn
        when = occurred_at(turn, record)
        following = place
        messages = []
        for index, message in enumerate(turn.messages):
            text = message.text
            takes_place = following is not None and is_talk(message.role, remove_framed(text))
            messages.append(
                StoredMessage(
                    message_id=ids.message_id(turn.session_key, turn.turn_id, index),
                    message_index=index,
                    role=message.role,
                    name=message.name,
                    content=text,
                    tenant_id=turn.tenant_id,
                    owner_key=work.owner.key(turn.tenant_id),
                    user_id=turn.user_id,
                    session_id=turn.session_id,
                    turn_id=turn.turn_id,
                    occurred_at=when,
                    sensitivity=turn.sensitivity or "internal",
                    turn_sha256=value_hash(record) if index == 0 else None,
                    session_place=following if takes_place else None,
                    first_place=place if index == 0 else None,
                )
            )
            if following is not None and takes_place:
                following += 1
        return messages

    async def store(self, outcome: Outcome) -> None:
        await apply_writes(self._store, outcome.writes)

    async def publish_state(self, outcome: Outcome) -> None:
        return None

    def on_assigned(self, partitions: frozenset[int], rows: Rows) -> None:
        return None

    async def background(self) -> None:
        return None


def _point(message: StoredMessage, window: str | None, vectors: Mapping[str, str]) -> OutPoint:
    """A message outside the thread has nothing around it: its window is itself."""
    said = _said(message)
    found_by = window or said
    return OutPoint(
        id=message.message_id,
        payload=message.to_payload(),
        dense=vectors.get(said),
        text=found_by or None,
        window=vectors.get(found_by),
    )


def _said(message: StoredMessage) -> str:
    """What it is found by. It is kept verbatim; memories that were rendered into it would be found as if said anew."""
    return remove_framed(message.content)


def _lines(messages: Iterable[StoredMessage]) -> list[WindowMessage]:
    return [WindowMessage(_said(message), message.owner_key, message.sensitivity) for message in messages]


def _others_of_session(turn: Turn, *, below: int | None) -> models.Filter:
    session: list[models.Condition] = [equals("user_id", turn.user_id), equals("session_id", turn.session_id)]
    if below is not None:
        session.append(models.FieldCondition(key="session_place", range=models.Range(lt=below)))
    return models.Filter(must=session, must_not=[equals("turn_id", turn.turn_id)])
