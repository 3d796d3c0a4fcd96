"""Recorder stage: stores the exact words of turns in Qdrant. It calls no LLM. Processing of a turn, top to bottom:

route    decode; mask and label secrets (memory/secrets/); one lane per session
decide   misplaced → nothing; the observer sends the turn again
         the turn id is stored with another value → nothing: a duplicate
         read the messages before the turn, embed its texts and their windows
         the turn's period is over → nothing: the policy would drop it
         new queued turns of the session are recorded together with this turn
         a turn of an export → its messages as they were, and the windows of their neighbours (restored_points.py)
store    the turn's missing messages; the window of the previous message, which is now complete; then the labels that
         the observer gave to this turn, to the turns before it and to the session
publish  nothing

background  drop periods that are over

The recorder has no table. Ids and places follow from the turn and the messages before it, so a redelivered turn causes
the same writes. The observer writes the dead letters of refused turns; the recorder only counts them.
See docs/design/recorder.md; for periods docs/design/retention.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import takewhile
from typing import Literal

import structlog
from qdrant_client import models

from ...adapters.ports import Embedder, PeriodVectorStore, StoredPoint
from ...adapters.vectors.conditions import equals
from ...memory.policies import RoutingPolicy, SessionLogPolicy
from ...memory.recall.context_windows import NEIGHBOURS
from ...memory.secrets.secret_filter import SecretFilter
from ...memory.secrets.turns import protect_messages, protect_turn
from ...memory.turn_retention import TurnRetention, log_time, recorded_at
from ...schemas import ids
from ...schemas.collections import LABELS
from ...schemas.collections import TURNS as TURNS_COLLECTION
from ...schemas.errors import Poison, StageError
from ...schemas.outcomes import Outcome, Write
from ...schemas.periods import Period
from ...schemas.restore import TurnToRestore
from ...schemas.topics import TURNS, Topic
from ...schemas.turns import TURN_MAX_BYTES, Turn
from ...schemas.working_set import StoredMessage
from ...streams.engine.decision import Rows, StageDecision
from ...streams.engine.handler import source_of
from ...streams.engine.lane_events import QueuedEvents, RoutedEvent
from ...streams.engine.metrics import StageMetrics
from ...streams.engine.retry import Calls
from ...streams.log.port import Record
from ..common.restored_turns import RestoredTurn, decode_restored_turn, is_restored_turn
from ..common.store_writes import apply_writes
from ..common.turn_routing import decode_turn, is_misplaced, turn_hash, value_hash
from .message_points import (
    EarlierMessages,
    PlacedTurn,
    TurnMessages,
    Vectors,
    VerbatimTurn,
    session_writes,
    turn_messages,
)
from .restored_points import (
    StoredNeighbour,
    places_around,
    restored_texts,
    restored_writes,
    windows_by_id,
)

log = structlog.get_logger(__name__)
RecorderEvent = VerbatimTurn | RestoredTurn
TOGETHER = 8
"""Maximum number of turns of a session that are recorded together. Their total size is at most the maximum size of one
turn, so they need no more memory than the largest turn."""
VISIT_SECONDS = 60.0
"""Seconds between two checks for a new day. On a new day, periods may be over."""


class Recorder:
    """The stage; see the module docstring. It is the only writer of the collection `turns`."""

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
        """The existing periods, or None when they must be read before the next turn."""
        self._opened: tuple[Period, ...] = ()
        """The periods that a turn opened."""
        self._newest: datetime | None = None
        """The newest time of a turn recorded by this process."""
        self._begun = asyncio.Event()
        """Set at the first turn with a time."""

    # ------------------------------------------------------------------------------------------------ route
    def writes_dead_letters(self, topic: str) -> bool:
        return False

    def route(self, record: Record) -> RoutedEvent[RecorderEvent]:
        if is_restored_turn(record):
            restored = decode_restored_turn(record, partitions=self._partitions)
            return RoutedEvent(restored.session_key, restored)
        routed = decode_turn(record, self._routing, now=self._now())
        if routed.reading.clock_ahead:
            self._metrics.counted("clock_ahead")
        if routed.reading.undated:
            self._metrics.counted("record_undated")
        work = VerbatimTurn.of(
            protect_turn(routed.turn, self._secrets), routed.owner, follows_log=routed.reading.follows_log
        )
        return RoutedEvent(work.session_key, work)

    def last(self, work: RecorderEvent, rows: Rows) -> StageDecision | None:
        return None

    # ------------------------------------------------------------------------------------------------ decide
    async def decide(
        self, work: RecorderEvent, record: Record, rows: Rows, queued: QueuedEvents[RecorderEvent]
    ) -> AsyncIterator[StageDecision]:
        if isinstance(work, RestoredTurn):
            if restored := await self._restore(work, record):
                yield StageDecision(Outcome(source=source_of(record, work.event_id), writes=restored))
            return
        turn = work.turn
        if is_misplaced(record, work.session_key, partitions=self._partitions):
            self._metrics.counted("misplaced")
            return
        if not turn.messages:
            return
        if self._standing is None:
            await self._look()  # the reads need the periods as well
        group = list(_bounded([(record, work), *_verbatim(queued.next(TOGETHER - 1))]))
        known, last, labelled = await self._read([each for _, each in group])
        new = list(takewhile(lambda each: _is_new(each[1], known, labelled), group))
        writes = await self._decide_together(new, last) if len(new) > 1 else None
        covers = 0 if writes is None else len(new) - 1
        if writes is None:
            writes = await self._decide_alone(work, record, known, last)
        if writes or covers:
            yield StageDecision(Outcome(source=source_of(record, turn.turn_id), writes=writes), covers=covers)

    async def _restore(self, work: RestoredTurn, record: Record) -> tuple[Write, ...]:
        """Return the writes of a turn of an export, or none if a message of it is stored or its period is over."""
        turn = work.turn
        messages = protect_messages(turn.messages, self._secrets)
        named = [each.message_id for each in messages]
        known = await self._calls.call(
            "store", lambda: self._store.get(TURNS_COLLECTION, tenant_id=turn.tenant_id, ids=named)
        )
        if len(known) == len(named):
            self._metrics.counted("duplicate")
            return ()
        collection = next((each.collection for each in known.values()), None) or await self._open(record)
        if collection is None:
            self._metrics.counted("expired")
            return ()
        around = await self._neighbours(turn, messages)
        windows = windows_by_id(messages, around)
        vectors: Vectors = {}
        try:
            vectors = await self._embed(turn.tenant_id, restored_texts(messages, windows))
        except Poison as refused:
            log.warning("turn_not_embedded", why=str(refused), texts=len(messages))
            self._metrics.counted("not_embedded")
        return restored_writes(messages, windows, around, vectors, collection=collection)

    async def _neighbours(self, turn: TurnToRestore, messages: Sequence[StoredMessage]) -> list[StoredNeighbour]:
        """Return the stored messages of the session's thread around these messages."""
        places = places_around(messages)
        if not places:
            return []
        where = models.Filter(
            must=[
                equals("user_id", turn.user_id),
                equals("session_id", turn.session_id),
                models.FieldCondition(key="session_place", range=models.Range(gte=places.start, lt=places.stop)),
            ]
        )
        found = await self._calls.call(
            "store", lambda: self._store.select(TURNS_COLLECTION, tenant_id=turn.tenant_id, where=where)
        )
        return [
            StoredNeighbour(StoredMessage.from_payload(each.payload), each.collection or TURNS_COLLECTION)
            for each in found
        ]

    async def _decide_alone(
        self, work: VerbatimTurn, record: Record, known: Mapping[str, StoredPoint], last: Sequence[StoredPoint]
    ) -> tuple[Write, ...]:
        """Return a turn's writes, or none for a duplicate or expired turn. Some messages may already be stored."""
        turn = work.turn
        own = [known[each] for each in work.message_ids if each in known]
        first = known.get(work.message_ids[0])
        message = None if first is None else StoredMessage.from_payload(first.payload)
        if message is not None and message.turn_sha256 not in (turn_hash(work.protected, record), value_hash(record)):
            self._metrics.counted("duplicate")
            return ()
        collection = next((each.collection for each in own), None) or await self._open(record)
        if collection is None:
            self._metrics.counted("expired")
            return ()
        before = await self._messages_before(turn, message, last)
        placed = [PlacedTurn(record, work, collection)]
        made = turn_messages(placed, before)
        self._count_parts(placed)
        return session_writes(placed, made, before, await self._vectors(turn.tenant_id, made))

    async def _decide_together(
        self, group: Sequence[tuple[Record, VerbatimTurn]], last: Sequence[StoredPoint]
    ) -> tuple[Write, ...] | None:
        """Return the writes of consecutive turns that are not stored yet.

        Return None when the embedder refuses a text. The turns are then recorded one by one, so that the other turns
        keep their vectors.
        """
        placed = []
        expired = 0
        for record, work in group:
            if not work.turn.messages:
                continue
            collection = await self._open(record)
            if collection is None:
                expired += 1
            else:
                placed.append(PlacedTurn(record, work, collection))
        writes: tuple[Write, ...] = ()
        if placed:
            before = _earlier(last)
            made = turn_messages(placed, before)
            try:
                vectors = await self._embed(placed[0].work.turn.tenant_id, made.texts())
            except Poison as refused:
                self._metrics.counted("decided_alone")
                log.info("turns_not_embedded_together", why=str(refused), turns=len(placed))
                return None
            writes = session_writes(placed, made, before, vectors)
        self._metrics.counted("expired", expired)
        self._count_parts(placed)
        return writes

    async def _look(self) -> tuple[Period, ...]:
        """Read the existing periods."""
        self._opened = await self._calls.call("store", lambda: self._store.periods(TURNS_COLLECTION, opened=True))
        self._standing = await self._calls.call("store", lambda: self._store.periods(TURNS_COLLECTION))
        return self._standing

    async def _read(
        self, group: Sequence[VerbatimTurn]
    ) -> tuple[dict[str, StoredPoint], list[StoredPoint], frozenset[str]]:
        """Return the stored messages of these turns, the last messages of their session, and the turns with a label.

        Several turns are checked for labels before they are recorded, because a window includes text of the previous
        turn. A single turn gets its label when it is stored.
        """
        known, last = self._known_messages(group), self._last_messages(group[0].turn)
        if len(group) == 1:
            return *await asyncio.gather(known, last), frozenset()
        return await asyncio.gather(known, last, self._labelled(group))

    async def _known_messages(self, group: Sequence[VerbatimTurn]) -> dict[str, StoredPoint]:
        """Return the stored messages of these turns. After a crash message 0 may be missing."""
        named = [each for work in group for each in work.message_ids]
        return await self._calls.call(
            "store", lambda: self._store.get(TURNS_COLLECTION, tenant_id=group[0].turn.tenant_id, ids=named)
        )

    async def _labelled(self, group: Sequence[VerbatimTurn]) -> frozenset[str]:
        """Return the ids of the turns that have a label."""
        label_of = {ids.label_id(work.session_key, work.turn.turn_id): work.turn.turn_id for work in group}
        found = await self._calls.call(
            "store", lambda: self._store.get(LABELS, tenant_id=group[0].turn.tenant_id, ids=list(label_of))
        )
        return frozenset(label_of[each] for each in found)

    async def _open(self, record: Record) -> str | None:
        """Return the collection of the turn's period, created if necessary, or None when the period is over."""
        standing = await self._look() if self._standing is None else self._standing
        now = self._now()
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

    async def _messages_before(
        self, turn: Turn, first: StoredMessage | None, last: Sequence[StoredPoint]
    ) -> EarlierMessages:
        """Return the messages before this turn in log order.

        For a stored turn, these are the messages before its place. For a new turn, these are the session's last
        messages.
        """
        if first is None:
            return _earlier(last)
        if first.first_place is None:
            return EarlierMessages(next_place=None)
        return replace(_earlier(await self._last_messages(turn, below=first.first_place)), next_place=first.first_place)

    async def _last_messages(self, turn: Turn, *, below: int | None = None) -> list[StoredPoint]:
        """Return the last messages of the session, newest first, without the turn's own messages.

        The turn's own messages are left out, because after a crash the store may have some of them without message 0.
        """
        return await self._calls.call(
            "store",
            lambda: self._store.last(
                TURNS_COLLECTION,
                tenant_id=turn.tenant_id,
                where=_others_of_session(turn, below=below),
                order_by="session_place",
                limit=NEIGHBOURS,
            ),
        )

    def _count_parts(self, placed: Iterable[PlacedTurn]) -> None:
        others = sum(message.other_parts for each in placed for message in each.work.turn.messages)
        self._metrics.counted("parts_without_text", others)

    async def _vectors(self, tenant_id: str, made: TurnMessages) -> Vectors:
        """Embed texts and windows in one call and return vectors by text.

        When the embedder refuses a text, the texts are embedded without the windows, because a neighbouring message may
        be the cause. When the texts are refused too, the turn is stored without vectors, and only a search for its
        words finds it.
        """
        own, every = made.own_texts(), made.texts()
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

    async def _embed(self, tenant_id: str, texts: Sequence[str]) -> Vectors:
        if not texts:
            return {}
        vectors = await self._calls.call("embedder", lambda: self._embedder.embed(texts, tenant_id=tenant_id))
        return dict(zip(texts, vectors, strict=True))

    # ------------------------------------------------------------------------------------------------ effects
    async def store(self, outcome: Outcome) -> None:
        await apply_writes(self._store, outcome.writes)

    async def publish_state(self, outcome: Outcome) -> None:
        return None

    # ------------------------------------------------------------------------------------------------ reminders
    def retain(self, partitions: frozenset[int]) -> None:
        self._standing = None  # the previous owner of these partitions may have opened a period

    async def rediscover(self, partition: int, rows: Rows) -> None:
        return None

    async def end_rows(self, partition: int, rows: Rows) -> None:
        return None

    async def background(self) -> None:
        """Drop the periods that are over, after the first turn and then once a day."""
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
        """Delete the collections of periods that are over and return their names. Workers may do this concurrently."""
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


def _verbatim(events: Iterable[tuple[Record, RecorderEvent]]) -> Iterator[tuple[Record, VerbatimTurn]]:
    """Yield the first turns, up to a turn of an export."""
    for record, work in events:
        if isinstance(work, RestoredTurn):
            return
        yield record, work


def _bounded(events: Sequence[tuple[Record, VerbatimTurn]]) -> Iterator[tuple[Record, VerbatimTurn]]:
    """Yield the first turns that may be recorded together: with distinct ids and within the total size."""
    room = TURN_MAX_BYTES
    seen: set[str] = set()
    for record, work in events:
        room -= len(record.value or b"")
        if seen and (room < 0 or work.turn.turn_id in seen):
            return
        seen.add(work.turn.turn_id)
        yield record, work


def _is_new(work: VerbatimTurn, known: Mapping[str, StoredPoint], labelled: Container[str]) -> bool:
    return work.turn.turn_id not in labelled and not any(each in known for each in work.message_ids)


def _earlier(last: Sequence[StoredPoint]) -> EarlierMessages:
    """Return the session's last messages as the messages before a new turn. `last`: newest first."""
    messages = tuple(StoredMessage.from_payload(each.payload) for each in reversed(last))
    place = 1 + max((message.session_place or 0 for message in messages), default=-1)
    return EarlierMessages(place, messages, (last[0].collection if last else None) or TURNS_COLLECTION)


def _others_of_session(turn: Turn, *, below: int | None) -> models.Filter:
    session: list[models.Condition] = [equals("user_id", turn.user_id), equals("session_id", turn.session_id)]
    if below is not None:
        session.append(models.FieldCondition(key="session_place", range=models.Range(lt=below)))
    return models.Filter(must=session, must_not=[equals("turn_id", turn.turn_id)])
