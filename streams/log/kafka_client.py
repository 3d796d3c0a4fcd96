"""What every aiokafka client of ours needs."""

from __future__ import annotations

import asyncio
from typing import Any

ISOLATION = "read_committed"
"""What a producer took back (a transaction that was aborted) was never said. For all that reads: who asks the log
whether an offset exists must see the same log as the consumer that passed over it."""


def back_off_metadata(client: Any) -> None:
    """Let a failed metadata update wait `retry_backoff_ms` (wraps `AIOKafkaClient._metadata_update` of this client).

    `aiokafka/client.py:260` answers a failed update at once, and `producer/sender.py:158` and `consumer/fetcher.py:559`
    ask again at once: over 1 000 connects a second per worker while the broker is away. Besides the CPU, on a broker
    port inside the ephemeral range a connect in such a loop gets that very port as its source, ends up connected to
    itself, and the broker cannot bind again.
    """
    update = client._metadata_update

    async def metadata_update(cluster: Any, topics: Any) -> Any:
        done = await update(cluster, topics)
        if not done:
            await asyncio.sleep(client._retry_backoff)
        return done

    client._metadata_update = metadata_update


async def stop_consumer(consumer: Any) -> None:
    """Stop an `AIOKafkaConsumer`, also while the broker is away.

    A fetch that has failed waits a moment (`aiokafka/consumer/fetcher.py:755`); cancelled there by the consumer's own
    stop, its CancelledError comes out of that stop as if somebody had cancelled the caller, and the connections stay
    open.
    """
    try:
        await consumer.stop()
    except asyncio.CancelledError:
        caller = asyncio.current_task()
        if caller is None or caller.cancelling():
            raise
        await consumer._client.close()
