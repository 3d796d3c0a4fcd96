"""Faust's transport for `embedded:///folder`: the log on disk instead of a broker (see `sqlite_log`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import structlog
from faust.exceptions import NotReady
from faust.transport import base
from faust.transport.drivers import TRANSPORTS
from faust.types import TP, RecordMetadata
from mode.utils.times import want_seconds

from ....schemas.errors import Fatal
from ...log.kafka_rules import check_size, check_timestamp, check_topic, choose_partition, topic_config, unknown_topic
from ...log.log_registry import close_log, open_log
from ...log.port import Headers
from ...log.sqlite_log import SqliteLog
from ...log.sqlite_tables import LogTopic
from .embedded_consumer import EmbeddedConsumer

log = structlog.get_logger(__name__)

_CREATE_TIME = 0


class EmbeddedProducer(base.Producer):
    """A producer over the log on disk. Records are appended in the order of the calls."""

    #: Maximum bytes of records that wait for the disk. When this limit is reached, `send` waits.
    max_waiting_bytes: int = 32 << 20

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._log: SqliteLog | None = None
        self._waiting: set[asyncio.Future[RecordMetadata]] = set()
        self._waiting_bytes = 0

    async def on_start(self) -> None:
        await super().on_start()
        self._log = await open_log(self.transport.folder)

    async def on_stop(self) -> None:
        await super().on_stop()
        await self._settle()
        opened, self._log = self._log, None
        if opened is not None:
            await close_log(opened)

    async def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        timestamp: float | None,
        headers: Any,
        *,
        transactional_id: str | None = None,
    ) -> Awaitable[RecordMetadata]:
        """Append a record. The awaitable is done when the record is durable.

        Raises:
            Fatal: the topic does not exist.
            Poison: the record is too large, or its timestamp is too far in the future.
        """
        found = self._opened().topic(topic) or self._refreshed_topic(topic)
        packed = _headers(headers)
        check_size(found, key, value, packed)
        if timestamp is not None:
            check_timestamp(found, int(timestamp * 1000), now=time.time_ns() // 1_000_000)
        self.app.on_produce_message.send(
            key=key, value=value, partition=partition, timestamp=timestamp, headers=list(packed)
        )
        size = len(key or b"") + len(value or b"")
        while self._waiting and self._waiting_bytes + size > self.max_waiting_bytes:
            await asyncio.wait(self._waiting, return_when=asyncio.FIRST_COMPLETED)
        tp = TP(topic, choose_partition(found, key, partition))
        stamp = time.time() if timestamp is None else timestamp
        appended = self._opened().append(
            found.parts[tp.partition], key=key, value=value, headers=packed, timestamp=int(stamp * 1000)
        )
        done: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
        self._waiting.add(done)
        self._waiting_bytes += size
        appended.add_done_callback(partial(self._settled, done, tp, stamp, size))
        return done

    async def send_and_wait(self, *args: Any, **kwargs: Any) -> RecordMetadata:
        return await (await self.send(*args, **kwargs))

    def _settled(
        self, done: asyncio.Future[RecordMetadata], tp: TP, stamp: float, size: int, appended: asyncio.Future[int]
    ) -> None:
        self._waiting.discard(done)
        self._waiting_bytes -= size
        if done.done():
            return
        error = appended.exception()
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(RecordMetadata(tp.topic, tp.partition, tp, appended.result(), stamp, _CREATE_TIME))

    async def flush(self) -> None:
        """Wait until every sent record is durable or has failed. The future of a failed record has the error."""
        await self.buffer.flush()
        await self._settle()

    async def _settle(self) -> None:
        while self._waiting:
            await asyncio.wait(self._waiting)

    def key_partition(self, topic: str, key: bytes) -> TP:
        found = self._opened().topic(topic)
        if found is None:
            raise unknown_topic(topic)
        return TP(topic, choose_partition(found, key, None))

    async def create_topic(
        self,
        topic: str,
        partitions: int,
        replication: int,
        *,
        config: Mapping[str, Any] | None = None,
        timeout: Any = None,
        retention: Any = None,
        compacting: bool | None = None,
        deleting: bool | None = None,
        ensure_created: bool = False,
    ) -> None:
        """Create the topic if it does not exist. An existing topic is not changed."""
        if not self.app.conf.topic_allow_declare or self._opened().topic(topic) is not None:
            return
        check_topic(topic, partitions)
        seconds = None if retention is None else want_seconds(retention)
        made = topic_config(retention=seconds, compacting=compacting, deleting=deleting, config=config)
        if compacting:  # a table's row may be larger than Kafka's default of 1 MiB
            made.setdefault("max.message.bytes", str(self.max_request_size))
        await self._opened().create([(topic, partitions, made)])

    def supports_headers(self) -> bool:
        return True

    def _refreshed_topic(self, topic: str) -> LogTopic:
        self._opened().refresh()  # another process may have created the topic
        found = self._opened().topic(topic)
        if found is None:
            raise unknown_topic(topic)
        return found

    def _opened(self) -> SqliteLog:
        if self._log is None:
            raise NotReady("the log is not open yet")
        return self._log


def _headers(given: Any) -> Headers:
    if not given:
        return ()
    items = given.items() if isinstance(given, Mapping) else given
    return tuple((name, value.encode() if isinstance(value, str) else bytes(value or b"")) for name, value in items)


class EmbeddedTransport(base.Transport):
    """The transport of `embedded://` addresses after `register()`."""

    Consumer: ClassVar[Any] = EmbeddedConsumer
    Producer: ClassVar[Any] = EmbeddedProducer

    default_port = 0
    driver_version = "embedded"

    @property
    def folder(self) -> Path:
        """Return the folder of the app's address. Raises `Fatal` when it is not `embedded:///folder`."""
        url = self.url[0]
        if len(self.url) > 1 or url.host or not url.path.startswith("/") or url.path == "/":
            raise Fatal(f"{url}: expected embedded:///folder with an absolute path")
        return Path(url.path)


def embedded_url(folder: Path) -> str:
    """Return a folder's address with a quoted path: Faust would split it at `;` and `,`, and cut it at `#`."""
    return f"embedded://{quote(str(folder))}"


def register() -> None:
    """Register `EmbeddedTransport` for `embedded://` addresses of every Faust app in the process."""
    TRANSPORTS.aliases["embedded"] = f"{__name__}:EmbeddedTransport"
