"""Publisher of recall events (memory.recalled). Frequently read records become stronger, and records that are read
together become linked.

Publishing never delays a reader: an answer is put into a bounded queue. Answers that do not fit, and records that the
log does not accept, are dropped and counted. The cue leaves this process only as a hash.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import structlog
from prometheus_client import CollectorRegistry, Counter

from ..schemas import ids
from ..schemas.cloudevents import CloudEvent
from ..schemas.errors import Fatal, Poison, Transient
from ..schemas.recall import RECALLED_MAX, RecalledRef, RecallReport, Tier
from ..schemas.topics import RECALLED
from ..schemas.turns import Owner
from ..streams.log.port import Log
from .request import RecallRequest
from .service import RecalledMemory, RecallPort, RecallResult

log = structlog.get_logger(__name__)
SOURCE = "/memstream/recall"
WAITING_MAX = 1_000
"""Maximum number of queued answers, enough for some seconds of many readers. A reader never waits for space."""
LINGER_SECONDS = 0.1
"""Seconds that an answer waits for further answers. All are appended together, so that a folder log syncs only once."""
AT_ONCE_MAX = 64
"""Maximum number of answers appended together. More answers would delay turns, which are written to the same log."""
PAUSE_SECONDS = 5.0
"""Seconds to pause after the log did not accept a record. Answers are dropped during the pause, so that they do not
delay other writers of the log."""
CLOSE_SECONDS = 2.0
"""Seconds for sending queued answers at shutdown."""


@dataclass(frozen=True, slots=True)
class AnsweredRecall:
    """An answer that a reader received. `items`: tier and id, best first. `owners`: owners whose memory was read."""

    tenant_id: str
    owners: tuple[Owner, ...]
    cue: str | None
    items: Sequence[tuple[Tier, str]]
    at: datetime
    asked_by: str = ""
    """The name of the caller; empty when unknown."""


class RecallPublisher(Protocol):
    def publish(self, answered: AnsweredRecall) -> None:
        """Queue an answer. Returns immediately and raises nothing."""
        ...


class NullRecallPublisher:
    """A publisher that publishes nothing."""

    def publish(self, answered: AnsweredRecall) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishingRecall:
    """`RecallPort` that publishes the answers of another `RecallPort`."""

    inner: RecallPort
    publisher: RecallPublisher

    async def recall(self, request: RecallRequest, *, now: datetime) -> RecallResult:
        recalled = await self.inner.recall(request, now=now)
        if not request.explain:
            self.publisher.publish(answered(request, recalled.items, now))
        return recalled


def answered(request: RecallRequest, items: Iterable[RecalledMemory], at: datetime) -> AnsweredRecall:
    named = tuple((each.item.tier, each.item.id) for each in items)
    return AnsweredRecall(request.tenant_id, request.owners, request.search_text, named, at, request.asked_by)


@dataclass(frozen=True, slots=True)
class PublisherMetrics:
    """Counters of sent and dropped records. The reason for a drop is `full` (queue) or `away` (log)."""

    sent: Counter
    dropped: Counter

    @classmethod
    def on(cls, registry: CollectorRegistry) -> PublisherMetrics:
        return cls(
            Counter("memstream_recalled_sent_total", "Records on memory.recalled", registry=registry),
            Counter(
                "memstream_recalled_dropped_total",
                "Recalls that were not published, by reason",
                ["why"],
                registry=registry,
            ),
        )


def records_of(answered: AnsweredRecall) -> list[RecallReport]:
    """Return one record per owner, or none for an answer without items."""
    items = tuple(
        RecalledRef(tier=tier, id=identity, rank=rank)
        for rank, (tier, identity) in enumerate(answered.items[:RECALLED_MAX])
    )
    if not items:
        return []
    recall_id = str(uuid.uuid4())
    cue_hash = None if answered.cue is None else ids.content_hash(answered.cue)
    return [
        RecallReport(
            recall_id=recall_id,
            tenant_id=answered.tenant_id,
            owner=owner,
            at=answered.at,
            cue_hash=cue_hash,
            items=items,
            asked_by=answered.asked_by[:128],
        )
        for owner in answered.owners
    ]


async def send(record: RecallReport, *, to: Log) -> None:
    """Append the record. It is durable on return. Raises Transient."""
    key = record.owner.key(record.tenant_id)
    event = CloudEvent(record.recall_id, SOURCE, "memstream.recalled.v1", key, record.at)
    await to.append(RECALLED.name, key=key.encode(), value=record.to_bytes(), headers=event.headers())


@dataclass(slots=True, kw_only=True)
class LogRecallPublisher:
    """`RecallPublisher` to a log that the caller starts and closes. Answers are sent only while `running` is active."""

    log: Log
    metrics: PublisherMetrics
    waiting_max: int = WAITING_MAX
    linger: float = LINGER_SECONDS
    pause: float = PAUSE_SECONDS
    _waiting: deque[AnsweredRecall] = field(default_factory=deque)
    _came: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: asyncio.Event = field(default_factory=asyncio.Event)
    _away_until: float = 0.0

    def publish(self, answered: AnsweredRecall) -> None:
        if len(self._waiting) >= self.waiting_max:
            self.metrics.dropped.labels("full").inc()
            return
        self._waiting.append(answered)
        self._came.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send answers inside the block. At its end, queued answers have `CLOSE_SECONDS` to be sent."""
        sending = asyncio.create_task(self._send_on())
        try:
            yield
        finally:
            self._closing.set()
            self._came.set()
            await asyncio.wait((sending,), timeout=CLOSE_SECONDS)
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending
            self._dropped(len(self._waiting))

    async def _send_on(self) -> None:
        while True:
            await self._came.wait()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self.linger)
            self._came.clear()
            await self._send_waiting()
            if self._closing.is_set():
                return

    async def _send_waiting(self) -> None:
        while self._waiting:
            some = [self._waiting.popleft() for _ in range(min(AT_ONCE_MAX, len(self._waiting)))]
            await asyncio.gather(*(self._send(record) for each in some for record in records_of(each)))

    async def _send(self, record: RecallReport) -> None:
        clock = asyncio.get_running_loop().time
        if clock() < self._away_until:
            self._dropped(1)
            return
        try:
            await send(record, to=self.log)
        except asyncio.CancelledError:
            self._dropped(1)
            raise
        except (Transient, Poison, Fatal) as error:
            if clock() >= self._away_until:
                log.warning("recall_not_told", why=str(error), paused=self.pause)
            self._away_until = clock() + self.pause
            self._dropped(1)
        else:
            self.metrics.sent.inc()

    def _dropped(self, records: int) -> None:
        if records:
            self.metrics.dropped.labels("away").inc(records)
