"""Construction of the stages by name, with their ports. worker.py uses this module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...adapters.ports import Completions, Embedder, PeriodVectorStore, Usage
from ...agents.common.erased_events import ErasedEvents
from ...agents.common.model_call import tenant_of_breaker
from ...agents.common.protection import keep_unread_record
from ...agents.common.tier_spending import TierSpending
from ...agents.observer.turn_source import TurnSource
from ...memory.erasures import ErasedUsers
from ...memory.secrets.secret_filter import SecretFilter
from ...memory.tenant_policies import TenantPolicies
from ...schemas.errors import Fatal
from ...schemas.topics import TURNS, StageName
from ...streams.engine.crash_points import CrashPoint
from ...streams.engine.handler import Stage
from ...streams.engine.metrics import Metrics, StageMetrics
from ...streams.engine.retry import Calls
from ...streams.engine.steps import StepScheduler
from ...streams.faust.app import AppSettings
from ...streams.faust.runner import RunnerSettings, StageRunner
from ...streams.log.port import Log


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePorts:
    """Ports that the stages of one process share."""

    broker: str
    log: Log
    store: PeriodVectorStore
    embedder: Embedder
    completions: Completions
    policies: TenantPolicies
    erased: ErasedUsers
    spending: TierSpending
    source: TurnSource | None
    secrets: SecretFilter
    metrics: Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Settings of one worker process. The folder of a stage in `datadirs` belongs to this worker alone."""

    datadirs: dict[StageName, Path]
    app: AppSettings
    in_flight: int
    held_bytes: int
    crash: CrashPoint | None = None


class UsageMetrics:
    """Usage sink that counts model usage in the metrics, per tenant and task."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def record(self, *, tenant_id: str, task: str, model: str, usage: Usage) -> None:
        tenant = self._metrics.tenants.of(tenant_id)
        self._metrics.model_calls.labels(tenant, task, model).inc(usage.calls)
        self._metrics.model_tokens.labels(tenant, task, model, "in").inc(usage.input_tokens)
        self._metrics.model_tokens.labels(tenant, task, model, "out").inc(usage.output_tokens)


async def build_runners(
    names: Sequence[StageName], *, ports: StagePorts, settings: WorkerSettings
) -> list[StageRunner]:
    """Build one runner per stage without starting it. Raises Fatal if topics are missing."""
    partitions = await ports.log.partitions(TURNS.name)
    if partitions is None:
        raise Fatal(f"there is no topic {TURNS.name}: run `memstream topics create`")
    steps = StepScheduler()
    steps.measured = ports.metrics.steps.measured
    return [build_runner(name, ports=ports, settings=settings, partitions=partitions, steps=steps) for name in names]


def build_runner(
    name: StageName, *, ports: StagePorts, settings: WorkerSettings, partitions: int, steps: StepScheduler
) -> StageRunner:
    """Build the runner of one stage."""
    metrics = StageMetrics(ports.metrics, name)
    return StageRunner(
        name=name,
        settings=RunnerSettings(
            broker=ports.broker,
            datadir=settings.datadirs[name],
            app=settings.app,
            in_flight=settings.in_flight,
            held_bytes=settings.held_bytes,
            crash=settings.crash,
            steps=steps,
        ),
        log_client=ports.log,
        calls=Calls(
            on_retry=metrics.retried,
            on_refusal=lambda breaker: metrics.refused_tenant(tenant_of_breaker(breaker) or ""),
        ),
        metrics=metrics,
        build_stage=lambda runner: build_stage(name, ports=ports, runner=runner, partitions=partitions),
        kept=lambda record: keep_unread_record(record, ports.secrets),
        events=ErasedEvents(ports.erased),
    )


def build_stage(name: StageName, *, ports: StagePorts, runner: StageRunner, partitions: int) -> Stage[Any]:
    """Build a stage from the ports of the process and from its runner.

    Each stage is imported here, so that a worker of one stage does not load the others.
    """
    calls, metrics = runner.calls, runner.metrics
    if name == "recorder":
        from ...agents.recorder.stage import Recorder

        return Recorder(
            store=ports.store,
            embedder=ports.embedder,
            calls=calls,
            metrics=metrics,
            partitions=partitions,
            secrets=ports.secrets,
            routing=ports.policies.deployment.routing,
            session_log=ports.policies.deployment.session_log,
        )
    if name == "observer":
        from ...agents.observer.stage import Observer

        return Observer(
            store=ports.store,
            completions=ports.completions,
            calls=calls,
            metrics=metrics,
            send_durably=runner.sender.durable,
            policies=ports.policies,
            partitions=partitions,
            ahead=lambda partition: runner.ahead(TURNS.name, partition),
            in_flight=runner.in_flight,
            now=utc_now,
            secrets=ports.secrets,
            source=ports.source,
            committed=runner.committed,
            erased=ports.erased,
        )
    if name == "reflector":
        from ...agents.reflector.stage import Reflector

        return Reflector(
            store=ports.store,
            embedder=ports.embedder,
            calls=calls,
            metrics=metrics,
            send_durably=runner.sender.durable,
            policies=ports.policies,
            partitions=partitions,
            now=utc_now,
            secrets=ports.secrets,
            committed=runner.committed,
            erased=ports.erased,
        )
    if name == "consolidation":
        from ...agents.consolidation.stage import Consolidation

        return Consolidation(
            store=ports.store,
            embedder=ports.embedder,
            completions=ports.completions,
            calls=calls,
            metrics=metrics,
            send_durably=runner.sender.durable,
            policies=ports.policies,
            partitions=partitions,
            spending=ports.spending,
            now=utc_now,
            secrets=ports.secrets,
            committed=runner.committed,
            erased=ports.erased,
        )
    raise Fatal(f"unknown stage {name}")
