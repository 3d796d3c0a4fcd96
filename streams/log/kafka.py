"""`Log` (port.py) over Kafka: producer, admin client and consumers without a group. Every wait has a time limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    InvalidTimestampError,
    KafkaError,
    NoError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)

from ...schemas.access import CLOCK_TOPIC
from ...schemas.errors import AccessRefused, DeploymentFault, Fatal, Poison, Transient
from ...schemas.topics import catalogue
from .kafka_access import KafkaAccess, denied, missing_right
from .kafka_client import ISOLATION, stop_consumer
from .kafka_rules import timestamp_refused
from .kafka_security import PLAINTEXT, KafkaSecurity
from .lenient_headers import decode_headers_leniently
from .port import Headers, Position, Record, TopicLayout, TopicSpec
from .write_errors import TOO_LARGE, write_error

#: seconds
TIMEOUT = 30.0
#: bytes; dead letters carry up to 1 MiB of value and headers
MAX_REQUEST = 4 * 1024 * 1024
#: seconds between two checks of a topic that is being created or deleted
PAUSE = 0.05
#: milliseconds that one fetch waits for records
FETCH_WAIT = 200
#: milliseconds that one fetch waits in a read with `follow`. A new record ends the wait. Each read has a separate
#: consumer with its own connection, so the wait delays no other request
FOLLOW_WAIT = 5_000
#: milliseconds after which a client refreshes its metadata and sees new partitions
METADATA_AGE = 30_000
#: seconds between two attempts of a call with a retriable error
BACKOFF = 0.2

T = TypeVar("T")


class KafkaLog:
    """`Log` (streams/log/port.py) over aiokafka.

    Args:
        servers: `host:port` of each server (see `broker_url.kafka_servers`).
        security: TLS and SASL of the connections.
        timeout: maximum seconds of each call. A longer call raises `Transient("broker", …)`; its append may still
            arrive.
        client_id: the name of this client in the broker's logs.
    """

    def __init__(
        self,
        *,
        servers: Sequence[str],
        security: KafkaSecurity = PLAINTEXT,
        timeout: float = TIMEOUT,
        client_id: str = "memstream",
    ) -> None:
        self._access = KafkaAccess(servers, security)
        self._timeout = timeout
        self._client_id = client_id
        self._admin: Any = None
        self._producer: Any = None
        self._failed: Any = None
        """The producer of the last failed record."""
        self._ending: set[asyncio.Task[None]] = set()
        """Tasks that stop replaced producers."""
        self._probe: Any = None
        self._known: set[str] = set()
        self._handing_over = asyncio.Lock()

    async def start(self) -> None:
        """Make one attempt to connect. A caller that wants to wait for the broker repeats the call."""
        decode_headers_leniently()
        async with self._reach("connect"):
            try:
                self._admin = await self._started(AIOKafkaAdminClient(**self._common()))
                self._probe = await self._started(self._consumer())
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        producer, probe = self._producer, self._probe
        for ending in self._ending:
            ending.cancel()
        admin, self._admin, self._producer, self._probe = self._admin, None, None, None
        try:
            async with asyncio.timeout(self._timeout):
                if producer is not None:
                    await producer.stop()
                if probe is not None:
                    await stop_consumer(probe)
        except TimeoutError:
            pass  # no broker answers; each append has already returned or raised
        finally:
            if admin is not None:
                await admin.close()

    # ----------------------------------------------------------------- records
    async def append(
        self,
        topic: str,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Position:
        producer = None
        self._started_part(self._admin)
        try:
            # One append at a time: during a lookup of the topic, later appends of a caller could overtake earlier ones.
            async with self._handing_over:
                await self._check_exists(topic)
                async with self._reach(f"append to {topic}"):
                    producer = await self._usable_producer()
                    sent = await producer.send(
                        topic, value, key=key, partition=partition, timestamp_ms=timestamp, headers=list(headers)
                    )
            async with self._reach(f"append to {topic}"):
                meta = await sent
        except Transient as exc:
            self._failed = producer
            if isinstance(exc.__cause__, TOO_LARGE):
                raise Poison("oversized", f"{topic}: a record of {len(value or b'')} bytes is too large") from exc
            self._known.discard(topic)
            refused = write_error(topic, exc.__cause__ or exc, timestamp=timestamp)
            if isinstance(exc.__cause__, InvalidTimestampError) and not isinstance(refused, DeploymentFault):
                raise timestamp_refused(topic) from exc
            if isinstance(refused, Transient):
                raise
            raise refused from exc.__cause__
        return Position(topic, meta.partition, meta.offset)

    async def _usable_producer(self) -> Any:
        """Return the producer. Create it for the first append, and replace it after a failed append.

        A reader needs no producer, and a broker gives a user without the right to write no producer id.

        aiokafka drops a batch that expires while its partition has no leader (`producer/message_accumulator.py:487`),
        but does not use the batch's sequence number again. The broker then refuses every later batch of the partition
        as out of order.
        """
        if self._producer is None:
            self._producer = await self._new_producer()
        elif self._failed is self._producer:
            failed, self._producer = self._producer, await self._new_producer()
            ending = asyncio.create_task(self._end(failed))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)
        return self._producer

    async def _end(self, producer: Any) -> None:
        """Stop a replaced producer. An append that still waits for this producer raises at its time-out or earlier."""
        with suppress(KafkaError, OSError, TimeoutError):
            async with asyncio.timeout(self._timeout):
                await producer.stop()

    async def _new_producer(self) -> Any:
        return await self._started(
            AIOKafkaProducer(**self._common(), acks="all", enable_idempotence=True, max_request_size=MAX_REQUEST)
        )

    async def _check_exists(self, topic: str) -> None:
        """Raise Fatal if a topic does not exist. The producer itself would look for the topic until its time-out."""
        if topic in self._known:
            return
        if await self.partitions(topic) is None:
            raise Fatal(f"there is no topic {topic}: run `memstream topics create`")
        self._known.add(topic)

    async def read(
        self, topic: str, *, start: Mapping[int, int] | None = None, follow: bool = False
    ) -> AsyncGenerator[Record]:
        firsts, ends = await self.starts(topic), await self.ends(topic)
        wanted = range(len(ends)) if start is None else [p for p in start if p < len(ends)]
        places: dict[TopicPartition, int] = {}
        for p in wanted:
            asked = firsts[p] if start is None else start[p]
            # For an offset past the end, the broker answers "out of range", and the consumer restarts at the beginning.
            places[TopicPartition(topic, p)] = min(max(asked, firsts[p]), ends[p])
        open_ = {tp for tp, place in places.items() if follow or place < ends[tp.partition]}
        if not open_:
            return
        async with self._reach(f"read {topic}"):
            consumer = await self._started(self._consumer(wait=FOLLOW_WAIT if follow else FETCH_WAIT))
        try:
            consumer.assign(list(open_))
            for tp in open_:
                consumer.seek(tp, places[tp])
            quiet_since = asyncio.get_running_loop().time()
            while open_:
                batches = await consumer.getmany(timeout_ms=FOLLOW_WAIT if follow else FETCH_WAIT)
                for tp, batch in batches.items():
                    for raw in batch:
                        if follow or raw.offset < ends[tp.partition]:
                            yield _record(raw)
                if follow:
                    if len(consumer.partitions_for_topic(topic) or ()) > len(ends):
                        raise self._away(f"follow {topic}: it has more partitions now", None)
                    continue
                before = len(open_)
                open_ = {tp for tp in open_ if await self._place(consumer, tp) < ends[tp.partition]}
                now = asyncio.get_running_loop().time()
                if batches or len(open_) < before:
                    quiet_since = now
                elif now - quiet_since > self._timeout:
                    raise self._away(f"read {topic}: nothing came for {self._timeout:.0f} s", None)
        except KafkaError as exc:
            raise self._away(f"read {topic}", exc) from exc
        finally:
            await stop_consumer(consumer)

    async def first_at_or_after(self, topic: str, partition: int, offset: int) -> int | None:
        ends = await self.ends(topic)
        if partition >= len(ends) or offset >= ends[partition]:
            return None
        async with aclosing(self.read(topic, start={partition: offset})) as records:
            async for record in records:
                return record.position.offset
        return None

    # ----------------------------------------------------------------- offsets
    async def partitions(self, topic: str) -> int | None:
        found = await self._call(f"describe {topic}", lambda: self._started_part(self._admin).describe_topics([topic]))
        layout = found[0] if found else None
        if layout is None or _layout_error(layout) is not NoError:
            return None
        return len(layout["partitions"])

    async def ends(self, topic: str) -> tuple[int, ...]:
        return await self._offsets(topic, "end_offsets")

    async def starts(self, topic: str) -> tuple[int, ...]:
        return await self._offsets(topic, "beginning_offsets")

    async def offset_at(self, topic: str, partition: int, timestamp: int) -> int | None:
        tp = TopicPartition(topic, partition)
        if tp not in await self._partitions_of(topic):
            return None
        found = await self._call(
            f"offset by time in {topic}",
            lambda: self._started_part(self._probe).offsets_for_times({tp: max(timestamp, 0)}),
        )
        return None if found.get(tp) is None else int(found[tp].offset)

    async def committed(self, group: str, topic: str) -> tuple[int | None, ...]:
        places = await self._partitions_of(topic)
        if not places:
            return ()
        found = await self._call(
            f"committed offsets of {group}",
            lambda: self._started_part(self._admin).list_consumer_group_offsets(group, partitions=places),
        )
        offsets = (found[tp].offset if tp in found else -1 for tp in places)
        return tuple(offset if offset >= 0 else None for offset in offsets)

    async def members(self, group: str) -> int:
        answers = await self._call(
            f"members of {group}", lambda: self._started_part(self._admin).describe_consumer_groups([group])
        )
        return sum(len(described[5]) for answer in answers for described in answer.groups)

    async def clock_ahead(self, *, replication: int) -> float:
        """Return the seconds by which this machine's clock is ahead of the broker's; negative when it is behind.

        The broker sets the timestamp of each record in the topic `memory-clock`. This call creates the topic if it does
        not exist. The result is exact to half of the round trip.
        """
        config = {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete", "retention.ms": "3600000"}
        await self.create([TopicSpec(CLOCK_TOPIC, 1, replication, config)])
        async with self._reach(f"append to {CLOCK_TOPIC}"):
            producer = await self._usable_producer()
            await producer.send_and_wait(CLOCK_TOPIC, b"first", partition=0)  # the first send looks up the topic
            asked = time.time()
            meta = await producer.send_and_wait(CLOCK_TOPIC, b"clock", partition=0)
            answered = time.time()
        return (asked + answered) / 2 - float(meta.timestamp) / 1000

    # ----------------------------------------------------------------- topics
    async def topics(self) -> dict[str, TopicLayout]:
        return await self._call("list topics", self._topics)

    async def _topics(self) -> dict[str, TopicLayout]:
        admin = self._started_part(self._admin)
        visible = {name for name in await admin.list_topics() if not name.startswith("__")}
        # The list leaves out topics that this client may not describe. Asked by name, the broker says so.
        catalogued = {topic.name for topic in catalogue()}
        described = await admin.describe_topics(sorted(visible | catalogued))
        names = [layout["topic"] for layout in described if _layout_error(layout) is NoError]
        if not names:
            return {}
        configs: dict[str, dict[str, str]] = {}
        for answer in await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in names]):
            for code, _message, _kind, name, entries in (tuple(r)[:5] for r in answer.resources):
                if for_code(code) is TopicAuthorizationFailedError and name in catalogued:
                    raise denied("DescribeConfigs", "topic", name)
                configs[name] = {entry[0]: entry[1] for entry in entries if entry[1] is not None}
        return {
            layout["topic"]: TopicLayout(
                name=layout["topic"], partitions=len(layout["partitions"]), config=configs.get(layout["topic"], {})
            )
            for layout in described
            if layout["topic"] in names
        }

    async def create(self, wanted: Sequence[TopicSpec]) -> None:
        admin = self._started_part(self._admin)
        new = [NewTopic(w.name, w.partitions, w.replication, topic_configs=dict(w.config)) for w in wanted]
        if not new:
            return
        async with self._reach("create topics"):
            answer = await admin.create_topics(new)
            for name, code, *rest in answer.topic_errors:
                error = for_code(code)
                if error not in (NoError, TopicAlreadyExistsError):
                    raise Fatal(f"topic {name} cannot be created: {error.__name__} {rest[0] if rest else ''}".rstrip())
            for w in wanted:  # the broker answers before all brokers know the topic
                while not await self._has_leaders(w.name):  # noqa: ASYNC110 - the broker sends no notice
                    await asyncio.sleep(PAUSE)

    async def add_partitions(self, topic: str, partitions: int) -> None:
        admin = self._started_part(self._admin)
        async with self._reach(f"add partitions to {topic}"):
            if (await self.partitions(topic) or 0) < partitions:
                await admin.create_partitions({topic: NewPartitions(partitions)})
            while not await self._has_leaders(topic, at_least=partitions):  # noqa: ASYNC110 - the broker sends no notice
                await asyncio.sleep(PAUSE)
            clients = [self._started_part(self._probe)._client]
            if self._producer is not None:
                clients.append(self._producer.client)
            for client in clients:  # without this, the clients see the new partitions only after METADATA_AGE
                while len(client.cluster.partitions_for_topic(topic) or ()) < partitions:
                    client.add_topic(topic)
                    await client.force_metadata_update()

    async def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        if not offsets:
            return
        places = {TopicPartition(topic, partition): offset for partition, offset in offsets.items()}
        async with self._reach(f"commit offsets of {group}"):
            consumer = await self._started(self._consumer(group))
            try:
                consumer.assign(list(places))
                await consumer.commit(places)
            finally:
                await stop_consumer(consumer)

    async def delete(self, topics: Sequence[str]) -> None:
        admin = self._started_part(self._admin)
        if not topics:
            return
        async with self._reach("delete topics"):
            answer = await admin.delete_topics(list(topics))
            for name, code, *_ in (
                answer.topic_error_codes if hasattr(answer, "topic_error_codes") else answer.responses
            ):
                error = for_code(code)
                if error not in (NoError, UnknownTopicOrPartitionError):
                    raise Fatal(f"topic {name} cannot be deleted: {error.__name__}")
            while set(topics) & set(await admin.list_topics()):  # noqa: ASYNC110 - the broker sends no notice
                await asyncio.sleep(PAUSE)

    # ----------------------------------------------------------------- inside
    def _common(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": self._access.servers,
            "client_id": self._client_id,
            "request_timeout_ms": int(self._timeout * 1000),
            "metadata_max_age_ms": METADATA_AGE,
        }

    def _consumer(self, group: str | None = None, *, wait: int = FETCH_WAIT) -> Any:
        return AIOKafkaConsumer(
            **self._common(),
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level=ISOLATION,
            fetch_max_wait_ms=wait,
            max_partition_fetch_bytes=MAX_REQUEST,
        )

    async def _started(self, part: Any) -> Any:
        client = getattr(part, "_client", None) or getattr(part, "client", None)
        self._access.prepare(client)
        try:
            await part.start()
        except BaseException:
            closing = part.close if isinstance(part, AIOKafkaAdminClient) else part.stop
            await closing()
            raise
        return part

    def _started_part(self, part: Any) -> Any:
        if part is None:
            raise Fatal("the log is used before start() or after close()")
        return part

    async def _call(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat a call while its error is retriable. For example, a new broker has no group coordinator at first."""
        async with self._reach(what):
            while True:
                try:
                    return await call()
                except KafkaError as exc:
                    if not exc.retriable:
                        raise
                    await asyncio.sleep(BACKOFF)

    @asynccontextmanager
    async def _reach(self, what: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout):
                yield
        except (KafkaError, OSError, TimeoutError) as exc:
            raise self._away(what, exc) from exc

    def _away(self, what: str, exc: BaseException | None) -> Transient:
        refused = self._access.refusal or missing_right(exc)
        if refused is not None:
            return AccessRefused("broker", f"{what}: {refused}", remedy=refused.remedy)
        servers = ",".join(self._access.servers)
        why = f": {type(exc).__name__} {exc}".rstrip() if exc is not None else ""
        return Transient("broker", f"{what}{why} (kafka://{servers})", remedy=self._access.away_remedy)

    async def _partitions_of(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, p) for p in range(await self.partitions(topic) or 0)]

    async def _offsets(self, topic: str, which: str) -> tuple[int, ...]:
        places = await self._partitions_of(topic)
        if not places:
            return ()
        found = await self._call(f"{which} of {topic}", lambda: getattr(self._started_part(self._probe), which)(places))
        return tuple(found[tp] for tp in places)

    async def _place(self, consumer: Any, tp: TopicPartition) -> int:
        """Return the consumer's position, which also moves past compacted records and transaction markers."""
        async with self._reach(f"position in {tp.topic}"):
            return int(await consumer.position(tp))

    async def _has_leaders(self, topic: str, *, at_least: int = 1) -> bool:
        found = await self._started_part(self._admin).describe_topics([topic])
        parts: Iterable[Any] = found[0]["partitions"] if found else ()
        parts = list(parts)
        return len(parts) >= at_least and all(for_code(p["error_code"]) is NoError and p["leader"] >= 0 for p in parts)


def _layout_error(layout: Mapping[str, Any]) -> Any:
    """Return the error of a described topic. Raises AccessRefused if this client may not describe the topic."""
    error = for_code(layout["error_code"])
    if error is TopicAuthorizationFailedError:
        raise denied("Describe", "topic", layout["topic"])
    return error


def _record(raw: Any) -> Record:
    return Record(
        position=Position(raw.topic, raw.partition, raw.offset),
        key=raw.key,
        value=raw.value,
        headers=tuple((name, value or b"") for name, value in raw.headers),
        timestamp=raw.timestamp,
    )
