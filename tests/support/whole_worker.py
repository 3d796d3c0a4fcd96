"""One worker with every stage for all tests of a module, on the run's broker or on a folder of its own.

Starting stages and joining groups takes seconds; a test of them takes tens of milliseconds.
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
"""Several partitions, so that records can be misplaced on a folder too."""
SESSION_TIMEOUT = "10"
"""Four stages that start in one process on a busy machine may send no heartbeat for some seconds."""


OF_THE_ROW = frozenset(
    ("fact_id", "event_id", "entry_id", "observation_id", "episode_id", "message_id", "turn_sha256", "supersedes",
     "superseded_by", "other_fact_id", "source_episode_ids", "observation_ids", "run_id")
)  # fmt: skip
"""Ids that are derived from the ids in which two users differ."""
OF_THE_MOMENT = frozenset(
    ("at", "recorded_at", "expired_at", "updated_at", "consolidated_at", "last_reinforced_at", "usage", "prompt")
)


def told(value: Any, **names: str) -> Any:
    """Return a row or event without user-specific ids and times (`USER="u1"` replaces that id by that name)."""
    if isinstance(value, dict):
        kept = value.keys() - OF_THE_ROW - OF_THE_MOMENT
        return {name: told(item, **names) for name, item in value.items() if name in kept}
    if isinstance(value, list):
        return [told(item, **names) for item in value]
    return next((name for name, given in names.items() if value == given), value)


def parsed(value: bytes | None) -> Json:
    """Parse a JSON object; return an empty one for anything else that other tests left on the shared broker."""
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
    """Create topics and start one worker of all stages; `policy` is its memstream.toml.

    At the end the invariants must hold (`held_to` limits them, where tests write what stages would), and the same
    worker must still run and end cleanly.
    """
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
