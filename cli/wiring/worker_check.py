"""Check of `memstream doctor` that asks the worker on this machine for its state. A part of this state is only in the
worker's memory."""

from __future__ import annotations

import httpx
from pydantic import BaseModel, ValidationError

from ..process.health_address import origin_of
from .broker import COMMAND_TIMEOUT
from .checks import Check
from .settings import Settings


class _Part(BaseModel):
    ready: bool
    why: str


class _Readiness(BaseModel):
    parts: dict[str, _Part]


async def check_worker(settings: Settings) -> list[Check]:
    """Return the check of the worker's `/readyz`, or no check if the settings have no health port.

    A ready part can also report a problem: paused tenants or parked keys.
    """
    if not settings.health_port:
        return []
    address = f"{origin_of(settings.health_host, settings.health_port)}/readyz"
    try:
        async with httpx.AsyncClient(timeout=COMMAND_TIMEOUT, trust_env=False) as client:
            answer = await client.get(address)
        parts = _Readiness.model_validate_json(answer.content).parts
    except (httpx.HTTPError, httpx.InvalidURL):
        return [Check("worker", True, f"no worker answers at {address}")]
    except ValidationError:
        return [Check("worker", False, f"{address} is no memstream worker", "check MEMSTREAM_HEALTH_PORT")]
    problems = [f"{name}: {part.why}" for name, part in parts.items() if part.why or not part.ready]
    if not problems:
        return [Check("worker", True, f"{address} is ready, and no tenant is paused")]
    return [Check("worker", False, "; ".join(problems), "docs/reference/monitoring.md explains each answer")]
