"""HTTP application: connects routes to services, and installs the middleware that checks every request."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline
from prometheus_client import CollectorRegistry
from starlette.middleware.cors import CORSMiddleware

from .. import __version__
from ..memory.policies import LimitsPolicy
from ..memory.secrets.secret_filter import SecretFilter
from ..recall.context import ContextService
from ..recall.export.exporter import MemoryExporter
from ..recall.profile import ProfileReader
from ..recall.provenance import FactTracer
from ..recall.recall_reports import RecallReports
from ..recall.record_reader import RecordReader
from ..recall.service import RecallPort
from ..recall.turn_trace import TurnTracer
from ..recall.verbatim import VerbatimReader
from ..schemas.topics import FACTS_UPDATED, OBSERVATIONS, TURNS
from ..streams.log.fanout import FanoutBounds, TopicFanout
from ..streams.log.port import Log
from ..streams.log.stage_progress import HandledTopic, StageProgress
from ..streams.senders.commands import CommandPort
from ..streams.senders.turns import TurnSender
from ..tools.audit_topic import AuditReader
from ..tools.dead_letters.reader import DeadLetterReader
from ..tools.dead_letters.redriver import LetterRedrives
from ..tools.editor import MemoryEditor
from ..tools.erasure.runs import ErasurePort
from ..tools.importing.importer import MemoryImporter
from ..tools.tool_port import ToolPort
from . import (
    audit_trail,
    context,
    dead_letters,
    edits,
    erasures,
    export,
    health,
    held_records,
    imports,
    maintenance,
    openapi,
    problems,
    profile,
    recall,
    records,
    reviews,
    tools,
    turn_outcomes,
    turns,
    updates,
    verbatim,
)
from .admission import Admission, HttpMetrics
from .console import router as console
from .console.figures import ReadOldest
from .console.frame import Frame
from .console.pages import ConsolePages
from .console.sign_in import CookieSignIn
from .console.trail_pages import ReadLags
from .credentials import Credentials
from .docs_guard import DocsGuard
from .limits import Limits
from .local_guard import LocalGuard
from .mcp import McpEndpoint, McpServices
from .problems import METHODS
from .recall import LimitOf
from .root_path import RootPath
from .shares import Pools, SharedTools
from .sign_in import protected_resource
from .sign_in.access_tokens import ProvidedCredentials
from .turn_limits import LimitsOf, TurnLimitMetrics, TurnLimits
from .worker_health import Readiness

DESCRIPTION = (
    "Memory for chat services: turns in, memory out. Errors are problem details (RFC 9457). "
    "The contract is docs/reference/http.md."
)
EXPOSED = ("Allow", "Mcp-Session-Id", "Retry-After", "WWW-Authenticate")
"""Response headers that a web page of another origin may read."""
SOURCE = "api"
"""Component in the `ce_source` header of turns that this server sends."""
TURN_SOURCES = (
    HandledTopic(TURNS, "recorder"),
    HandledTopic(TURNS, "observer"),
    HandledTopic(OBSERVATIONS, "reflector"),
    HandledTopic(FACTS_UPDATED),
)
"""Records after which the stage of a turn, or the outcome of a statement, may differ."""
PROGRESS_SECONDS = 1.0
"""Time between two reads of their ends, while a page follows turns."""


@dataclass(frozen=True, kw_only=True)
class Services:
    """Services that the routes call."""

    sender: TurnSender
    commands: CommandPort
    followers: TopicFanout
    turn_followers: TopicFanout
    recall: RecallPort
    contexts: ContextService
    record_reader: RecordReader
    profiles: ProfileReader
    fact_tracer: FactTracer
    recall_reports: RecallReports
    turn_tracer: TurnTracer
    stage_lags: ReadLags
    oldest_unread: ReadOldest
    verbatim_reader: VerbatimReader
    exporter: MemoryExporter
    importer: MemoryImporter
    erasures: ErasurePort
    editor: MemoryEditor
    tools: ToolPort
    audit_reader: AuditReader
    letter_reader: DeadLetterReader
    letter_redrives: LetterRedrives
    secrets: SecretFilter
    """Masks secrets in the content of dead letters."""
    readiness: Readiness
    registry: CollectorRegistry
    mcp: McpServices | None = None
    """None: the server has no route /mcp."""
    recall_limit: LimitOf = lambda tenant_id, agent_id: 10
    limits_of: LimitsOf = lambda tenant_id: LimitsPolicy()
    clock_ahead: float = 300.0
    """Maximum number of seconds by which a turn's time may be ahead of this server's clock."""
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    ticks: Callable[[], int] = time.monotonic_ns
    """Monotonic clock in nanoseconds."""


def new_followers(log: Log, limits: Limits) -> TopicFanout:
    return TopicFanout(log=log, topic=FACTS_UPDATED.name, bounds=_bounds(limits))


def new_turn_followers(log: Log, limits: Limits) -> TopicFanout:
    """Return the readers of the records that change what became of a turn."""
    progress = StageProgress(log, TURN_SOURCES, seconds=PROGRESS_SECONDS)
    return TopicFanout(log=progress, topic="progress of turns", bounds=_bounds(limits))


def _bounds(limits: Limits) -> FanoutBounds:
    return FanoutBounds(readers=limits.streams, catching_up=limits.catching_up, room=limits.stream_events)


@dataclass(frozen=True, slots=True)
class Publication:
    """Public address of this server.

    `root_path` is the prefix of the server's paths behind a proxy. `origins` are the origins of the web pages that may
    call the server (CORS); `*` allows every page.
    """

    root_path: str = ""
    origins: tuple[str, ...] = ()


def create_app(
    services: Services,
    *,
    credentials: Credentials,
    limits: Limits | None = None,
    publication: Publication | None = None,
) -> FastAPI:
    limits = limits or Limits()
    publication = publication or Publication()
    pools = Pools.of(limits)
    shared_tools = SharedTools(services.tools, pools.commands, credentials.open)
    app = FastAPIOffline(
        title="memstream",
        version=__version__,
        description=DESCRIPTION,
        redoc_url=None,
        static_url="/docs/static",
        redirect_slashes=False,
        swagger_ui_parameters={"validatorUrl": None},  # the page must not send the document to an external validator
    )
    app.include_router(
        turns.router(
            sender=services.sender,
            credentials=credentials,
            limits=limits,
            turn_limits=TurnLimits(services.limits_of, TurnLimitMetrics(services.registry), clock=services.ticks),
            now=services.now,
            clock_ahead=timedelta(seconds=services.clock_ahead),
        )
    )
    app.include_router(
        recall.router(
            recall=services.recall,
            profiles=services.profiles,
            memberships=services.record_reader,
            credentials=credentials,
            limits=limits,
            now=services.now,
            limit=services.recall_limit,
        )
    )
    app.include_router(
        context.router(
            contexts=services.contexts,
            profiles=services.profiles,
            memberships=services.record_reader,
            credentials=credentials,
            limits=limits,
            now=services.now,
        )
    )
    streams = updates.UpdateStreams(services.followers, pools, credentials, limits)
    app.include_router(updates.router(streams))
    app.include_router(turn_outcomes.router(turn_tracer=services.turn_tracer, credentials=credentials))
    app.include_router(
        records.router(
            record_reader=services.record_reader,
            profiles=services.profiles,
            fact_tracer=services.fact_tracer,
            credentials=credentials,
        )
    )
    app.include_router(
        profile.router(
            profiles=services.profiles,
            memberships=services.record_reader,
            credentials=credentials,
            now=services.now,
        )
    )
    app.include_router(
        verbatim.router(verbatim_reader=services.verbatim_reader, credentials=credentials, now=services.now)
    )
    app.include_router(audit_trail.router(reader=services.audit_reader, credentials=credentials))
    letters = dead_letters.DeadLetters(
        services.letter_reader, services.letter_redrives, pools.commands, services.secrets
    )
    app.include_router(dead_letters.router(dead_letters=letters, credentials=credentials, limits=limits))
    app.include_router(export.router(exporter=services.exporter, pools=pools, credentials=credentials, limits=limits))
    app.include_router(
        imports.router(importer=services.importer, places=pools.commands, credentials=credentials, limits=limits)
    )
    app.include_router(
        maintenance.router(
            commands=services.commands,
            places=pools.commands,
            credentials=credentials,
            limits=limits,
            now=services.now,
        )
    )
    app.include_router(erasures.router(erasures=services.erasures, credentials=credentials, limits=limits))
    app.include_router(
        reviews.router(
            commands=services.commands,
            places=pools.commands,
            fact_tracer=services.fact_tracer,
            credentials=credentials,
            limits=limits,
            now=services.now,
        )
    )
    app.include_router(
        edits.router(
            editor=services.editor,
            places=pools.commands,
            record_reader=services.record_reader,
            credentials=credentials,
            limits=limits,
        )
    )
    app.include_router(held_records.router(record_reader=services.record_reader, credentials=credentials))
    app.include_router(
        tools.router(tools=shared_tools, memberships=services.record_reader, credentials=credentials, limits=limits)
    )
    app.state.mcp = None
    if services.mcp is not None:
        app.state.mcp = McpEndpoint(
            replace(services.mcp, tools=SharedTools(services.mcp.tools, pools.commands, credentials.open)),
            pools=pools,
            memberships=services.record_reader,
            credentials=credentials,
            limits=limits,
        )
        app.router.routes.extend(app.state.mcp.routes)
    app.include_router(health.router(readiness=services.readiness, registry=services.registry))
    pages = ConsolePages(signs_in=not credentials.open)
    app.include_router(
        console.router(
            pages,
            record_reader=services.record_reader,
            profiles=services.profiles,
            fact_tracer=services.fact_tracer,
            recall_reports=services.recall_reports,
            turn_tracer=services.turn_tracer,
            lags=services.stage_lags,
            oldest=services.oldest_unread,
            readiness=services.readiness,
            registry=services.registry,
            recall=services.recall,
            contexts=services.contexts,
            limit=services.recall_limit,
            now=services.now,
            edits=edits.EditSender(services.editor, pools.commands, services.record_reader, limits),
            reviews=reviews.FactReviews(services.commands, pools.commands, services.fact_tracer, services.now),
            dead_letters=letters,
            streams=streams,
            turn_followers=services.turn_followers,
            credentials=credentials,
        )
    )
    if isinstance(credentials, ProvidedCredentials):
        protected_resource.install(app, credentials, services.registry)
    if credentials.open:
        app.add_middleware(LocalGuard, origins=publication.origins)
    else:
        app.add_middleware(DocsGuard, credentials=credentials)
    app.add_middleware(
        Admission,
        limits=limits,
        metrics=HttpMetrics(services.registry),
        credentials=credentials,
        pool=pools.requests,
    )
    app.add_middleware(Frame, pages=pages)
    app.add_middleware(CookieSignIn)
    if publication.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=publication.origins,
            allow_methods=METHODS,
            allow_headers=["*"],  # every header that a page of these origins sends
            expose_headers=EXPOSED,
        )
    if publication.root_path:
        app.add_middleware(RootPath, root_path=publication.root_path)
    problems.install(app, retry_after=limits.retry_seconds)
    app.openapi = _once(app)  # type: ignore[method-assign]
    return app


def _once(app: FastAPI) -> Callable[[], dict[str, Any]]:
    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = openapi.document(app)
        return app.openapi_schema

    return document
