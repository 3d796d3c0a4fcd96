"""Conversion of error responses from OpenAI-compatible servers to this package's errors. It also parses `Retry-After`.

Completions and embeddings use the same kind of server, so both use these rules about transient errors. Retries happen
in streams/engine/error_boundary.py, not here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from pydantic import JsonValue

from ..schemas.errors import TimedOut, Transient
from .unicode import replace_surrogates

MAX_RETRY_AFTER: Final = 3600.0
"""Maximum seconds before a retry. A longer wait would look like a hang."""

REFUSED_STATUSES: Final = frozenset({400, 413, 422})
"""Status codes of a request that the server will never accept (413: it is too large). Other errors may be temporary."""

MODEL: Final = "model"
"""The component of a `Transient` about a completion model."""

TIMEOUT_STATUSES: Final = frozenset({408, 504, 524})

_SETTINGS_CODES: Final = frozenset({"invalid_api_key", "model_not_found"})

_FILTER_CODES: Final = (
    "contentfilter",
    "contentpolicy",
    "policyviolation",
    "responsibleai",
    "prohibitedcontent",
    "invalidprompt",
    "moderation",
    "guardrail",
    "safety",
    "datainspection",
)
"""Parts of error codes and types that mean a content filter or policy, in the normal form of `_letters`."""
_FILTER_PHRASES: Final = ("contentfilter", "contentpolicy", "contentmanagementpolicy", "usagepolic")
"""Parts of error messages that mean a content filter or policy. Some gateways forward only the message."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error response of a server."""

    status: int
    message: str
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Response headers. The keys are in lower case, or the mapping ignores case."""
    kinds: tuple[str, ...] = ()
    """Further names of the error kind: the field `type`, and the code of an inner error."""


def failure_of(status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """Parse a response with a status above 299. Servers use different forms: `{"error": {"message", "code"}}`,
    `{"error": "…"}`, `{"message": "…"}`, or the HTML page of a proxy."""
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
        inner = said.get("innererror")
        kinds = (said.get("type"), inner.get("code") if isinstance(inner, dict) else None)
        return Failure(
            status=status,
            message=message if isinstance(message, str) else text,
            code=code if isinstance(code, str) else None,
            headers=headers,
            kinds=tuple(kind for kind in kinds if isinstance(kind, str)),
        )
    return Failure(status=status, message=said if isinstance(said, str) else text, headers=headers)


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return the seconds that the server asks the client to wait (RFC 9110 `Retry-After`, as seconds or as a date), at
    most `MAX_RETRY_AFTER`. Return None when there is no valid value."""
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


class ServerFailed(Transient):
    """Error response of a server. The error may be temporary, or the user can fix it by changing a setting."""

    def __init__(
        self, component: str, message: str, *, status: int, retry_after: float | None = None, remedy: str = ""
    ) -> None:
        super().__init__(component, message, retry_after=retry_after, remedy=remedy)
        self.status = status


class RateLimited(ServerFailed):
    """Response 429: the server asks the client to wait. The model still counts as available."""


class GatewayTimedOut(ServerFailed, TimedOut):
    """Response 408, 504 or 524: a gateway or the server itself ended a call that took too long."""


def is_refusal(failure: Failure) -> bool:
    """Return whether the server will never accept this request. A wrong key or a wrong model name is not a refusal,
    even when the server reports it with status 400."""
    return failure.status in REFUSED_STATUSES and failure.code not in _SETTINGS_CODES


def is_filtered(failure: Failure) -> bool:
    """Return whether a content filter or policy refused the request. The server then refuses every form of this
    request."""
    named = any(name in _letters(kind) for kind in (failure.code or "", *failure.kinds) for name in _FILTER_CODES)
    said = _letters(shorten(failure.message))  # the same part of the message that `without_echo` checks
    return is_refusal(failure) and (named or any(phrase in said for phrase in _FILTER_PHRASES))


def _letters(text: str) -> str:
    """Return the letters of the text in lower case, so that `content_filter`, `ContentFilter` and `content filter` are
    equal."""
    return "".join(filter(str.isalpha, text.lower()))


def to_transient(failure: Failure, *, component: str, model: str, setting: str) -> ServerFailed:
    """Convert an error that is not a refusal into `Transient`. Its `remedy` names the setting to check.

    `setting` is the variable that names the model (MEMSTREAM_MODEL, MEMSTREAM_EMBEDDER).
    """
    status, code = failure.status, failure.code
    remedy = ""
    if status in (401, 403) or code == "invalid_api_key":
        remedy = f"check OPENAI_API_KEY: the server does not accept this key for {model} ({setting}, OPENAI_BASE_URL)"
    elif status == 404 or code == "model_not_found":
        remedy = f"check {setting} ({model}) and OPENAI_BASE_URL (it usually ends with /v1): the server found nothing"
    elif status == 402 or code == "insufficient_quota":
        remedy = "the account behind OPENAI_API_KEY has no credit left"
    elif status < 500 and status not in (408, 409, 425, 429):
        remedy = f"check OPENAI_BASE_URL and {setting}: the server does not understand this call"
    kind = GatewayTimedOut if status in TIMEOUT_STATUSES else ServerFailed
    kind = RateLimited if status == 429 and code != "insufficient_quota" else kind
    return kind(
        component,
        f"the server of {model} said {status}: {shorten(failure.message)}",
        status=status,
        retry_after=retry_after(failure.headers, now=datetime.now(UTC)),
        remedy=remedy,
    )


ECHO_MIN: Final = 20
"""Minimum number of consecutive code points that an error message shares with the request to count as an echo."""
ECHO_SHORT: Final = 6
"""Minimum length of a short text that counts as an echo when the error message contains all of it."""
ECHO_LEFT_OUT: Final = "its message repeats what was sent, and is left out"


def without_echo(failure: Failure, body: Mapping[str, JsonValue]) -> Failure:
    """Return the failure without its message when the message repeats user content. Some servers send rejected input
    back, and error messages are written to logs."""
    shown = shorten(failure.message)
    sent = [shorten(text, limit=len(text)) for text in _user_texts(body)]
    runs = {shown[at : at + ECHO_MIN] for at in range(len(shown) - ECHO_MIN + 1)}
    echoes = any(run in text for text in sent for run in runs) or any(
        ECHO_SHORT <= len(text) < ECHO_MIN and text in shown for text in sent
    )
    return replace(failure, message=ECHO_LEFT_OUT) if echoes else failure


def _user_texts(body: Mapping[str, JsonValue]) -> list[str]:
    """Return the texts of a request that come from users: texts to embed, and messages of roles other than system and
    assistant."""
    messages, texts = body.get("messages"), body.get("input")
    said = [each for each in messages if isinstance(each, dict)] if isinstance(messages, list) else []
    found = [each.get("content") for each in said if each.get("role") not in ("system", "assistant")]
    found += texts if isinstance(texts, list) else []
    return [each for each in found if isinstance(each, str)]


def shorten(text: str, limit: int = 300) -> str:
    """Return the text as one line of at most `limit` code points, for messages and prompts."""
    flat = " ".join(replace_surrogates(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
