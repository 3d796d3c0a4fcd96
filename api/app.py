"""The HTTP interface: routes → services. Nothing is decided here but who may ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from .. import __version__
from ..recall.context import Contexts
from ..recall.reading import Reading
from ..recall.rehydrating import Rehydrating
from ..recall.service import Recalls
from ..recall.tracing import Tracing
from ..schemas.topics import FACTS_UPDATED
from ..streams.commanding import Asks
from ..streams.following import Bounds, Followers
from ..streams.health import Readiness
from ..streams.ports import Log
from ..streams.sending import TurnSender
from . import contexts, documents, health, problems, reading, recalling, reflecting, rehydrating, turns, updates
from .credentials import Credentials
from .guard import Guard, HttpMetrics
from .limits import Limits

DESCRIPTION = (
    "Memory for chat services: turns in, memory out. Errors are problem details (RFC 9457). docs/api.md says the rest."
)
SOURCE = "api"
"""In `ce_source` of what is handed in here."""


@dataclass(frozen=True, kw_only=True)
class Services:
    """What the routes stand on."""

    sender: TurnSender
    commands: Asks
    followers: Followers
    recall: Recalls
    contexts: Contexts
    reading: Reading
    tracing: Tracing
    rehydrating: Rehydrating
    readiness: Readiness
    registry: CollectorRegistry
    recall_limit: int = 10
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))


def new_followers(log: Log, limits: Limits) -> Followers:
    bounds = Bounds(readers=limits.streams, catching_up=limits.catching_up, room=limits.stream_events)
    return Followers(log=log, topic=FACTS_UPDATED.name, bounds=bounds)


def create_app(services: Services, *, credentials: Credentials, limits: Limits | None = None) -> FastAPI:
    limits = limits or Limits()
    app = FastAPI(
        title="memstream", version=__version__, description=DESCRIPTION, redoc_url=None, redirect_slashes=False
    )
    app.include_router(turns.router(sender=services.sender, credentials=credentials, limits=limits))
    app.include_router(
        recalling.router(
            recall=services.recall,
            credentials=credentials,
            limits=limits,
            now=services.now,
            limit=services.recall_limit,
        )
    )
    app.include_router(
        contexts.router(contexts=services.contexts, credentials=credentials, limits=limits, now=services.now)
    )
    app.include_router(updates.router(followers=services.followers, credentials=credentials, limits=limits))
    app.include_router(reading.router(reading=services.reading, tracing=services.tracing, credentials=credentials))
    app.include_router(rehydrating.router(rehydrating=services.rehydrating, credentials=credentials, now=services.now))
    app.include_router(
        reflecting.router(commands=services.commands, credentials=credentials, limits=limits, now=services.now)
    )
    app.include_router(health.router(readiness=services.readiness, registry=services.registry))
    app.add_middleware(Guard, limits=limits, metrics=HttpMetrics(services.registry))
    problems.install(app, retry_after=limits.retry_seconds)
    app.openapi = _once(app)  # type: ignore[method-assign]
    return app


def _once(app: FastAPI) -> Callable[[], dict[str, Any]]:
    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = documents.document(app)
        return app.openapi_schema

    return openapi
