"""Factory for the models in MEMSTREAM_MODEL and the table [models]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import structlog

from ...schemas.tasks import Task, names_in
from ..addresses import without_credentials
from ..ports import Completions, Places, UsageSink
from ..spend_meter import Meter
from .fallbacks import FallbackCompletions
from .request_fields import RequestFields
from .router import CompletionsByTask

log = structlog.get_logger(__name__)

OFFLINE: Final = "offline"
DEFAULT_MODEL: Final = "gpt-5-mini"
PATIENCE: Final = 60.0
"""Seconds to retry a busy model before the next model is called."""


def create_completions(
    *,
    model: str | None,
    api_key: str | None,
    base_url: str | None,
    timeout: float,
    concurrency: int,
    places: Callable[[int], Places] | None = None,
    sink: UsageSink,
    models: Mapping[Task, str] | None = None,
    patience: float = PATIENCE,
    meter: Meter | None = None,
    requests: Mapping[str, RequestFields] | None = None,
) -> CompletionsByTask:
    """Create the models. `model` may list several names, separated by commas: the first model and its fallbacks.
    `models` has the model names of tasks with their own model. Without `model`, the other tasks use gpt-5-mini if there
    is a key, otherwise the offline rules.

    Each model may have `concurrency` concurrent calls; `places` creates the object that assigns these calls to tenants.
    `meter` reserves the cost before each paid call. `requests` has additional request fields, by model name. Nothing
    connects here. Raise ValueError when a setting is missing.
    """
    made: dict[str, Completions] = {}

    def one(name: str, setting: str) -> Completions:
        if name not in made:
            made[name] = _offline(sink) if name == OFFLINE else paid(name, setting)
        return made[name]

    def paid(name: str, setting: str) -> Completions:
        if not (api_key or base_url):
            raise ValueError(f"{setting} needs OPENAI_API_KEY (or OPENAI_BASE_URL of your own server)")
        from .openai import OpenAICompletions  # a lazy import: the client takes most of a second

        return OpenAICompletions(
            model=name,
            api_key=api_key,
            base_url=base_url,
            timeout=timeout,
            concurrency=concurrency,
            places=None if places is None else places(concurrency),
            sink=sink,
            meter=meter,
            fields=(requests or {}).get(name),
        )

    def chain(names: tuple[str, ...], setting: str) -> Completions:
        several = [one(name, setting) for name in names]
        return several[0] if len(several) == 1 else FallbackCompletions(several, patience=patience)

    default = names_in(model or "") or (DEFAULT_MODEL if api_key else OFFLINE,)
    by_task: dict[Task, Completions] = {}
    for task, given in (models or {}).items():
        by_task[task] = chain(names_in(given), f"models.{task} = {given!r}")
    completions = chain(default, f"MEMSTREAM_MODEL={model}")
    log.info(
        "model_chosen",
        model=default[0],
        fallbacks=default[1:],
        by_task=dict(models or {}),
        server=without_credentials(base_url or "default"),
    )
    if default[0] == OFFLINE:
        log.warning(
            "model_is_rules",
            note="it knows only simple English sentences; set OPENAI_API_KEY for a real model",
        )
    return CompletionsByTask(default=completions, by_task=by_task, made=tuple(made.values()))


def _offline(sink: UsageSink) -> Completions:
    from .offline import OfflineCompletions  # a lazy import: its patterns take 0.1 s to compile

    return OfflineCompletions(sink=sink)
