"""Settings and workarounds that all aiokafka clients share."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka.protocol.commit import OffsetFetchRequest

ISOLATION = "read_committed"
"""Isolation level of all readers: records of aborted transactions are not read. All readers have the same level,
because the check whether a skipped offset has a record must see the same records as the consumer that skipped it."""


def back_off_metadata(client: Any) -> None:
    """Make a failed metadata update wait `retry_backoff_ms` (wraps `AIOKafkaClient._metadata_update` of this client).

    `aiokafka/client.py:260` returns from a failed update immediately, and `producer/sender.py:158` and
    `consumer/fetcher.py:559` repeat the update immediately. So during a broker outage a worker opens over 1 000
    connections a second, which costs CPU. Also, if the broker's port is in the ephemeral range, a connection can get
    this port as its source port and connect to itself. The broker then cannot bind the port again.
    """
    update = client._metadata_update

    async def metadata_update(cluster: Any, topics: Any) -> Any:
        done = await update(cluster, topics)
        if not done:
            await asyncio.sleep(client._retry_backoff)
        return done

    client._metadata_update = metadata_update


def spread_group_errors(client: Any) -> None:
    """Give the error of a whole group to each of its partitions (wraps `AIOKafkaClient.send` of this client).

    A broker that is still loading a group answers OffsetFetch with an error at the top and without partitions (since
    version 2). aiokafka reads only the errors of partitions (`consumer/group_coordinator.py:1194`,
    `admin/client.py:532`), so the group seems to have no offsets, and a consumer starts at the begin of its topics.
    """
    send = client.send

    async def send_and_spread(node_id: Any, request: Any, **options: Any) -> Any:
        response = await send(node_id, request, **options)
        if isinstance(request, OffsetFetchRequest) and (code := getattr(response, "error_code", 0)):
            response.topics = [
                (topic, [(each, -1, "", code) for each in parts]) for topic, parts in request._partitions
            ]
        return response

    client.send = send_and_spread


async def stop_consumer(consumer: Any) -> None:
    """Stop an `AIOKafkaConsumer`, also during a broker outage.

    A failed fetch sleeps before its retry (`aiokafka/consumer/fetcher.py:755`). If `stop` cancels the fetch during this
    sleep, `stop` raises CancelledError as if the caller had been cancelled, and the connections stay open.
    """
    try:
        await consumer.stop()
    except asyncio.CancelledError:
        caller = asyncio.current_task()
        if caller is None or caller.cancelling():
            raise
        await consumer._client.close()
