"""The metrics of a worker, served at /metrics (docs/reference/monitoring.md). Each process has one registry."""

from __future__ import annotations

import time
from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from prometheus_client import CollectorRegistry, Counter, Gauge

from ..log.port import Record

TENANT_LABELS = 100
TENANT_LABEL_MAX = 256
OTHER_TENANTS = "other"
TOTAL_STEP = 0.01
"""Smallest increment of the total step time, in seconds."""
LONGEST_WINDOW = 300.0
"""Length in seconds of a window for the longest step. The metric covers the current and the previous window."""


class TenantLabels:
    """Values of the label `tenant`: the names of the first 100 tenants, and `other` for every further tenant.

    The limit exists because Prometheus keeps a time series for each value.
    """

    def __init__(self) -> None:
        self._named: set[str] = set()

    def of(self, tenant_id: str) -> str:
        """Return the label of a tenant."""
        if len(tenant_id) > TENANT_LABEL_MAX:  # not a tenant: the raw key of a record that cannot be decoded
            return OTHER_TENANTS
        if tenant_id not in self._named and len(self._named) >= TENANT_LABELS:
            return OTHER_TENANTS
        self._named.add(tenant_id)
        return tenant_id


class StepTimes:
    """The processor time of synchronous steps: the total and the longest step, by stage and phase."""

    def __init__(self, total: Counter, longest: Gauge, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._total = total
        self._longest = longest
        self._clock = clock
        self._of: dict[tuple[str, str], StepTime] = {}

    def measured(self, stage: str, step: str, seconds: float) -> None:
        """Add the time of one step."""
        found = self._of.get((stage, step))
        if found is None:
            found = self._of[stage, step] = StepTime(self._total.labels(stage, step), LongestTime(self._clock))
            self._longest.labels(stage, step).set_function(found.longest.value)
        found.longest.add(seconds)
        found.uncounted += seconds
        if found.uncounted >= TOTAL_STEP:  # the counter takes a lock, and steps are frequent
            found.total.inc(found.uncounted)
            found.uncounted = 0.0


@dataclass(slots=True)
class StepTime:
    """The times of one stage and phase. `uncounted`: seconds that are not yet added to the counter."""

    total: Counter
    longest: LongestTime
    uncounted: float = 0.0


class LongestTime:
    """The largest value of the current and the previous window."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = clock()
        self._now = self._before = 0.0

    def add(self, seconds: float) -> None:
        self._turn()
        self._now = max(self._now, seconds)

    def value(self) -> float:
        self._turn()
        return max(self._now, self._before)

    def _turn(self) -> None:
        """Begin a new window when the current one has ended."""
        past = self._clock() - self._began
        if past >= LONGEST_WINDOW:
            self._before = self._now if past < 2 * LONGEST_WINDOW else 0.0
            self._now = 0.0
            self._began = self._clock()


class Metrics:
    """All metric families. Names follow the Prometheus conventions."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.tenants = TenantLabels()
        self.events_in = Counter(
            "memstream_events_in_total", "Events taken from a topic", ["stage", "topic"], registry=registry
        )
        self.events_done = Counter(
            "memstream_events_done_total", "Events handled to their end", ["stage", "topic"], registry=registry
        )
        self.events_out = Counter("memstream_events_out_total", "Records sent", ["stage", "topic"], registry=registry)
        self.refused = Counter(
            "memstream_refused_total", "Records refused, by reason", ["stage", "topic", "reason"], registry=registry
        )
        self.dead_letters = Counter(
            "memstream_dead_letters_total", "Dead letters written", ["stage", "topic"], registry=registry
        )
        self.retries = Counter(
            "memstream_retries_total", "Repeated calls, by component", ["stage", "component"], registry=registry
        )
        self.in_flight = Gauge("memstream_in_flight", "Events being handled now", ["stage"], registry=registry)
        self.held = Gauge(
            "memstream_held", "Events held by the worker, including waiting events", ["stage"], registry=registry
        )
        self.held_bytes = Gauge(
            "memstream_held_bytes", "Bytes of the records of held events", ["stage"], registry=registry
        )
        self.full_partitions = Gauge(
            "memstream_full_partitions",
            "Partitions that are not fetched because the worker has no room",
            ["stage"],
            registry=registry,
        )
        self.unread_deleted = Counter(
            "memstream_unread_deleted_total",
            "Offsets that retention deleted before the stage had read them",
            ["stage", "topic"],
            registry=registry,
        )
        self.parked = Gauge(
            "memstream_parked_keys", "Keys whose last outcome cannot be applied", ["stage"], registry=registry
        )
        self.tenant_held = Gauge(
            "memstream_tenant_held",
            "Events of a tenant that the worker holds, including waiting events",
            ["stage", "tenant"],
            registry=registry,
        )
        self.tenant_in_flight = Gauge(
            "memstream_tenant_in_flight", "Events of a tenant being handled now", ["stage", "tenant"], registry=registry
        )
        self.tenant_refusals = Counter(
            "memstream_tenant_refusals_total",
            "Answers of a model that refuse a tenant",
            ["stage", "tenant"],
            registry=registry,
        )
        self.tenant_paused = Gauge(
            "memstream_tenant_paused",
            "1 for a tenant that is paused because the model refuses it",
            ["stage", "tenant"],
            registry=registry,
        )
        self.tenant_users_paused = Gauge(
            "memstream_tenant_users_paused",
            "Users of a tenant that are paused because the model refuses them",
            ["stage", "tenant"],
            registry=registry,
        )
        self.waiting_turns = Gauge(
            "memstream_waiting_turns",
            "Turns that wait to be observed, in the partitions of this worker",
            ["tenant"],
            registry=registry,
        )
        self.waiting_judgements = Gauge(
            "memstream_waiting_judgements",
            "Pending facts that wait for a judgement by a model, in the partitions of this worker",
            ["tenant"],
            registry=registry,
        )
        self.lag = Gauge(
            "memstream_lag",
            "Lag in records of the partitions that this worker reads now",
            ["stage", "topic", "partition"],
            registry=registry,
        )
        self.model_calls = Counter(
            "memstream_model_calls_total", "Calls of a model", ["tenant", "task", "model"], registry=registry
        )
        self.model_tokens = Counter(
            "memstream_model_tokens_total",
            "Tokens of a model",
            ["tenant", "task", "model", "direction"],
            registry=registry,
        )
        self.counted = Counter(
            "memstream_counted_total", "Items counted by a stage, by name", ["stage", "what"], registry=registry
        )
        self.fact_actions = Counter("memstream_fact_actions_total", "Changes of facts", ["action"], registry=registry)
        self.sync_seconds = Counter(
            "memstream_sync_seconds_total",
            "Processor time of handlers on the event loop, by step of the handling",
            ["stage", "step"],
            registry=registry,
        )
        self.sync_seconds_max = Gauge(
            "memstream_sync_seconds_max",
            "The longest time that one record held the event loop without a break, in the last 5 to 10 minutes",
            ["stage", "step"],
            registry=registry,
        )
        self.steps = StepTimes(self.sync_seconds, self.sync_seconds_max)


class StageMetrics:
    """The metrics of one stage.

    The counters that every event needs are looked up once, because a look-up by labels takes longer than counting.
    """

    def __init__(self, metrics: Metrics, stage: str) -> None:
        self._metrics = metrics
        self._stage = stage
        self._in_flight = metrics.in_flight.labels(stage)
        self._held = metrics.held.labels(stage)
        self._held_bytes = metrics.held_bytes.labels(stage)
        self._full_partitions = metrics.full_partitions.labels(stage)
        self._of_topic: dict[tuple[Counter, str], Counter] = {}
        self._shown: dict[Gauge, set[str]] = {}
        """Tenants that have a value, by gauge."""
        self._behind: set[tuple[str, int]] = set()
        """Topics and partitions for which the lag gauge has a value."""

    def _inc(self, family: Counter, topic: str, n: int = 1) -> None:
        counter = self._of_topic.get((family, topic))
        if counter is None:
            counter = self._of_topic[family, topic] = family.labels(self._stage, topic)
        counter.inc(n)

    def event_in(self, record: Record) -> None:
        """Count an event that was taken from its topic. It counts once, regardless of retries."""
        self._inc(self._metrics.events_in, record.position.topic)

    @contextmanager
    def in_flight(self, record: Record) -> Iterator[None]:
        """Count an event as in flight during the block, and as done when the block ends without an error."""
        self._in_flight.inc()
        try:
            yield
            self._inc(self._metrics.events_done, record.position.topic)
        finally:
            self._in_flight.dec()

    def covered(self, record: Record, events: int) -> None:
        """Count further events that were done together with this record's event."""
        self._inc(self._metrics.events_done, record.position.topic, events)

    def event_out(self, topic: str) -> None:
        """Count a record that was sent. A record to a `.dlq` topic also counts as a dead letter."""
        self._inc(self._metrics.events_out, topic)
        if topic.endswith(".dlq"):
            self._metrics.dead_letters.labels(self._stage, topic).inc()

    def refused(self, topic: str, reason: str) -> None:
        """Count a record that was refused."""
        self._metrics.refused.labels(self._stage, topic, reason).inc()

    def retried(self, component: str) -> None:
        """Count a repeated call."""
        self._metrics.retries.labels(self._stage, component).inc()

    def counted(self, what: str, n: int = 1) -> None:
        """Count something by name: duplicates, dropped items, evictions."""
        if n:
            self._metrics.counted.labels(self._stage, what).inc(n)

    def fact_action(self, action: str) -> None:
        """Count a change of a fact."""
        self._metrics.fact_actions.labels(action).inc()

    def waiting_turns(self, tenant_id: str, by: int) -> None:
        """Add `by` to the tenant's turns that wait to be observed. `by` may be negative."""
        self._metrics.waiting_turns.labels(self._metrics.tenants.of(tenant_id)).inc(by)

    def waiting_judgements(self, tenant_id: str, by: int) -> None:
        """Add `by` to the tenant's pending facts that wait for a judgement. `by` may be negative."""
        self._metrics.waiting_judgements.labels(self._metrics.tenants.of(tenant_id)).inc(by)

    def held(self, events: int, size: int) -> None:
        """Set the number of events that the worker holds, and the bytes of their records."""
        self._held.set(events)
        self._held_bytes.set(size)

    def full_partitions(self, count: int) -> None:
        """Set the number of partitions that are not fetched because the worker has no room."""
        self._full_partitions.set(count)

    def unread_deleted(self, topic: str, offsets: int) -> None:
        """Count offsets that retention deleted before the stage had read them."""
        self._metrics.unread_deleted.labels(self._stage, topic).inc(offsets)

    def parked(self, keys: int) -> None:
        """Set the number of parked keys in the worker's partitions."""
        self._metrics.parked.labels(self._stage).set(keys)

    def refused_tenant(self, tenant_id: str) -> None:
        """Count an answer in which a model refuses a tenant's content."""
        self._metrics.tenant_refusals.labels(self._stage, self._metrics.tenants.of(tenant_id)).inc()

    def tenants(
        self,
        *,
        held: Mapping[str, int],
        in_flight: Mapping[str, int],
        paused: Iterable[str],
        users_paused: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Set the gauges by tenant. Tenants without a label of their own are summed as `other`."""
        for family, counts in (
            (self._metrics.tenant_held, held),
            (self._metrics.tenant_in_flight, in_flight),
            (self._metrics.tenant_paused, dict.fromkeys(paused, 1)),
            (self._metrics.tenant_users_paused, users_paused),
        ):
            shown: Counts[str] = Counts()
            for tenant_id, count in counts.items():
                shown[self._metrics.tenants.of(tenant_id)] += count
            for tenant in self._shown.get(family, set()) - set(shown):
                family.remove(self._stage, tenant)
            for tenant, count in shown.items():
                family.labels(self._stage, tenant).set(count)
            self._shown[family] = set(shown)

    def lag(self, topic: str, partition: int, records: int) -> None:
        """Set the lag of a partition in records."""
        self._metrics.lag.labels(self._stage, topic, str(partition)).set(records)
        self._behind.add((topic, partition))

    def forget_lag(self, *, but: Set[tuple[str, int]]) -> None:
        """Remove the lag of all partitions except these. Other workers report the other partitions."""
        for topic, partition in self._behind - but:
            self._metrics.lag.remove(self._stage, topic, str(partition))
        self._behind &= but
