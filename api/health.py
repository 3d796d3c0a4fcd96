"""`/livez`, `/readyz`, `/metrics`, as a worker has them (docs/how-to/monitor.md)."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, ConfigDict

from ..streams.engine.health import Readiness

LOG = "log"
"""The part by which this server is ready: without the store turns are taken all the same, so a balancer must not take
it away from them."""


class PartReadiness(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ready: bool
    why: str


class ReadinessAnswer(BaseModel):
    """`ready` is whether turns are taken; every part tells for itself."""

    model_config = ConfigDict(extra="forbid")

    ready: bool
    parts: dict[str, PartReadiness]


def router(*, readiness: Readiness, registry: CollectorRegistry) -> APIRouter:
    routes = APIRouter(tags=["health"])

    @routes.get("/livez", response_class=PlainTextResponse, summary="The event loop turns")
    async def livez() -> str:
        return "ok\n"

    @routes.get(
        "/readyz",
        summary="Turns are taken",
        response_model=ReadinessAnswer,
        responses={503: {"model": ReadinessAnswer, "description": "Not ready; `why` tells for each part."}},
    )
    async def readyz() -> JSONResponse:
        parts = {name: PartReadiness(ready=ready, why=why) for name, (ready, why) in readiness().items()}
        ready = parts[LOG].ready
        answer = ReadinessAnswer(ready=ready, parts=parts)
        return JSONResponse(answer.model_dump(), HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE)

    @routes.get("/metrics", response_class=PlainTextResponse, summary="Prometheus")
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return routes
