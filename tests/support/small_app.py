"""A small stage app for transport tests: it counts per key in a durable table and forwards every value.

A test uses `SmallApp(...)`, `start` and `stop`. As a process with several apps in one Faust worker:

    python -m tests.support.small_app '{"broker": "embedded:///folder", "datadir": …, "apps": [{"name": …, …}]}'
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faust

from memstream.streams.faust.app import AppSettings, StageApp, create_app
from memstream.streams.faust.table import event_scope, open_rows
from tests.support.kafka_worker import OneAtATime
from tests.support.polling import wait_for
from tests.support.table_rows import all_rows

WITHIN = 40.0
"""Seconds."""
RAW: dict[str, Any] = {"key_type": bytes, "value_type": bytes, "key_serializer": "raw", "value_serializer": "raw"}


@dataclass(frozen=True)
class Seen:
    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    timestamp: float


class SmallApp:
    """An app that adds 1 to the row `count` of each record's key and forwards the value to `writes`.

    From offset `holds_from` on it acknowledges nothing. A value `del <key>` deletes that row.
    """

    def __init__(
        self,
        *,
        broker: str,
        name: str,
        datadir: Path,
        reads: Sequence[str],
        writes: str | None = None,
        partitions: int = 2,
        holds_from: int | None = None,
        buffer_maxsize: int = 256,
    ) -> None:
        settings = AppSettings(
            partitions=partitions, session_timeout=6.0, buffer_maxsize=buffer_maxsize, crash_grace=0, stop_grace=0
        )
        datadir.mkdir(parents=True, exist_ok=True)
        self.app: StageApp = create_app(name=name, broker=broker, datadir=datadir, settings=settings)
        self.rows = open_rows(self.app, "count")
        self.seen: list[Seen] = []
        self._holds_from = holds_from
        self._out = self.app.topic(writes, **RAW) if writes else None
        self._lanes = self.app.lanes = OneAtATime(self.app)
        self.app.agent(self.app.topic(*reads, **RAW), name=f"{name}-agent")(self._consume)

    async def _consume(self, stream: Any) -> None:
        async for event in stream.noack().events():
            if event.message.generation_id != self.app.consumer_generation_id:
                continue
            epoch = self._lanes.epoch
            self._lanes.running.set()
            try:
                await self._handle(event)
            finally:
                self._lanes.running.clear()
            if self._holds_from is not None and event.message.offset >= self._holds_from:
                continue
            if epoch == self._lanes.epoch:
                self._lanes.done[event.message.tp] = event.message.offset + 1

    async def _handle(self, event: Any) -> None:
        message = event.message
        with event_scope(event):
            if event.value.startswith(b"del "):
                await self.rows.put({event.value[4:].decode(): None})
            else:
                key = event.key.decode()
                await self.rows.put({key: b"%d" % (int(self.rows.row(key) or b"0") + 1)})
        if self._out is not None:
            await (await self._out.send(key=event.key, value=event.value, headers=dict(message.headers)))
        headers = tuple((name, value) for name, value in message.headers)
        self.seen.append(
            Seen(message.topic, message.partition, message.offset, event.key, event.value, headers, message.timestamp)
        )

    def values(self) -> list[bytes]:
        return [seen.value for seen in self.seen]

    def table(self, partitions: int = 2) -> dict[str, int]:
        return {
            key: int(value) for partition in range(partitions) for key, value in all_rows(self.rows, partition).items()
        }

    async def start(self) -> None:
        await self.app.start()
        await wait_for(self.app.ready, "the app to be ready", deadline=WITHIN)

    async def stop(self) -> None:
        await self.app.stop()


def main() -> None:
    options = json.loads(sys.argv[1])
    apps = [
        SmallApp(broker=options["broker"], datadir=Path(options["datadir"]) / each["name"], **each).app
        for each in options["apps"]
    ]
    faust.Worker(*apps, loglevel="WARNING", quiet=True, redirect_stdouts=False).execute_from_commandline()


if __name__ == "__main__":
    main()
