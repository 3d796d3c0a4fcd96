"""A worker for fault tests on a real broker. It counts per key in a durable table, one event at a time.

    python -m tests.support.kafka_worker '{"broker": "kafka://127.0.0.1:9092", "name": …, "datadir": …, "note": …}'

Each event's value is a sequence number within its key. The row has the number of events, the last one, and how often
one was out of order; the same goes to the topic `<name>-out`. The worker writes what happened to the file `note` as
JSON lines. With `gate` it holds an event until a file of that name exists, with `room` it has no room for any until
then. `max_poll`: aiokafka's `max_poll_interval_ms`, in seconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import faust
import structlog

from memstream.streams.engine.process_exit import LeaseLost, exit_code_for
from memstream.streams.faust.app import AppSettings, create_app
from memstream.streams.faust.table import TableRows, event_scope, open_rows
from tests.support.table_rows import all_rows

DRAIN = 20.0
"""Seconds; the same as a stage's lanes wait."""


class OneAtATime:
    """The simplest `Drainable`: an epoch that ends at a drain, and the offsets handled in it."""

    def __init__(self, app: Any, room: Path | None = None) -> None:
        self.app = app
        self.room = room
        self.epoch = 0
        self.draining: int | None = None
        """The epoch whose last event the drain waits for."""
        self.running = asyncio.Event()
        self.done: dict[Any, int] = {}

    def has_room(self, tp: tuple[str, int]) -> bool:
        return self.room is None or self.room.exists()

    def committable(self) -> dict[Any, int]:
        return self.done

    def idle(self) -> bool:
        return not self.running.is_set()

    async def finish(self) -> None:
        """Return at once, since there is never an event before the running one."""

    async def drain(self, revoked: frozenset[tuple[str, int]]) -> None:
        self.draining, self.epoch = self.epoch, self.epoch + 1
        end = time.monotonic() + DRAIN
        while self.running.is_set() and time.monotonic() < end:
            await asyncio.sleep(0.01)
        offsets = {tp: o for tp, o in self.done.items() if (tp.topic, tp.partition) in revoked}
        self.done, self.draining = {}, None
        if offsets and not self.app._crashed.is_set():
            await asyncio.wait_for(self.app.consumer._commit_offsets(offsets), 10)

    async def close(self) -> None:
        return


def main() -> None:
    options = json.loads(sys.argv[1])
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    notes = Path(options["note"]).open("a", buffering=1)  # noqa: SIM115 - for as long as the process lives

    def note(**fields: Any) -> None:
        notes.write(json.dumps({"at": time.time(), **fields}) + "\n")

    app = create_app(
        name=options["name"],
        broker=options["broker"],
        datadir=Path(options["datadir"]),
        settings=AppSettings(
            partitions=options.get("partitions", 4),
            session_timeout=options.get("session", 3.0),
            worker_id=options.get("worker_id"),
            stop_grace=options.get("stop_grace", 60.0),
        ),
    )
    if "max_poll" in options:
        app.conf.broker_max_poll_interval = options["max_poll"]
    rows = open_rows(app, "count") if options.get("table", True) else None
    gate = Path(options["gate"]) if "gate" in options else None
    raw: dict[str, Any] = {"key_type": bytes, "value_type": bytes, "key_serializer": "raw", "value_serializer": "raw"}
    source, out = app.topic(f"{options['name']}-in", **raw), app.topic(f"{options['name']}-out", **raw)
    lanes = app.lanes = OneAtATime(app, Path(options["room"]) if "room" in options else None)

    @app.agent(source, name="count")  # type: ignore[untyped-decorator]
    async def count(stream: Any) -> None:
        async for event in stream.noack().events():
            epoch = lanes.epoch
            if event.message.generation_id != app.consumer_generation_id:
                continue
            lanes.running.set()
            try:
                done = await handled(event, epoch)
            finally:
                lanes.running.clear()
            if done and epoch in (lanes.epoch, lanes.draining):
                lanes.done[event.message.tp] = event.message.offset + 1

    async def handled(event: Any, epoch: int) -> bool:
        """Handle the event; return False if the partition went to another worker meanwhile."""
        while True:
            try:
                await handle(event, rows)
            except LeaseLost:  # either the coordinator answers again, or a new epoch begins
                while not app.lease_ok():
                    if epoch != lanes.epoch or app.should_stop:
                        return False
                    await asyncio.sleep(0.1)
            else:
                return True

    async def handle(event: Any, rows: TableRows | None) -> None:
        key, seq = event.key.decode(), int(event.value)
        note(what="begun", key=key, seq=seq)
        while gate is not None and not gate.exists():
            await asyncio.sleep(0.02)
        state = {"n": 0, "last": -1, "wrong": 0}
        with event_scope(event):
            if rows is not None:
                state = json.loads(rows.row(key) or json.dumps(state))
                if seq > state["last"]:
                    state["wrong"] += seq != state["last"] + 1
                    state["n"], state["last"] = state["n"] + 1, seq
                    await rows.put({key: json.dumps(state).encode()})
        app.check_lease()
        await (await out.send(key=event.key, value=event.value))
        note(what="done", key=key, seq=seq)

    end = app.on_rebalance_end

    def on_rebalance_end() -> None:
        end()
        partitions = sorted(p for t, p in app.assigned() if t == f"{options['name']}-in")
        kept = {}
        if rows is not None:
            kept = {key: json.loads(value) for p in partitions for key, value in all_rows(rows, p).items()}
        note(what="ready", partitions=partitions, rows=kept)

    app.on_rebalance_end = on_rebalance_end
    worker = faust.Worker(app, loglevel="WARNING", quiet=True)
    try:
        worker.execute_from_commandline()
    finally:
        if app.crash_reason is not None:
            note(what="crash", error=repr(app.crash_reason))
            sys.exit(exit_code_for(app.crash_reason))


if __name__ == "__main__":
    main()
