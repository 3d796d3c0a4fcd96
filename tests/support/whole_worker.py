"""One worker with every stage, for all tests of a module: on the run's Kafka broker and on a folder of its own.

Starting stages and joining groups takes seconds; what is asked of them takes tens of milliseconds.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any

from memstream.schemas.topics import STAGES

from .model_server import ModelServer
from .pipeline import Json, Pipeline, running
from .pipeline_places import Place

EMBEDDED_PARTITIONS = "4"
"""Several, so that records can lie wrong there too."""
SESSION_TIMEOUT = "10"
"""Four stages that start in one process on a busy machine may not be heard of for some seconds."""


OF_THE_ROW = frozenset(
    ("fact_id", "event_id", "entry_id", "observation_id", "episode_id", "message_id", "turn_sha256", "supersedes",
     "superseded_by", "other_fact_id", "source_episode_ids", "observation_ids", "run_id")
)  # fmt: skip
"""Derived from the ids that differ between two users who said the same."""
OF_THE_MOMENT = frozenset(
    ("at", "recorded_at", "expired_at", "updated_at", "consolidated_at", "last_reinforced_at", "usage", "prompt")
)


def told(value: Any, **names: str) -> Any:
    """A row or event without what depends on whose it is (`USER="u1"`: that id by that name) or on the moment."""
    if isinstance(value, dict):
        kept = value.keys() - OF_THE_ROW - OF_THE_MOMENT
        return {name: told(item, **names) for name, item in value.items() if name in kept}
    if isinstance(value, list):
        return [told(item, **names) for item in value]
    return next((name for name, given in names.items() if value == given), value)


def parsed(value: bytes | None) -> Json:
    """The JSON object, or an empty one: other tests leave all kinds of things on the shared broker."""
    try:
        fields = json.loads(value or b"")
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


@contextlib.asynccontextmanager
async def whole(
    place: Place,
    model: ModelServer,
    *,
    policy: str = "",
    env: Mapping[str, str] | None = None,
    held_to: Collection[str] | None = None,
) -> AsyncIterator[Pipeline]:
    """Topics made and one worker of all stages started; `policy` is its memstream.toml. At the end the invariants
    hold (`held_to`: only these, where tests write what stages would), the worker must still be that one, and end
    well."""
    settings = {"MEMSTREAM_SESSION_TIMEOUT": SESSION_TIMEOUT}
    if place.qdrant is None:
        settings["MEMSTREAM_PARTITIONS"] = EMBEDDED_PARTITIONS
    async with running(place.pipeline(model, env=settings | dict(env or {}), policy=policy)) as pipeline:
        worker = pipeline.spawn(*STAGES)
        yield pipeline
        if pipeline.workers:
            await pipeline.settled()
            await pipeline.verified(invariants=held_to)
        assert worker.poll() is None or worker not in pipeline.workers, f"exit {worker.returncode}\n{pipeline.logs()}"
        pipeline.stop()
