"""The audit trail on memory.audit: its publisher and its reader.

The publisher never delays an action. A record is already a line of the logger `memstream.audit`; then it waits in a
bounded queue until the log accepts it. While the log is away, records wait. A record that does not fit is missing on
the topic only, and is counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge
from pydantic import ValidationError

from ..schemas import ids
from ..schemas.audit import AUDIT_PAGE_MAX, AuditPage, AuditRecord
from ..schemas.cloudevents import CloudEvent
from ..schemas.errors import StageError
from ..schemas.topics import AUDIT_TRAIL
from ..streams.log.offsets import Offsets
from ..streams.log.port import Log
from .audit import AUDIT, RECORD

log = structlog.get_logger(__name__)

SOURCE: Final = "/memstream/audit"
WAITING_MAX: Final = 10_000
"""Maximum number of waiting records, about 8 MB: an outage of minutes for most servers."""
AT_ONCE_MAX: Final = 64
PAUSE_SECONDS: Final = 2.0
"""Seconds between two attempts while the log does not accept records."""
CLOSE_SECONDS: Final = 5.0
"""Seconds for sending waiting records when the process ends."""
SCAN_MAX: Final = 20_000
"""Maximum number of records that one page reads. A page may have fewer items than asked for, and still have a next."""
CLOCKS_DIFFER: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class AuditMetrics:
    sent: Counter
    dropped: Counter
    waiting: Gauge

    @classmethod
    def on(cls, registry: CollectorRegistry) -> AuditMetrics:
        return cls(
            Counter("memstream_audit_sent_total", "Records on memory.audit", registry=registry),
            Counter(
                "memstream_audit_dropped_total",
                "Records of the audit trail that are missing on memory.audit",
                registry=registry,
            ),
            Gauge("memstream_audit_waiting", "Records that wait for memory.audit", registry=registry),
        )


class _ToQueue(logging.Handler):
    """Handler of the logger `memstream.audit` that gives its records to a publisher."""

    def __init__(self, publisher: AuditPublisher) -> None:
        super().__init__()
        self._publisher = publisher

    def emit(self, record: logging.LogRecord) -> None:
        found = getattr(record, RECORD, None)
        if isinstance(found, AuditRecord):
            self._publisher.publish(found)


@dataclass(slots=True, kw_only=True)
class AuditPublisher:
    """Publisher of records to memory.audit. Records are taken and sent only while `running` is active."""

    log: Log
    metrics: AuditMetrics = field(default_factory=lambda: AuditMetrics.on(CollectorRegistry()))
    waiting_max: int = WAITING_MAX
    pause: float = PAUSE_SECONDS
    close_seconds: float = CLOSE_SECONDS
    _waiting: deque[AuditRecord] = field(default_factory=deque)
    _came: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: bool = False

    def publish(self, record: AuditRecord) -> None:
        """Queue a record. Returns immediately and raises nothing."""
        if len(self._waiting) >= self.waiting_max:
            self.metrics.dropped.inc()
            return
        self._waiting.append(record)
        self._came.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take the records of the logger inside the block. At its end, waiting records have CLOSE_SECONDS."""
        self.metrics.waiting.set_function(lambda: len(self._waiting))
        handler = _ToQueue(self)
        level, propagate = AUDIT.level, AUDIT.propagate
        AUDIT.addHandler(handler)
        AUDIT.setLevel(logging.INFO)
        AUDIT.propagate = False
        sending = asyncio.create_task(self._send_on())
        try:
            yield
        finally:
            AUDIT.removeHandler(handler)
            AUDIT.setLevel(level)
            AUDIT.propagate = propagate
            self._closing = True
            self._came.set()
            await asyncio.wait((sending,), timeout=self.close_seconds)
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending
            if self._waiting:
                self.metrics.dropped.inc(len(self._waiting))
                log.error("audit_not_published", records=len(self._waiting), remedy="the audit log has their lines")

    async def _send_on(self) -> None:
        told = False
        while not (self._closing and not self._waiting):
            await self._came.wait()
            some = [self._waiting[n] for n in range(min(AT_ONCE_MAX, len(self._waiting)))]
            try:
                await asyncio.gather(*(self._send(each) for each in some))
            except StageError as away:
                if not told:
                    log.warning("audit_waits", why=str(away), waiting=len(self._waiting), remedy=away.remedy)
                told = True
                await asyncio.sleep(self.pause)
                continue
            told = False
            for _ in some:
                self._waiting.popleft()
            self.metrics.sent.inc(len(some))
            if not self._waiting and not self._closing:
                self._came.clear()

    async def _send(self, record: AuditRecord) -> None:
        key = "" if record.tenant_id is None else ids.encode(record.tenant_id)
        event = CloudEvent(record.audit_id, SOURCE, "memstream.audit.v1", key, record.at)
        await self.log.append(
            AUDIT_TRAIL.name, key=key.encode() or None, value=record.to_bytes(), headers=event.headers()
        )


# ------------------------------------------------------------------------------------------------ reading
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """Selection of records. A field that is None selects all. `tenant_id` None also selects records without a tenant:
    denials of unknown tokens."""

    tenant_id: str | None = None
    user_id: str | None = None
    who: str | None = None
    action: str | None = None
    result: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def selects(self, record: AuditRecord) -> bool:
        owner = record.owner
        named = {
            (self.tenant_id, record.tenant_id),
            (self.user_id, owner.id if owner is not None and owner.scope == "user" else None),
            (self.who, record.who),
            (self.action, record.action),
            (self.result, record.result),
        }
        in_time = (self.since is None or record.at >= self.since) and (self.until is None or record.at < self.until)
        return in_time and all(wanted is None or wanted == found for wanted, found in named)


@dataclass(frozen=True, slots=True)
class AuditReader:
    """Reader of memory.audit."""

    log: Log

    async def page(self, query: AuditQuery, *, limit: int, cursor: str | None = None) -> AuditPage:
        """Return the next records that the query selects, oldest first. Raises ValueError for a wrong cursor, and
        Transient. Records of a later version that this one cannot read are left out."""
        limit = min(limit, AUDIT_PAGE_MAX)
        ends = Offsets(await self.log.ends(AUDIT_TRAIL.name))
        at = Offsets.read(cursor) if cursor else await self._begin(query, ends)
        at = at.at_least(Offsets(await self.log.starts(AUDIT_TRAIL.name)))
        items: list[AuditRecord] = []
        read = 0
        start = at.behind(ends)
        if not start:
            return AuditPage(items=(), next=None)
        async with aclosing(self.log.read(AUDIT_TRAIL.name, start=start)) as records:
            async for record in records:
                if len(items) == limit or read == SCAN_MAX:
                    return AuditPage(items=tuple(items), next=at.token())
                at, read = at.after(record.position), read + 1
                try:
                    found = AuditRecord.read(record.value or b"")
                except ValidationError:
                    continue
                if query.selects(found):
                    items.append(found)
        return AuditPage(items=tuple(items), next=None)

    async def _begin(self, query: AuditQuery, ends: Offsets) -> Offsets:
        """Return the offsets of the first records that may be in the time of the query. A record is appended after its
        time, unless clocks differ."""
        if query.since is None:
            return Offsets(())
        moment = int((query.since - CLOCKS_DIFFER).timestamp() * 1000)
        found = [await self.log.offset_at(AUDIT_TRAIL.name, p, max(0, moment)) for p in range(len(ends.offsets))]
        return Offsets(tuple(ends.of(p) if at is None else at for p, at in enumerate(found)))
