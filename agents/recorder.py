"""The recorder: it puts the exact words of turns into Qdrant. It asks no model. The way of a turn, from top to bottom:

route    decode; mask and label what is secret (memory/secrets/); one lane per session
decide   misplaced? → nothing; the observer sends the turn again
         the id is known with another value? → nothing: a duplicate
         read the messages before the turn, embed its texts and their windows
         the turn's period is over → nothing: the policy would drop it
store    its messages that are absent; the window of the message before it, which is complete by now; then the labels
         that the observer gave to this turn and to those before it
publish  nothing

background  drop the periods that are over

The recorder has no table. Ids and places follow from the turn and from the messages before it, so a redelivered turn
gives the same writes. The observer writes the dead letters of turns that are refused; here they are counted.
See docs/design/recorder.md; for periods docs/design/retention.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import structlog
from qdrant_client import models

from ..adapters.ports import Embedder, PeriodVectorStore, StoredPoint
from ..adapters.vectors.conditions import equals
from ..memory.policies import RoutingPolicy, SessionLogPolicy
from ..memory.recall.context_windows import NEIGHBOURS, MessageWindows, WindowMessage, build_windows, is_talk
from ..memory.recall.prompt_framing import remove_framed
from ..memory.secrets.secret_filter import SecretFilter
from ..memory.secrets.turns import ProtectedTurn, protect_turn
from ..memory.turn_retention import TurnRetention, log_time, recorded_at
from ..schemas import ids
from ..schemas.collections import TURNS as TURNS_COLLECTION
from ..schemas.errors import Poison, StageError
from ..schemas.outcomes import ApplyLabels, InsertPoints, NewWindows, Outcome, OutPoint, OutWindow, Write
from ..schemas.periods import Period
from ..schemas.topics import TURNS, Topic
from ..schemas.turns import Owner, Turn
from ..schemas.working_set import StoredMessage
from ..streams.engine.handler import Rows, StageDecision, source_of
from ..streams.engine.lane_events import QueuedEvents, RoutedEvent
from ..streams.engine.metrics import StageMetrics
from ..streams.engine.retry import Calls
from ..streams.log.port import Record
from .common.store_writes import apply_writes
from .common.turn_routing import decode_turn, is_misplaced, occurred_at, turn_hash, value_hash

log = structlog.get_logger(__name__)
VISIT_SECONDS = 60.0
"""Between two looks whether a day has begun on which periods may be over."""


@dataclass(frozen=True, slots=True)
class VerbatimTurn:
    """The event: a decoded turn without its secrets, and the owner of what it says."""

    protected: ProtectedTurn
    owner: Owner

    @property
    def turn(self) -> Turn:
        return self.protected.turn


@dataclass(frozen=True, slots=True)
class EarlierMessages:
    """The messages before a turn in its session's thread."""

    next_place: int | None
    """The place of the turn's first message; None for a turn that version 0.1 recorded."""
    messages: tuple[StoredMessage, ...] = ()
    """The last `NEIGHBOURS` messages, oldest first."""
    last_in: str = TURNS_COLLECTION
    """The collection that holds the last of them."""


class Recorder:
    """The stage; see the module. It is the only writer of the collection `turns`."""

    name: Literal["recorder"] = "recorder"
    reads: tuple[Topic, ...] = (TURNS,)

    def __init__(
        self,
        *,
        store: PeriodVectorStore,
        embedder: Embedder,
        calls: Calls,
        metrics: StageMetrics,
        partitions: int,
        secrets: SecretFilter,
        routing: RoutingPolicy,
        session_log: SessionLogPolicy,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._calls = calls
        self._metrics = metrics
        self._partitions = partitions
        self._secrets = secrets
        self._routing = routing
        self._retention = TurnRetention(session_log.retention_days)
        self._now = now
        self._standing: tuple[Period, ...] | None = None
        """The periods that stand. None: they are read before the next turn."""
        self._opened: tuple[Period, ...] = ()
        """Those of them that a turn opened."""
        self._newest: datetime | None = None
        """The newest time at which a turn was recorded, as far as this process has seen."""
        self._begun = asyncio.Event()
        """Set with the first turn that tells a time."""

    # ------------------------------------------------------------------------------------------------ route
    def writes_dead_letters(self, topic: str) -> bool:
        return False

    def route(self, record: Record) -> RoutedEvent[VerbatimTurn]:
        routed = decode_turn(record, self._routing)
        if routed.clock_ahead:
            self._metrics.counted("clock_ahead")
        turn = protect_turn(routed.turn, self._secrets)
        return RoutedEvent(routed.turn.session_key, VerbatimTurn(turn, routed.owner))

    def last(self, work: VerbatimTurn, rows: Rows) -> StageDecision | None:
        return None

    # ------------------------------------------------------------------------------------------------ decide
    async def decide(
        self, work: VerbatimTurn, record: Record, rows: Rows, queued: QueuedEvents[VerbatimTurn]
    ) -> AsyncIterator[StageDecision]:
        turn = work.turn
        if is_misplaced(record, turn.session_key, partitions=self._partitions):
            self._metrics.counted("misplaced")
            return
        if not turn.messages:
            return
        known = await self._known_messages(turn)
        first = known.get(ids.message_id(turn.session_key, turn.turn_id, 0))
        message = None if first is None else StoredMessage.from_payload(first.payload)
        if message is not None and message.turn_sha256 not in (turn_hash(work.protected, record), value_hash(record)):
            self._metrics.counted("duplicate")
            return
        collection = next((each.collection for each in known.values()), None) or await self._open(record)
        if collection is None:
            self._metrics.counted("expired")
            return
        writes = await self._writes(work, record, await self._messages_before(turn, message), collection)
        yield StageDecision(Outcome(source=source_of(record, turn.turn_id), writes=writes))

    async def _known_messages(self, turn: Turn) -> dict[str, StoredPoint]:
        """Return the messages of this turn's id that are stored. After a crash message 0 may be missing."""
        named = [ids.message_id(turn.session_key, turn.turn_id, index) for index in range(len(turn.messages))]
        if self._standing is None:
            self._opened = await self._calls.call("store", lambda: self._store.periods(TURNS_COLLECTION, opened=True))
            self._standing = await self._calls.call("store", lambda: self._store.periods(TURNS_COLLECTION))
        return await self._calls.call(
            "store", lambda: self._store.get(TURNS_COLLECTION, tenant_id=turn.tenant_id, ids=named)
        )

    async def _open(self, record: Record) -> str | None:
        """Return the collection of the turn's period, which is made when there is none. None: the period is over."""
        now, standing = self._now(), self._standing or ()
        at = recorded_at(record.written_at if record.timestamp > 0 else None, now=now, standing=standing)
        self._newest = at if self._newest is None else max(self._newest, at)
        self._begun.set()
        period, end = Period.of(at), log_time(self._newest, now=now, opened=self._opened)
        if end is not None and self._retention.is_over(period, at=end):
            return None
        name = await self._calls.call(
            "store", lambda: self._store.open_period(TURNS_COLLECTION, period, newest=Period.of(now))
        )
        if period not in standing:
            self._standing = None
        return name

    async def _messages_before(self, turn: Turn, first: StoredMessage | None) -> EarlierMessages:
        """Return the messages before this turn, in the order of the log.

        They are those before its own place when it has one already, else the last of the session. The turn's own
        messages are left out: a store may have kept some of them without message 0.
        """
        place = None if first is None else first.first_place
        if first is not None and place is None:
            return EarlierMessages(next_place=None)
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
        return EarlierMessages(place, messages, (found[0].collection if found else None) or TURNS_COLLECTION)

    async def _writes(
        self, work: VerbatimTurn, record: Record, before: EarlierMessages, collection: str
    ) -> tuple[Write, ...]:
        """Insert the turn's messages, and complete the window of the message before them."""
        turn = work.turn
        messages = self._messages(work, record, before.next_place)
        self._metrics.counted("parts_without_text", sum(message.other_parts for message in turn.messages))
        talk = [message for message in messages if is_talk(message.role, _search_text(message))]
        windows = build_windows(_lines(before.messages), _lines(talk))
        window_of = dict(zip((message.message_id for message in talk), windows.turn, strict=True))
        vectors = await self._vectors(turn.tenant_id, [_search_text(message) for message in messages], windows)
        points = tuple(_point(message, window_of.get(message.message_id), vectors) for message in messages)
        insert = InsertPoints(collection=collection, points=points)
        labels = _labels(turn, before)
        if windows.before is None:
            return (insert, labels)
        completed = OutWindow(
            id=before.messages[-1].message_id, text=windows.before, window=vectors.get(windows.before)
        )
        return (insert, NewWindows(collection=before.last_in, tenant_id=turn.tenant_id, points=(completed,)), labels)

    async def _vectors(
        self, tenant_id: str, texts: Sequence[str], windows: MessageWindows
    ) -> dict[str, Sequence[float]]:
        """Embed texts and windows in one call; return vectors by text.

        When the embedder refuses one of them, the texts are tried without the windows: a neighbour may be the cause.
        When it refuses them too, the turn is stored without vectors, and only its words find it.
        """
        own = list(dict.fromkeys(text for text in texts if text.strip()))
        around = [*windows.turn, *([] if windows.before is None else [windows.before])]
        every = list(dict.fromkeys([*own, *around]))
        if len(own) < len(every):
            try:
                return await self._embed(tenant_id, every)
            except Poison as refused:
                log.warning("windows_not_embedded", why=str(refused), texts=len(every))
        try:
            return await self._embed(tenant_id, own)
        except Poison as refused:
            log.warning("turn_not_embedded", why=str(refused), texts=len(own))
            self._metrics.counted("not_embedded")
            return {}

    async def _embed(self, tenant_id: str, texts: Sequence[str]) -> dict[str, Sequence[float]]:
        if not texts:
            return {}
        vectors = await self._calls.call("embedder", lambda: self._embedder.embed(texts, tenant_id=tenant_id))
        return dict(zip(texts, vectors, strict=True))

    def _messages(self, work: VerbatimTurn, record: Record, place: int | None) -> list[StoredMessage]:
        """Build the turn's messages. Those of its thread take places from `place` on."""
        turn = work.turn
        when = occurred_at(turn, record)
        next_place = place
        messages = []
        for index, (message, sensitivity) in enumerate(zip(turn.messages, work.protected.sensitivities, strict=True)):
            text = message.text
            takes_place = next_place is not None and is_talk(message.role, remove_framed(text))
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
                    sensitivity=sensitivity,
                    agent_id=turn.agent_id,
                    turn_sha256=turn_hash(work.protected, record) if index == 0 else None,
                    session_place=next_place if takes_place else None,
                    first_place=place if index == 0 else None,
                )
            )
            if next_place is not None and takes_place:
                next_place += 1
        return messages

    # ------------------------------------------------------------------------------------------------ effects
    async def store(self, outcome: Outcome) -> None:
        await apply_writes(self._store, outcome.writes)

    async def publish_state(self, outcome: Outcome) -> None:
        return None

    # ------------------------------------------------------------------------------------------------ reminders
    def retain(self, partitions: frozenset[int]) -> None:
        self._standing = None  # who had these partitions may have opened a period

    async def rediscover(self, partition: int, rows: Rows) -> None:
        return None

    async def end_rows(self, partition: int, rows: Rows) -> None:
        return None

    async def background(self) -> None:
        """Drop the periods that are over: with the first turn after the start, then once a day."""
        visited = None
        await self._begun.wait()
        while True:
            today = self._now().date()
            if today != visited:
                try:
                    await self.drop_periods()
                    visited = today
                except StageError as why:
                    log.warning("periods_not_dropped", why=str(why))
            await asyncio.sleep(VISIT_SECONDS)

    async def drop_periods(self) -> tuple[str, ...]:
        """Delete the collections of the periods that are over; return their names. Any number of workers may do it: a
        period that is gone is not deleted again."""
        opened = await self._store.periods(TURNS_COLLECTION, opened=True)
        end = log_time(self._newest, now=self._now(), opened=opened)
        before = None if end is None else self._retention.dropped_before(end)
        if before is None:
            return ()
        dropped = await self._store.drop_periods(TURNS_COLLECTION, before=before)
        for name in dropped:
            log.info("period_dropped", collection=name, ended_before=before.isoformat())
        self._metrics.counted("periods_dropped", len(dropped))
        self._standing = None
        return dropped


def _labels(turn: Turn, before: EarlierMessages) -> ApplyLabels:
    """Look for labels of this turn and of those whose words stand in its windows, after all is stored."""
    turns = dict.fromkeys([turn.turn_id, *(message.turn_id for message in before.messages)])
    label_ids = tuple(ids.label_id(turn.session_key, each) for each in turns)
    return ApplyLabels(tenant_id=turn.tenant_id, ids=label_ids)


def _point(message: StoredMessage, window: str | None, vectors: Mapping[str, Sequence[float]]) -> OutPoint:
    """Build the point of a message. The window of a message outside the thread is its own text."""
    text = _search_text(message)
    window_text = window or text
    return OutPoint(
        id=message.message_id,
        payload=message.to_payload(),
        dense=vectors.get(text),
        text=window_text or None,
        window=vectors.get(window_text),
    )


def _search_text(message: StoredMessage) -> str:
    """Return the text that finds the message: without memories that were put into the prompt, which nobody said anew.

    The message is stored with all of its words.
    """
    return remove_framed(message.content)


def _lines(messages: Iterable[StoredMessage]) -> list[WindowMessage]:
    return [WindowMessage(_search_text(message), message.owner_key, message.sensitivity) for message in messages]


def _others_of_session(turn: Turn, *, below: int | None) -> models.Filter:
    session: list[models.Condition] = [equals("user_id", turn.user_id), equals("session_id", turn.session_id)]
    if below is not None:
        session.append(models.FieldCondition(key="session_place", range=models.Range(lt=below)))
    return models.Filter(must=session, must_not=[equals("turn_id", turn.turn_id)])
