"""Stages of this process: construction from the settings, run, and shutdown. `worker`, `demo`, `chat` and `serve` share
this code."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry

from ...adapters.completions.factory import create_completions
from ...adapters.completions.router import CompletionsByTask
from ...adapters.folder_lock import FolderLock
from ...adapters.ports import Completions, Embedder, UsageSink
from ...adapters.spend_meter import Meter
from ...adapters.vectors.periods.period_store import PeriodStore
from ...agents.common.budget_client import BudgetClient
from ...agents.common.tier_spending import TierSpending
from ...agents.observer.turn_source import TurnSource, load_source
from ...agents.reflector.fact_state_topic import check_facts_present
from ...api.worker_health import LOOPBACK, AddressRefused, Readiness, served
from ...memory.policies import ConflictPolicy, MemoryPolicy
from ...memory.tenant_policies import TenantPolicies
from ...schemas.collections import (
    ARCHIVE,
    BLOCKS,
    BUDGETS,
    DIGESTS,
    EPISODES,
    FACTS,
    GROUPS,
    HOLDINGS,
    LABELS,
    LINKS,
    PROCEDURES,
    TASKS,
    TURNS,
    WORKING,
)
from ...schemas.errors import Fatal
from ...schemas.topics import StageName
from ...streams.engine.fair_places import FairPlaces
from ...streams.engine.hangs import HangWatch
from ...streams.engine.metrics import Metrics
from ...streams.engine.retry import Calls
from ...streams.faust.app import AppSettings
from ...streams.faust.runner import StageRunner
from ...streams.faust.worker import run_watched
from ...streams.log import topic_admin
from ...streams.log.port import Log
from ..errors import usage
from ..output.tier_report import tell_tiers
from ..process.erasure_reader import ErasureReader
from ..process.malloc_trim import return_free_memory
from ..process.policy_reader import PolicyReader
from ..process.probe import Probe
from ..process.startup_retry import StartupRetry
from .broker import deployment, new_log
from .budget_setup import LateMeter, ceilings, needs_accounts, tell
from .disk_room import needed_room, why_no_room
from .ports import Folders, new_embedder, new_store, secret, unwritable
from .secret_detectors import new_secret_filter
from .settings import Settings
from .stages import StagePorts, UsageMetrics, WorkerSettings, build_runners, utc_now

log = structlog.get_logger(__name__)

COLLECTIONS_OF: dict[StageName, tuple[str, ...]] = {
    "recorder": (TURNS, LABELS),
    "observer": (HOLDINGS, WORKING, LABELS, TURNS),
    "reflector": (BLOCKS, EPISODES, FACTS, GROUPS, TASKS),
    "consolidation": (ARCHIVE, DIGESTS, EPISODES, FACTS, LABELS, LINKS, PROCEDURES, TURNS),
}
SLOTS = 1_000
PROBE_TEXT = PROBE_TENANT = "memstream"
"""Text and tenant of one embedding at the start. It checks the embedder and determines its dimension."""
CHECK_EVERY = 1.0
"""Seconds between two checks of readiness for log lines."""
NUMBER = re.compile(r"\d+")
START_SECONDS = 15.0
"""Seconds after the start in which a part that has never been ready is not logged."""


def new_completions(
    settings: Settings, policy: MemoryPolicy, *, sink: UsageSink, meter: Meter | None = None
) -> CompletionsByTask:
    try:
        return create_completions(
            model=settings.model or None,
            api_key=secret(settings.openai_api_key),
            base_url=settings.openai_base_url,
            timeout=settings.model_timeout,
            concurrency=settings.in_flight,
            places=FairPlaces,
            sink=sink,
            models=policy.models.given,
            patience=policy.observe.patience,
            meter=meter,
            requests=settings.requests,
        )
    except ValueError as error:
        raise usage(str(error)) from error


def new_source(policy: MemoryPolicy) -> TurnSource | None:
    """Load the operator's function that returns the text of a turn, or return None if none is configured."""
    try:
        return load_source(policy.capture.source) if policy.capture.source else None
    except ValueError as error:
        raise usage(str(error)) from error


def effective_policy(settings: Settings, policy: MemoryPolicy) -> MemoryPolicy:
    """Return the policy of the file with values from the environment, and with similarity zones for the embedder.

    The hashing embedder compares words, not meanings. Even a high similarity does not show that two statements mean the
    same, so the zone HOT is turned off for this embedder.
    """
    if "observe_together" in settings.model_fields_set:
        policy = replace(policy, observe=replace(policy.observe, together=settings.observe_together))
    if settings.embedder == "hashing" and policy.conflict == ConflictPolicy():
        policy = replace(policy, conflict=replace(policy.conflict, lexical=True, hot=None))
    return policy


@dataclass(slots=True, kw_only=True)
class Stages:
    """Stages of this process, built but not started."""

    log: Log
    store: PeriodStore
    embedder: Embedder
    completions: Completions
    runners: Sequence[StageRunner]
    metrics: Metrics
    budget: BudgetClient
    policies: TenantPolicies
    needed_room: dict[Path, int]
    health_host: str = LOOPBACK
    health_port: int = 0
    probe: Probe = field(init=False)

    def __post_init__(self) -> None:
        self.probe = Probe(self.store.ping)

    def readiness(self) -> Mapping[str, tuple[bool, str]]:
        """Return for each part whether it is ready, and the reason if it is not."""
        no_room = why_no_room(self.needed_room)
        return {runner.name: runner.ready() for runner in self.runners} | {
            "qdrant": (self.probe.reached, self.probe.why),
            "disk": (not no_room, no_room),
        }

    def ready(self) -> bool:
        return all(ready for ready, _ in self.readiness().values())

    async def run(self, *, stopping: asyncio.Event) -> int:
        """Run until `stopping` is set or a stage ends. Return the exit code."""
        background = (self.probe.watch(), log_changes(self.readiness), self.budget.run(), return_free_memory())
        watching = [asyncio.create_task(each) for each in background]
        try:
            async with served(
                host=self.health_host,
                port=self.health_port,
                registry=self.metrics.registry,
                readiness=self.readiness,
            ):
                hangs = HangWatch(self.runners[0].hang_folder)
                return await run_watched(self.runners, stopping=stopping, watch=hangs)
        except AddressRefused as refused:
            raise usage(str(refused)) from refused
        finally:
            for watch in watching:
                watch.cancel()


async def log_changes(readiness: Readiness) -> None:
    """Log each part that stops being ready and each other reason, and each part that is ready again.

    Reasons that differ only in a number are the same. In the first START_SECONDS, a part that has never been ready is
    not logged.
    """
    logged: dict[str, str] = {}
    """Last reason of each part without its numbers, and "" for a part that is ready."""
    began = time.monotonic()
    while True:
        starting = time.monotonic() - began < START_SECONDS
        for part, (ready, why) in readiness().items():
            before, reason = logged.get(part), "" if ready else NUMBER.sub("", why)
            if ready and before:
                log.warning("ready_again", stage=part)
            elif not ready and reason != before and (before is not None or not starting):
                log.warning("not_ready", stage=part, why=why)
            elif not ready:
                continue
            logged[part] = reason
        await asyncio.sleep(CHECK_EVERY)


@asynccontextmanager
async def built_stages(
    names: Sequence[StageName], *, settings: Settings, policy: MemoryPolicy, folders: Folders
) -> AsyncIterator[Stages]:
    """Connect and prepare everything that the stages need. Checks of settings come first.

    Raises:
        CommandFailed: exit 2 for wrong settings or topics, exit 3 for a server that is unavailable for 60 s.
        Fatal: the collection of facts is lost.
    """
    patience = StartupRetry()
    metrics = Metrics(CollectorRegistry())
    sink = UsageMetrics(metrics)
    policy = effective_policy(settings, policy)
    async with AsyncExitStack() as stack:
        embedder = new_embedder(settings, sink=sink)
        stack.push_async_callback(embedder.close)
        source = new_source(policy) if "observer" in names else None
        meter = LateMeter()
        completions = new_completions(settings, policy, sink=sink, meter=meter)
        stack.push_async_callback(completions.close)
        datadirs = {name: stack.enter_context(_slot(settings, name)) for name in names}
        client = new_log(settings)
        stack.push_async_callback(client.close)
        await patience("the log", client.start)
        await patience("the log", lambda: prepare_topics(client, settings))
        reader = PolicyReader(client, TenantPolicies(policy))
        await patience("the log", reader.read_whole)
        await stack.enter_async_context(reader.following())
        erasures = ErasureReader(client)
        await patience("the log", erasures.read_whole)
        await stack.enter_async_context(erasures.following())
        await patience("the embedder", lambda: embedder.embed([PROBE_TEXT], tenant_id=PROBE_TENANT))
        identity = embedder.identity
        store = await patience(
            "Qdrant", lambda: new_store(settings, identity=identity, folders=folders, serve_loopback=True)
        )
        stack.push_async_callback(store.close)
        await patience("Qdrant", lambda: prepare_collections(client, store, names))
        lines = ceilings(settings.tier, policy.budget)
        meter.meter = budget = BudgetClient(
            store=store, calls=Calls(), policy=policy.budget, ceilings=lines, now=utc_now
        )
        stack.push_async_callback(budget.close)
        if needs_accounts(lines, completions):
            await patience("Qdrant", lambda: store.ensure(BUDGETS))
        tell(tuple(names), tier=settings.tier, policy=policy.budget, completions=completions)
        tell_tiers(names, policy.tiers)
        runners = await build_runners(
            names,
            ports=StagePorts(
                broker=settings.broker,
                log=client,
                store=store,
                embedder=embedder,
                completions=completions,
                policies=reader.policies,
                erased=erasures.erased,
                spending=TierSpending(
                    policy.budget.tier(settings.tier),
                    completions_of=completions.of,
                    judgement=policy.budget.judgement.ceiling,
                ),
                source=source,
                secrets=new_secret_filter(policy),
                metrics=metrics,
            ),
            settings=WorkerSettings(
                datadirs=datadirs,
                app=AppSettings(
                    partitions=settings.partition_count,
                    replication=settings.replication,
                    session_timeout=settings.session_timeout,
                    worker_id=settings.worker_id,
                    security=settings.kafka_security,
                ),
                in_flight=settings.in_flight,
                held_bytes=settings.held_bytes,
                crash=settings.crash,
            ),
        )
        yield Stages(
            log=client,
            store=store,
            embedder=embedder,
            completions=completions,
            runners=runners,
            metrics=metrics,
            budget=budget,
            policies=reader.policies,
            needed_room=needed_room(settings),
            health_host=settings.health_host,
            health_port=settings.health_port,
        )


async def prepare_topics(client: Log, settings: Settings) -> None:
    """Create the topics of an embedded log. On Kafka compare them, and raise CommandFailed (exit 2) for a problem."""
    if settings.broker_folder is not None:
        reports = await topic_admin.create(client, deployment=deployment(settings))
    else:
        reports = await topic_admin.check(client, deployment=deployment(settings))
    wrong = [f"{problem}; fix: {fix}" for problem, fix in topic_admin.problems(reports)]
    if wrong:
        raise usage("\n".join(["the topics differ from the catalogue:", *wrong]))
    for report in reports:
        if ";" in report.detail:
            log.info("topic_differs", topic=report.topic, detail=report.detail)


async def prepare_collections(client: Log, store: PeriodStore, names: Sequence[StageName]) -> None:
    """Create missing collections.

    Raises Fatal if facts are lost, and CommandFailed (exit 2) if another embedder filled a collection, or while the
    embedder is being changed.
    """
    phase = (await store.embedder_change().state()).phase
    if phase != "locked":
        raise usage(
            f"the embedder is being changed ({phase}), and no stage runs meanwhile: continue `memstream "
            "migrate-embedder`, or end the change with --drop-old or --back"
        )
    needed = tuple(dict.fromkeys(collection for name in names for collection in COLLECTIONS_OF[name]))
    if FACTS in needed:
        await check_facts_present(store=store, log=client)
    try:
        await store.ensure(*needed)
    except Fatal as error:
        raise usage(str(error)) from error


def _slot(settings: Settings, stage: StageName) -> _Slot:
    return _Slot(settings.datadir / stage, settings.worker_id)


class _Slot:
    """Data folder of one stage and worker: named by the worker's id, or the first numbered folder with a free lock."""

    def __init__(self, folder: Path, worker_id: str | None) -> None:
        self._folder = folder
        self._worker_id = worker_id
        self._held = ExitStack()

    def __enter__(self) -> Path:
        names = [self._worker_id] if self._worker_id is not None else [str(n) for n in range(SLOTS)]
        lock = FolderLock(folder=self._folder / names[0], purpose="worker")
        for name in names:
            lock = FolderLock(folder=self._folder / name, purpose="worker")
            try:
                taken = lock.try_acquire()
            except OSError as error:
                raise unwritable(lock.folder, error) from error
            if taken:
                self._held.callback(lock.release)
                return lock.folder
        raise usage(f"MEMSTREAM_WORKER_ID={self._worker_id}: {lock.folder} is in use by {lock.holder()}")

    def __exit__(self, *exc: object) -> None:
        self._held.close()
