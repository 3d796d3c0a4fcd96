"""The sender of a stage: it passes records to the app's producer, and translates the producer's errors."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka.errors import KafkaError
from faust.exceptions import NotReady, ProducerSendError

from ...schemas.errors import Fatal, Poison, StageError
from ...schemas.outcomes import OutRecord
from ..engine.retry import BROKER, Calls
from ..log.write_errors import write_error
from .app import StageApp


def not_sent(record: OutRecord, error: Exception) -> StageError:
    """Translate an error of the producer: Transient, or Fatal when another attempt cannot help."""
    cause = error.__cause__ or error
    if isinstance(cause, Poison):  # the embedded log raises Poison for a record that is too large
        return Fatal(f"a record of memstream is larger than {record.topic} accepts: {cause} (check max.message.bytes)")
    return write_error(record.topic, cause, timestamp=record.timestamp)


class Sender:
    """A sender over the app's producer (`Send` of streams/engine/handler.py)."""

    def __init__(self, app: StageApp, calls: Calls) -> None:
        self._app = app
        self._calls = calls

    async def __call__(self, record: OutRecord) -> asyncio.Future[Any]:
        """Pass a record to the producer. The future is done when the broker has the record.

        Raises, immediately or through the future:
            LeaseLost: other workers may own the partitions of this worker.
            Transient: the broker did not accept the record.
            Fatal: the broker permanently refuses the record.
            DeploymentFault: the broker permanently refuses every record of the topic.
        """
        self._app.check_lease()
        try:
            sent: asyncio.Future[Any] = await self._app.producer.send(
                record.topic,
                record.key,
                record.value,
                None,
                None if record.timestamp is None else record.timestamp / 1000,
                list(record.headers),
            )
        except (KafkaError, ProducerSendError, Poison, NotReady) as error:  # NotReady: the worker starts, or stops
            raise not_sent(record, error) from error
        durable: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def settle(sent: asyncio.Future[Any]) -> None:
            if durable.done():  # the caller that waits for it was cancelled
                return
            error = None if sent.cancelled() else sent.exception()
            if sent.cancelled():
                durable.cancel()
            elif error is None:
                durable.set_result(sent.result())
            elif isinstance(error, KafkaError | ProducerSendError | Poison):
                durable.set_exception(not_sent(record, error))
            else:
                durable.set_exception(error)

        sent.add_done_callback(settle)
        return durable

    async def durable(self, record: OutRecord) -> None:
        """Send one record and wait until it is durable. Repeats while the broker is away."""

        async def send() -> None:
            await (await self(record))

        await self._calls.call(BROKER, send)
