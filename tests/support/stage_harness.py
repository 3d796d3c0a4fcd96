"""A harness that runs records through the real `Handler` of any stage and kills it at every step.

Rows and log are in memory. A step is every moment at which a process may die and leave a different state behind: each
row in the local store, each changelog entry on the broker, the call of the store (before and after), each record on its
topic, the crash points.

    harness = StageHarness(name="observer", make=lambda harness: Observer(…, send_durably=harness.send_durably, …))
    await harness.run(records)                                   # nothing dies: the expected result
    for kill in kills(len(harness.steps)):                       # a fresh harness each time
        killed = StageHarness(…)
        await killed.run(records, kill=kill)                     # dies there, starts again, gets its records again
        killed.check_equal_bytes()
        assert the same rows, points and records; killed.step names the step

The harness does not own the stage's store: pass a fake or the real engine to the stage. A sink may call
`harness.pass_step("…")` for steps of its own.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from memstream.schemas.outcomes import Outcome, OutRecord
from memstream.schemas.topics import StageName
from memstream.streams.engine.crash_points import CrashPoint, Step
from memstream.streams.engine.error_boundary import CrashCounter, ErrorBoundary
from memstream.streams.engine.handler import Handler, Stage
from memstream.streams.engine.lane_events import Routed
from memstream.streams.engine.metrics import Metrics, StageMetrics
from memstream.streams.engine.retry import Calls, RetryPolicy
from memstream.streams.log.port import Position, Record

from .table_rows import page_of


class Killed(BaseException):
    """The simulated end of the process. It is not an `Exception`, so that nothing handles it."""


@dataclass(frozen=True)
class Kill:
    """Die at the `at`-th step (from 1).

    `empty_folder`: the next process has no local store, only the changelog. `from_start`: nothing was committed (a slow
    neighbour), so all records come again, not only the current one.
    """

    at: int
    empty_folder: bool = False
    from_start: bool = False


def kills(steps: int) -> Iterator[Kill]:
    """Yield every step, with and without the local store, with and without the commit before it."""
    for at in range(1, steps + 1):
        for empty_folder in (False, True):
            for from_start in (False, True):
                yield Kill(at, empty_folder=empty_folder, from_start=from_start)


class HarnessRows:
    """The stage's rows. `local` is the store in its folder, `changelog` the last entry of each key on the broker."""

    def __init__(self, passed: Callable[[str], None]) -> None:
        self.local: dict[str, bytes] = {}
        self.changelog: dict[str, bytes] = {}
        self.until: dict[tuple[str, int], int] = {}
        """What a growth notes of topics and partitions: below it everything was applied."""
        self._passed = passed

    def row(self, key: str, *, partition: int | None = None) -> bytes | None:
        return self.local.get(key)

    async def put(self, rows: Mapping[str, bytes | None], *, partition: int | None = None) -> None:
        for part, name in ((self.local, "local"), (self.changelog, "changelog")):
            for key, value in rows.items():
                if value is None:
                    part.pop(key, None)
                else:
                    part[key] = value
                self._passed(f"{name} {key}")

    def applied_before(self, partition: int, topic: str, source: int) -> int | None:
        return self.until.get((topic, source))

    def page(self, partition: int, *, prefix: str = "", after: str = "") -> Sequence[tuple[str, bytes]]:
        return page_of(self.local, prefix=prefix, after=after)


class _Steps(CrashPoint):
    """The crash points as steps of the harness."""

    def __init__(self, passed: Callable[[str], None]) -> None:
        super().__init__(stage="", step="commit")
        self._passed = passed

    def armed(self, stage: str, step: Step) -> bool:
        return True

    def passed(self, stage: str, step: Step) -> None:
        self._passed(step)


class _SteppedStage:
    """The stage, with a step before and after its store."""

    def __init__(self, stage: Stage[Any], passed: Callable[[str], None]) -> None:
        self._stage = stage
        self._passed = passed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stage, name)

    async def store(self, outcome: Outcome) -> None:
        self._passed("before store")
        await self._stage.store(outcome)

    async def publish_state(self, outcome: Outcome) -> None:
        await self._stage.publish_state(outcome)
        self._passed("state published")


class StageHarness:
    """One stage; its process may die and start again. `make` builds the stage anew at each start."""

    def __init__(
        self,
        *,
        name: StageName,
        make: Callable[[StageHarness], Stage[Any]],
        calls: Callable[[], Calls] = lambda: Calls(retry=RetryPolicy(first=0.001, cap=0.001)),
    ) -> None:
        self.name = name
        self.sent: list[OutRecord] = []
        """All records on the output topics, dead letters included, in log order."""
        self.steps: list[str] = []
        """The names of all passed steps."""
        self.step: str | None = None
        """The step at which the process was killed; None means that it was not reached."""
        self.rows = HarnessRows(self.pass_step)
        self.metrics = StageMetrics(Metrics(CollectorRegistry()), name)
        self._folder = tempfile.TemporaryDirectory(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
        self._make = make
        self._make_calls = calls
        self._kill_at: int | None = None
        self.start()

    def start(self) -> None:
        """Start a new process over the durable state."""
        self._buffer: list[OutRecord] = []
        """The producer's buffer: records handed over and not durable yet."""
        self.calls = self._make_calls()
        self.stage = self._make(self)
        self.handler: Handler[Any] = Handler(
            stage=_SteppedStage(self.stage, self.pass_step),
            rows=self.rows,
            calls=self.calls,
            boundary=ErrorBoundary(crashes=CrashCounter(Path(self._folder.name))),
            send=self._send,
            metrics=self.metrics,
            crash=_Steps(self.pass_step),
            ahead=self._ahead,
            cover=self._cover,
        )
        self.queue: list[tuple[Record, Routed[Any]]] = []
        """Events that were delivered and have not started, as the lanes hold them."""
        self.covered: list[Record] = []
        """Events that were done together with one before them."""

    async def deliver(self, record: Record, *, ahead: Sequence[Record] = ()) -> None:
        """Process one event to its end, after which it may be acknowledged. Raises what would stop the worker.

        `ahead`: events that are delivered after it, and queued meanwhile."""
        await self._deliver(record, self.handler.route(record), ahead)

    async def _deliver(self, record: Record, routed: Routed[Any], ahead: Sequence[Record]) -> None:
        self._lane = (record.position.partition, routed.lane)
        self.queue = [(each, self.handler.route(each)) for each in ahead]
        await self.handler.run(record, routed)
        self.handler.passed("commit")

    def _ahead(self) -> Iterator[tuple[Record, Routed[Any]]]:
        return (each for each in self.queue if (each[0].position.partition, each[1].lane) == self._lane)

    async def _cover(self, count: int) -> None:
        covered = list(self._ahead())[:count]
        assert len(covered) == count, "more was covered than is queued"
        self.queue = [each for each in self.queue if each not in covered]
        self.covered += [record for record, _ in covered]

    async def run(self, records: Sequence[Record], *, kill: Kill | None = None, together: bool = False) -> None:
        """Process all records in order, with at most one kill. Afterwards everything is acknowledged. `together`: all
        later events are queued while one is handled."""
        self._kill_at = None if kill is None else kill.at
        left = list(records)
        while left:
            try:
                await self.deliver(left[0], ahead=left[1:] if together else ())
                left = [record for record in left[1:] if record not in self.covered]
            except Killed:
                assert kill is not None
                if kill.empty_folder:
                    self.rows.local = dict(self.rows.changelog)
                if kill.from_start:
                    left = list(records)
                self.start()

    def pass_step(self, name: str) -> None:
        """Note a passed step; die if the kill is due."""
        self.steps.append(name)
        if self._kill_at is not None and len(self.steps) == self._kill_at:
            self._kill_at, self.step = None, name
            raise Killed(name)

    async def send_durably(self, record: OutRecord) -> None:
        """Send a record durably, for stages that send outside an outcome."""
        await (await self._send(record))

    async def _send(self, record: OutRecord) -> Awaitable[object]:
        self._buffer.append(record)
        return _Durable(self, self._buffer, record)

    def flush(self, buffer: list[OutRecord], until: OutRecord) -> None:
        """Move the buffered records to their topics in order, up to this record."""
        while buffer is self._buffer and until in buffer:
            record = buffer.pop(0)
            self.sent.append(record)
            self.pass_step(f"sent {record.topic}")

    # ------------------------------------------------------------------------------------------------ looking
    def on(self, topic: str) -> list[OutRecord]:
        return [record for record in self.sent if record.topic == topic]

    def once(self, topic: str, id_of: Callable[[OutRecord], str] | None = None) -> dict[str, bytes | None]:
        """Return the value of each id at its first appearance."""
        first: dict[str, bytes | None] = {}
        for record in self.on(topic):
            first.setdefault((id_of or ce_id)(record), record.value)
        return first

    def check_equal_bytes(
        self, topics: Iterable[str] | None = None, id_of: Callable[[OutRecord], str] | None = None
    ) -> None:
        """Check that a record that was sent twice is equal in every byte of its key and value."""
        seen: dict[tuple[str, str], set[tuple[bytes | None, bytes | None]]] = defaultdict(set)
        for record in self.sent:
            if not record.topic.endswith(".dlq") and (topics is None or record.topic in set(topics)):
                seen[record.topic, (id_of or ce_id)(record)].add((record.key, record.value))
        unequal = [which for which, forms in seen.items() if len(forms) > 1]
        assert not unequal, f"came twice, and not the same: {unequal} (killed at {self.step})"


@dataclass(frozen=True, eq=False)
class _Durable:
    """An awaitable send. A caller that does not await it has sent nothing yet."""

    harness: StageHarness
    buffer: list[OutRecord]
    record: OutRecord

    def __await__(self) -> Generator[Any, None, None]:
        self.harness.flush(self.buffer, self.record)
        yield from ()


def ce_id(record: OutRecord) -> str:
    """Return the header ce_id of an output record."""
    return dict(record.headers)["ce_id"].decode()


class Topics:
    """Builds input records with the offsets of their partitions."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, int], int] = defaultdict(int)

    def record(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        *,
        partition: int = 0,
        headers: tuple[tuple[str, bytes], ...] = (),
        timestamp: int = 1_795_168_800_000,
    ) -> Record:
        offset = self._ends[topic, partition]
        self._ends[topic, partition] += 1
        return Record(Position(topic, partition, offset), key, value, headers, timestamp)
