"""Routes `/livez`, `/readyz` and `/metrics`. A worker has the same routes (docs/reference/monitoring.md)."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, ConfigDict

from .worker_health import Readiness

LOG = "log"
"""Name of the part that alone decides whether the server is ready. While the store is unavailable, the server still
accepts turns, so a load balancer must not remove the server."""


class PartReadiness(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ready: bool
    why: str


class ReadinessAnswer(BaseModel):
    """Readiness of the server. `ready` is true when turns are accepted; `parts` has the readiness of each part."""

    model_config = ConfigDict(extra="forbid")

    ready: bool
    parts: dict[str, PartReadiness]


def router(*, readiness: Readiness, registry: CollectorRegistry) -> APIRouter:
    routes = APIRouter(tags=["health"])

    @routes.get("/livez", response_class=PlainTextResponse, summary="Liveness: the event loop runs")
    async def livez() -> str:
        return "ok\n"

    @routes.get(
        "/readyz",
        summary="Readiness: turns are accepted",
        response_model=ReadinessAnswer,
        responses={503: {"model": ReadinessAnswer, "description": "Not ready; `why` has the reason for each part."}},
    )
    async def readyz() -> JSONResponse:
        parts = {name: PartReadiness(ready=ready, why=why) for name, (ready, why) in readiness().items()}
        ready = parts[LOG].ready
        answer = ReadinessAnswer(ready=ready, parts=parts)
        return JSONResponse(answer.model_dump(), HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE)

    @routes.get("/metrics", response_class=PlainTextResponse, summary="Metrics for Prometheus")
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    # Monitors use HEAD, too. The server omits the body of the answer to HEAD.
    routes.head("/livez", response_class=PlainTextResponse, include_in_schema=False)(livez)
    routes.head("/readyz", include_in_schema=False, response_model=None)(readyz)
    routes.head("/metrics", include_in_schema=False, response_model=None)(metrics)
    return routes
