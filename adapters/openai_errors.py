"""What the OpenAI-compatible servers mean: which answer is which error, and Retry-After.

Completions and embeddings speak to the same kind of server, so one table decides what is transient. Retries are the
boundary's business (streams/engine/error_boundary.py): nothing is tried again here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from ..schemas.errors import Transient
from .unicode import well_formed

MAX_RETRY_AFTER: Final = 3600.0
"""Seconds. A server that asks for more is asked again after an hour: a wait must never look like a hang."""

REFUSED_STATUSES: Final = frozenset({400, 413, 422})
"""What a server says of a request that it will never take (413: it is too large). The rest may pass by itself."""

MODEL: Final = "model"
"""The component of a `Transient` that says of a model that it is away."""

_SETTINGS_CODES: Final = frozenset({"invalid_api_key", "model_not_found"})


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer that is none: what the server said instead."""

    status: int
    message: str
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """By lower-case name, or in a mapping that does not care."""


def failure_of(status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """From an answer above 299. Servers differ: `{"error": {"message", "code"}}`, `{"error": "…"}`, `{"message": "…"}`,
    or a proxy's page."""
    text = body.decode("utf-8", "replace")
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, dict):
        said = said.get("error", said)
    if isinstance(said, dict):
        code = said.get("code")
        message = said.get("message")
        return Failure(
            status=status,
            message=message if isinstance(message, str) else text,
            code=code if isinstance(code, str) else None,
            headers=headers,
        )
    return Failure(status=status, message=said if isinstance(said, str) else text, headers=headers)


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Seconds that the server asked for: RFC 9110 `Retry-After`, as seconds or as a date, at most an hour."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            at = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds()
    if not math.isfinite(seconds):
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)


class RateLimited(Transient):
    """The server is there and asks for time (429): no sign that the model is away."""


def is_refusal(failure: Failure) -> bool:
    """The server will never take this request as it is. A wrong key or model told with status 400 is no such case."""
    return failure.status in REFUSED_STATUSES and failure.code not in _SETTINGS_CODES


def to_transient(failure: Failure, *, component: str, model: str, setting: str) -> Transient:
    """Everything that is no refusal, as `Transient`; `remedy` names the setting that a person should look at.

    `setting` is the variable that names the model (MEMSTREAM_MODEL, MEMSTREAM_EMBEDDER).
    """
    status, code = failure.status, failure.code
    remedy = ""
    if status in (401, 403) or code == "invalid_api_key":
        remedy = f"check OPENAI_API_KEY: the server does not let this key use {model} ({setting}, OPENAI_BASE_URL)"
    elif status == 404 or code == "model_not_found":
        remedy = f"check {setting} ({model}) and OPENAI_BASE_URL (it usually ends with /v1): nothing is there"
    elif status == 402 or code == "insufficient_quota":
        remedy = "the account behind OPENAI_API_KEY has no credit left"
    elif status < 500 and status not in (408, 409, 425, 429):
        remedy = f"check OPENAI_BASE_URL and {setting}: the server does not understand this call"
    kind = RateLimited if status == 429 and code != "insufficient_quota" else Transient
    return kind(
        component,
        f"the server of {model} said {status}: {shortened(failure.message)}",
        retry_after=retry_after(failure.headers, now=datetime.now(UTC)),
        remedy=remedy,
    )


def shortened(text: str, limit: int = 300) -> str:
    """One line of at most `limit` code points, for messages and prompts."""
    flat = " ".join(well_formed(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
