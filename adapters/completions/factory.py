"""Which model MEMSTREAM_MODEL means."""

from __future__ import annotations

from typing import Final

import structlog

from ..ports import Completions, UsageSink
from .offline import OfflineCompletions

log = structlog.get_logger(__name__)

OFFLINE: Final = "offline"
DEFAULT_MODEL: Final = "gpt-5-mini"


def create_completions(
    *,
    model: str | None,
    api_key: str | None,
    base_url: str | None,
    timeout: float,
    concurrency: int,
    sink: UsageSink,
) -> Completions:
    """The model by name; without a name gpt-5-mini when there is a key, else the offline rules.

    Of several names with commas the first is used. Connects nothing; a ValueError says what is missing.
    """
    names = [name.strip() for name in (model or "").split(",") if name.strip()]
    name = names[0] if names else DEFAULT_MODEL if api_key else OFFLINE
    if name == OFFLINE:
        offline = OfflineCompletions(sink=sink)
        log.warning(
            "model_chosen",
            model=offline.model,
            note="rule-based: it knows only simple English sentences; set OPENAI_API_KEY for a real model",
        )
        return offline
    if not (api_key or base_url):
        raise ValueError(f"MEMSTREAM_MODEL={model} needs OPENAI_API_KEY (or OPENAI_BASE_URL of a server of yours)")
    from .openai import OpenAICompletions  # the client takes most of a second to import: only who uses it pays

    log.info("model_chosen", model=name, not_used_yet=names[1:], server=base_url or "default")
    return OpenAICompletions(
        model=name, api_key=api_key, base_url=base_url, timeout=timeout, concurrency=concurrency, sink=sink
    )
