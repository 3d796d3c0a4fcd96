"""HTTP server and its parts: log, store, embedder and, with an embedded folder, the stages."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TypeVar

import structlog
import uvicorn
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from ...adapters.ports import Embedder, Reranker
from ...adapters.vectors.periods.period_store import PeriodStore
from ...api.app import (
    SOURCE,
    Publication,
    Services,
    create_app,
    new_followers,
    new_turn_followers,
)
from ...api.credentials import Credentials, FileCredentials
from ...api.health import LOG
from ...api.limits import Limits
from ...api.mcp import McpEndpoint, McpServices
from ...api.sign_in.access_tokens import ProvidedCredentials
from ...memory.policies import MemoryPolicy
from ...memory.tenant_policies import TenantPolicies
from ...recall.llm_reranker import LlmReranker
from ...recall.recall_events import (
    LogRecallPublisher,
    NullRecallPublisher,
    PublisherMetrics,
    RecallPublisher,
)
from ...recall.recall_reports import RecallReports
from ...recall.search import COLLECTION_OF
from ...schemas.errors import Fatal, Transient
from ...schemas.topics import STAGES, TURNS
from ...streams.engine.metrics import Metrics
from ...streams.log.fanout import TopicFanout
from ...streams.log.port import Log
from ...streams.log.stage_lag import oldest_unread, stage_lags
from ...streams.senders.turns import TurnSender
from ...tools.audit_topic import AuditMetrics, AuditPublisher, AuditReader
from ...tools.dead_letters.reader import DeadLetterReader
from ...tools.dead_letters.redriver import LetterRedrives
from ...tools.erasure.runs import ErasureRuns
from ...tools.mcp_resources import UserResources
from ..errors import usage
from ..process.garbage_collection import tune_garbage_collection
from ..process.policy_reader import PolicyReader
from ..process.probe import Probe
from ..process.signals import until_stopped
from ..process.startup_retry import StartupRetry
from .broker import new_log
from .http_connections import bounded_protocol, connections_that_fit
from .memory_services import memory_services
from .ports import Folders, new_embedder, new_store, own_folders, tried_folders
from .reranker import new_reranker, new_selector
from .settings import Settings
from .stages import UsageMetrics, utc_now
from .token_file import errors_named
from .worker import PROBE_TENANT, PROBE_TEXT, Stages, built_stages, effective_policy, prepare_topics

log = structlog.get_logger(__name__)
PURPOSE = "serve"
P = TypeVar("P", Reranker | None, LlmReranker | None)


# ------------------------------------------------------------------------------------------------ parts
@dataclass(frozen=True, slots=True, kw_only=True)
class ServerParts:
    """Ports of the routes. `stages` is None unless the stages run in this process."""

    log: Log
    store: PeriodStore
    embedder: Embedder
    reranker: Reranker | None
    metrics: Metrics
    policies: TenantPolicies
    stages: Stages | None = None
    selector: LlmReranker | None = None


@asynccontextmanager
async def server_parts(settings: Settings, policy: MemoryPolicy, *, with_stages: bool) -> AsyncIterator[ServerParts]:
    """Connect and prepare the parts.

    Stages run in this process if `with_stages` is set. They also run in this process if it holds the folder, because
    then no other process can run them. Raises CommandFailed with exit 2 or 3 (see `built_stages`).
    """
    async with AsyncExitStack() as stack:
        entered = own_folders if with_stages else tried_folders
        folders = await stack.enter_async_context(entered(settings, purpose=PURPOSE))
        if with_stages or (settings.folders and folders.held == frozenset(settings.folders)):
            stages = await stack.enter_async_context(
                built_stages(STAGES, settings=settings, policy=policy, folders=folders)
            )
            yield ServerParts(
                log=stages.log,
                store=stages.store,
                embedder=stages.embedder,
                reranker=_closed_with(stack, new_reranker(settings, policy, sink=UsageMetrics(stages.metrics))),
                metrics=stages.metrics,
                policies=stages.policies,
                stages=stages,
                selector=_closed_with(stack, new_selector(settings, policy, sink=UsageMetrics(stages.metrics))),
            )
        else:
            yield await _without_stages(stack, settings, policy, folders)


async def _without_stages(
    stack: AsyncExitStack, settings: Settings, policy: MemoryPolicy, folders: Folders
) -> ServerParts:
    """Connect the parts of a server whose stages run in other processes."""
    patience = StartupRetry()
    metrics = Metrics(CollectorRegistry())
    embedder = new_embedder(settings, sink=UsageMetrics(metrics))
    stack.push_async_callback(embedder.close)
    client = new_log(settings)
    stack.push_async_callback(client.close)
    await patience("the log", client.start)
    await patience("the log", lambda: prepare_topics(client, settings))
    reader = PolicyReader(client, TenantPolicies(effective_policy(settings, policy)))
    await patience("the log", reader.read_whole)
    await stack.enter_async_context(reader.following())
    await patience("the embedder", lambda: embedder.embed([PROBE_TEXT], tenant_id=PROBE_TENANT))
    store = await patience("Qdrant", lambda: new_store(settings, identity=embedder.identity, folders=folders))
    stack.push_async_callback(store.close)
    try:
        there = [name for name in COLLECTION_OF.values() if await store.exists(name)]
        if there:
            await store.ensure(*there)
    except Transient as away:
        log.warning("server_away", what="Qdrant", why=str(away), remedy=away.remedy)  # the server still accepts turns
    except Fatal as error:  # another embedder filled the collections
        raise usage(str(error)) from error
    sink = UsageMetrics(metrics)
    return ServerParts(
        log=client,
        store=store,
        embedder=embedder,
        reranker=_closed_with(stack, new_reranker(settings, policy, sink=sink)),
        metrics=metrics,
        policies=reader.policies,
        selector=_closed_with(stack, new_selector(settings, policy, sink=sink)),
    )


def _closed_with(stack: AsyncExitStack, part: P) -> P:
    """Register a part to be closed with the stack, unless it is None. Return it."""
    if part is not None:
        stack.push_async_callback(part.close)
    return part


# ------------------------------------------------------------------------------------------------ credentials, ports
def read_credentials(settings: Settings, host: str) -> Credentials:
    """Read the token file, and add the identity provider. Without both, only a loopback host is allowed.

    Raises CommandFailed (exit 2) that names the problem.
    """
    file = Credentials(None)
    if settings.tokens is not None:
        with errors_named(settings.tokens):
            file = FileCredentials(settings.tokens)
    if settings.provider is not None:
        return ProvidedCredentials(file, settings.provider)
    if not file.open:
        return file
    if not all(ipaddress.ip_address(address).is_loopback for _, address in _addresses(host, 0)):
        raise usage(
            f"--host {host}: without tokens memstream serves only this machine (127.0.0.1). Create a token with "
            "`memstream tokens new`, and set MEMSTREAM_TOKENS to the token file, or set MEMSTREAM_OIDC_ISSUER"
        )
    return file


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise usage(f"--host {host}: {error}") from error
    return list(dict.fromkeys((family, str(address[0]).partition("%")[0]) for family, _, _, _, address in found))


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[list[socket.socket]]:
    """Bind the port before anything else, so that a port in use is reported immediately (exit 2).

    Port 0 takes a free port.
    """
    with contextlib.ExitStack() as stack:
        sockets: list[socket.socket] = []
        for family, address in _addresses(host, port):
            # asyncio sets TCP_NODELAY only on sockets with an explicit protocol. Without it, the body of an answer
            # waits about 40 ms until the client has acknowledged the headers.
            bound = stack.enter_context(socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family is socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                bound.bind((address, sockets[0].getsockname()[1] if sockets else port))
                bound.listen()
            except OSError as error:
                raise usage(f"--port {port} on {address}: {os.strerror(error.errno or 0)}; use a free port") from error
            sockets.append(bound)
        yield sockets


@asynccontextmanager
async def recall_publisher(parts: ServerParts, policy: MemoryPolicy) -> AsyncIterator[RecallPublisher]:
    """Open the publisher of recall events. If hygiene is off, yield a publisher that sends nothing."""
    if not policy.hygiene.enabled:
        yield NullRecallPublisher()
        return
    publisher = LogRecallPublisher(log=parts.log, metrics=PublisherMetrics.on(parts.metrics.registry))
    async with publisher.running():
        yield publisher


# ------------------------------------------------------------------------------------------------ the server
class Server(uvicorn.Server):
    """uvicorn's server without its signal handlers: the command handles signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@dataclass(slots=True, kw_only=True)
class HttpServer:
    """HTTP server. `run` ends when `stopping` is set, or when the stages end."""

    parts: ServerParts
    policy: MemoryPolicy
    credentials: Credentials
    limits: Limits = field(default_factory=Limits)
    publication: Publication = field(default_factory=Publication)
    _log: Probe = field(init=False)
    _store: Probe = field(init=False)

    def __post_init__(self) -> None:
        self._log = Probe(lambda: self.parts.log.ends(TURNS.name))
        self._store = Probe(self.parts.store.ping)

    def readiness(self) -> Mapping[str, tuple[bool, str]]:
        stages = self.parts.stages
        mine = {LOG: (self._log.reached, self._log.why), "qdrant": (self._store.reached, self._store.why)}
        return mine if stages is None else {**stages.readiness(), **mine}

    async def run(self, sockets: list[socket.socket], *, stopping: asyncio.Event) -> int:
        """Serve until `stopping` and return the exit code.

        The shutdown loses nothing: it refuses new requests, ends streams, finishes running requests, and then drains
        the stages. Recall events are published until the end.
        """
        await self.credentials.prepare()
        trail = AuditPublisher(log=self.parts.log, metrics=AuditMetrics.on(self.parts.metrics.registry))
        runs = ErasureRuns(store=self.parts.store, log=self.parts.log, now=utc_now)
        async with trail.running(), recall_publisher(self.parts, self.policy) as publisher, runs.running():
            services = self._services(publisher, runs)
            app = create_app(
                services,
                credentials=self.credentials,
                limits=self.limits,
                publication=self.publication,
            )
            mcp: McpEndpoint | None = app.state.mcp
            async with nullcontext() if mcp is None else mcp.running():
                return await self._run(app, sockets, (services.followers, services.turn_followers), stopping=stopping)

    def _services(self, publisher: RecallPublisher, erasures: ErasureRuns) -> Services:
        policies = self.parts.policies
        memory = memory_services(
            log=self.parts.log,
            store=self.parts.store,
            embedder=self.parts.embedder,
            reranker=self.parts.reranker,
            policies=self.parts.policies,
            publisher=publisher,
            source=SOURCE,
            selector=self.parts.selector,
        )
        return Services(
            sender=TurnSender(self.parts.log, SOURCE),
            commands=memory.commands,
            followers=new_followers(self.parts.log, self.limits),
            turn_followers=new_turn_followers(self.parts.log, self.limits),
            recall=memory.recall,
            contexts=memory.contexts,
            record_reader=memory.record_reader,
            profiles=memory.profiles,
            editor=memory.editor,
            tools=memory.tools,
            mcp=McpServices(
                tools=memory.tools,
                contexts=memory.contexts,
                resources=UserResources(memory.record_reader).all(),
                now=utc_now,
            ),
            fact_tracer=memory.fact_tracer,
            recall_reports=RecallReports(log=self.parts.log),
            turn_tracer=memory.turn_tracer,
            stage_lags=lambda: stage_lags(self.parts.log),
            oldest_unread=lambda stage: oldest_unread(self.parts.log, stage),
            verbatim_reader=memory.verbatim_reader,
            exporter=memory.exporter,
            importer=memory.importer,
            audit_reader=AuditReader(self.parts.log),
            letter_reader=DeadLetterReader(self.parts.log),
            letter_redrives=LetterRedrives(self.parts.log),
            secrets=memory.secrets,
            erasures=erasures,
            readiness=self.readiness,
            registry=self.parts.metrics.registry,
            recall_limit=lambda tenant_id, agent_id: policies.of(tenant_id, agent_id).recall.limit,
            limits_of=lambda tenant_id: policies.of(tenant_id).limits,
            clock_ahead=self.policy.routing.clock_ahead,
        )

    async def _run(
        self, app: FastAPI, sockets: list[socket.socket], followers: Sequence[TopicFanout], *, stopping: asyncio.Event
    ) -> int:
        server = Server(server_config(app, self.limits))
        watching = [asyncio.create_task(self._log.watch()), asyncio.create_task(self._store.watch())]
        draining = asyncio.Event()
        stages = asyncio.create_task(self._stages(draining))
        serving = asyncio.create_task(server.serve(sockets))
        asked = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait((serving, asked, stages), return_when=asyncio.FIRST_COMPLETED)
            for each in followers:
                each.close()
            server.should_exit = True
            await serving
            draining.set()
            return await stages
        finally:
            for task in (*watching, asked, serving, stages):
                task.cancel()

    async def _stages(self, draining: asyncio.Event) -> int:
        """Run the stages until `draining` is set or a stage ends. Return the worker's exit code."""
        if self.parts.stages is None:
            await draining.wait()
            return 0
        return await self.parts.stages.run(stopping=draining)


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """Server of a command: its settings, policy, credentials, limits and address."""

    settings: Settings
    policy: MemoryPolicy
    credentials: Credentials
    limits: Limits = field(default_factory=Limits)
    publication: Publication = field(default_factory=Publication)
    with_stages: bool = False

    async def run(self, sockets: list[socket.socket], *, began: Callable[[ServerParts], None], name: str) -> int:
        """Connect the parts and serve until a signal arrives. Return the exit code.

        `began` is called when the parts are connected. `name` is the name of the command in the log.
        """

        async def serving(running: asyncio.Event, stopping: asyncio.Event) -> int:
            async with server_parts(self.settings, self.policy, with_stages=self.with_stages) as parts:
                running.set()
                limits = replace(self.limits, connections=connections_that_fit(self.limits.connections))
                server = HttpServer(
                    parts=parts,
                    policy=self.policy,
                    credentials=self.credentials,
                    limits=limits,
                    publication=self.publication,
                )
                began(parts)
                tune_garbage_collection()
                return await server.run(sockets, stopping=stopping)

        return await until_stopped(serving, name=name)


def server_config(app: FastAPI, limits: Limits) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=bounded_protocol(limits),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=limits.header,
        timeout_keep_alive=round(limits.idle_seconds),
        headers=[("Keep-Alive", f"timeout={round(limits.idle_seconds)}")],
        timeout_graceful_shutdown=round(limits.drain_seconds),
    )


def url_of(sockets: list[socket.socket]) -> str:
    """Return the URL of the first socket."""
    host, port = sockets[0].getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
