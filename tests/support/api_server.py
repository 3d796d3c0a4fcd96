"""The HTTP API for tests, over fake services, called in process or over a real socket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import fields
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

import httpx
from fastapi import FastAPI
from fastapi.dependencies import models
from prometheus_client import CollectorRegistry
from starlette.types import Receive, Send
from starlette.types import Scope as ASGIScope

from memstream.adapters.ports import VectorStore
from memstream.api.app import SOURCE, Publication, Services, create_app, new_followers, new_turn_followers
from memstream.api.credentials import Credentials, TokenEntry, digest
from memstream.api.limits import Limits
from memstream.api.scopes import Scope
from memstream.cli.wiring.server import Server, server_config
from memstream.cli.wiring.stages import utc_now
from memstream.memory.policies import MemoryPolicy
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.memory.tenant_policies import TenantPolicies
from memstream.recall.context import ContextService
from memstream.recall.export.exporter import MemoryExporter
from memstream.recall.profile import ProfileReader
from memstream.recall.provenance import FactTracer
from memstream.recall.recall_reports import RecallReports
from memstream.recall.record_reader import RecordReader
from memstream.recall.request import RecallRequest
from memstream.recall.service import RecallResult
from memstream.recall.turn_trace import TurnTracer
from memstream.recall.verbatim import VerbatimReader
from memstream.schemas.commands import Command, CommandResult
from memstream.schemas.errors import Transient
from memstream.streams.log.fanout import TopicFanout
from memstream.streams.log.port import Log, Position
from memstream.streams.log.stage_lag import StageLag, oldest_unread, stage_lags
from memstream.streams.senders.turns import TurnSender
from memstream.tools.audit_topic import AuditReader
from memstream.tools.dead_letters.reader import DeadLetterReader
from memstream.tools.dead_letters.redriver import LetterRedrives
from memstream.tools.editor import MemoryEditor
from memstream.tools.erasure.runs import ErasurePort, ErasureRuns
from memstream.tools.importing.importer import MemoryImporter
from memstream.tools.tool_port import ToolPort
from memstream.tools.tool_reads import ToolReads
from memstream.tools.tool_writes import ToolWrites
from memstream.tools.toolbox import ToolBox

OPEN = Credentials(None)
LIMITS = Limits()


def entry(
    token: str,
    *,
    tenants: Sequence[str] = ("acme",),
    scopes: Sequence[Scope] = ("turns:write", "memory:read"),
    users: Sequence[str] | None = None,
) -> TokenEntry:
    given = None if users is None else tuple(users)
    return TokenEntry(name=token, sha256=digest(token), tenants=tuple(tenants), scopes=tuple(scopes), users=given)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


class NoLog:
    """A log that keeps appended records. `away`: appends fail; `hold`: appends wait until it is set."""

    def __init__(self) -> None:
        self.appended: list[tuple[str, bytes | None, bytes | None, Mapping[str, bytes]]] = []
        self.away: Transient | None = None
        self.hold = asyncio.Event()
        self.hold.set()

    async def partitions(self, topic: str) -> int | None:
        return None

    async def append(
        self, topic: str, *, key: bytes | None, value: bytes | None, headers: Any = (), **more: Any
    ) -> Position:
        await self.hold.wait()
        if self.away is not None:
            raise self.away
        self.appended.append((topic, key, value, dict(headers)))
        return Position(topic, 3, len(self.appended) - 1)


class NoCommands:
    """A command port that records commands and returns the results that the test gives."""

    def __init__(self, result: Callable[[Command], CommandResult | None] = lambda command: None) -> None:
        self.result = result
        self.asked: list[tuple[Command, float]] = []

    async def ask(self, command: Command, *, patience: float) -> CommandResult | None:
        self.asked.append((command, patience))
        return self.result(command)


class CommandsOfTest:
    """The command port of an application that several tests share: it calls the port that `of` names.

    Building an application takes 0.2 s, and its routes keep no state of a command.
    """

    def __init__(self) -> None:
        self.of = NoCommands()

    async def ask(self, command: Command, *, patience: float) -> CommandResult | None:
        return await self.of.ask(command, patience=patience)


class NoRecall:
    """A recall service that records requests and returns the answer that the test gives. Nothing is pinned."""

    def __init__(self, answer: RecallResult | Exception | None = None) -> None:
        self.answer = answer or RecallResult((), ())
        self.asked: list[RecallRequest] = []

    async def recall(self, request: RecallRequest, *, now: datetime) -> RecallResult:
        if request.pinned:
            return RecallResult((), ())
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def no_lags() -> list[StageLag]:
    return []


class ServiceOfTest:
    """A service of the shared application: it forwards to the service of the test that sends the request."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _service(self) -> Any:
        return getattr(_SERVICES.get(), self._name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service(), name)

    def __call__(self, *args: Any, **more: Any) -> Any:
        return self._service()(*args, **more)


_SERVICES: ContextVar[Services] = ContextVar("services")
FORWARDED = tuple(each.name for each in fields(Services) if each.name not in {"registry", "mcp", "clock_ahead"})


class SharedApp:
    """The application that all tests with these credentials and the usual limits share, with the services of one test.

    FastAPI takes 0.2 s of processor time to analyse the routes of an application.
    """

    def __init__(self, app: FastAPI, services: Services) -> None:
        self._app = app
        self._services = services

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        token = _SERVICES.set(self._services)
        try:
            await self._app(scope, receive, send)
        finally:
            _SERVICES.reset(token)


@lru_cache(maxsize=4)
def shared_app(credentials: Credentials) -> FastAPI:
    forwarding: dict[str, Any] = {name: ServiceOfTest(name) for name in FORWARDED}
    return create_app(Services(**forwarding, registry=CollectorRegistry()), credentials=credentials, limits=LIMITS)


def forget_earlier_apps() -> None:
    """Empty FastAPI's caches of endpoint functions: they hold the last fifty applications with their stores."""
    for each in vars(models).values():
        if hasattr(each, "cache_clear"):
            each.cache_clear()


def app_over(
    *,
    log: Log | NoLog | None = None,
    store: VectorStore | None = None,
    recall: Any = None,
    commands: NoCommands | CommandsOfTest | None = None,
    credentials: Credentials = OPEN,
    limits: Limits = LIMITS,
    followers: TopicFanout | None = None,
    ready: bool = True,
    tools: ToolPort | None = None,
    erasures: ErasurePort | None = None,
    publication: Publication | None = None,
    **more: Any,
) -> FastAPI:
    client = cast(Log, log or NoLog())
    backing = cast(VectorStore, store)
    recaller = recall or NoRecall()
    reading = RecordReader(store=backing)
    sender = commands or NoCommands()
    editor = MemoryEditor(commands=sender, now=utc_now)
    verbatim = VerbatimReader(store=backing, log=client, policies=TenantPolicies(MemoryPolicy()))
    services = Services(
        sender=TurnSender(client, SOURCE),
        commands=sender,
        editor=editor,
        tools=tools or _tools(recaller, backing, editor, sender),
        followers=followers or new_followers(client, limits),
        turn_followers=new_turn_followers(client, limits),
        recall=recaller,
        contexts=ContextService(recall=recaller, digests=reading if store else None, store=store),
        record_reader=reading,
        profiles=ProfileReader(store=backing, policies=TenantPolicies(MemoryPolicy())),
        fact_tracer=FactTracer(store=backing, log=client),
        recall_reports=RecallReports(log=client),
        oldest_unread=more.pop("oldest_unread", None) or (lambda stage: oldest_unread(client, stage)),
        stage_lags=more.pop("stage_lags", None) or (lambda: stage_lags(client) if log is not None else no_lags()),
        turn_tracer=TurnTracer(store=backing, log=client, deployment=MemoryPolicy()),
        verbatim_reader=verbatim,
        exporter=MemoryExporter(
            store=backing, log=client, embedder="hashing", may_show=verbatim.may_be_shown, now=utc_now
        ),
        importer=MemoryImporter(log=client, store=backing, commands=sender, now=utc_now, secrets=SecretFilter()),
        erasures=erasures or ErasureRuns(store=backing, log=client, now=utc_now),
        readiness=lambda: {"log": (ready, "" if ready else "it is away"), "qdrant": (False, "it is down")},
        audit_reader=AuditReader(client),
        letter_reader=DeadLetterReader(client),
        letter_redrives=LetterRedrives(client),
        secrets=SecretFilter(),
        **({"registry": CollectorRegistry()} | more),
    )
    if limits is LIMITS and publication is None and more.keys() <= {"now", "recall_limit"}:
        return cast(FastAPI, SharedApp(shared_app(credentials), services))
    forget_earlier_apps()
    return create_app(services, credentials=credentials, limits=limits, publication=publication)


def _tools(recaller: Any, store: VectorStore, editor: MemoryEditor, sender: NoCommands | CommandsOfTest) -> ToolBox:
    policies = TenantPolicies(MemoryPolicy())
    reading = RecordReader(store=store)
    reads = ToolReads(
        recall=recaller,
        records=reading,
        profiles=ProfileReader(store=store, policies=policies),
        verbatim=cast(Any, None),
        now=utc_now,
        policies=policies,
    )
    writes = ToolWrites(editor=editor, commands=sender, records=reading, now=utc_now)
    return ToolBox(reads=reads, writes=writes, policies=policies)


def called(app: FastAPI, *, token: str | None = None) -> httpx.AsyncClient:
    """A client that calls the app in process. An exception of a route becomes a response, as in a server."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=bearer(token) if token else {})


@asynccontextmanager
async def served(app: FastAPI, *, limits: Limits = LIMITS, followers: TopicFanout | None = None) -> AsyncIterator[str]:
    """Serve the app on a real socket, yield its address, and end as `memstream serve` ends."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Server(server_config(app, limits))
        serving = asyncio.create_task(server.serve([listening]))
        try:
            while not server.started:
                assert not serving.done(), serving
                await asyncio.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            if followers is not None:
                followers.close()
            server.should_exit = True
            await serving
