"""Environments of the processes that tests and bench programs start."""

from __future__ import annotations

import os
from pathlib import Path

SETTINGS = ("MEMSTREAM_", "OPENAI_", "QDRANT_")
"""Prefixes of the variables that the product reads."""


def clean_environment() -> dict[str, str]:
    """The environment of this process without settings of the product."""
    return {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}


def model_settings(base_url: str) -> dict[str, str]:
    """The settings of a worker that calls the scripted model at this url."""
    return {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "scripted", "MEMSTREAM_MODEL": "scripted-1"}


def worker_settings(broker: str, datadir: Path, *, session_timeout: float) -> dict[str, str]:
    """The settings that every worker of tests and bench programs has. `session_timeout` in seconds.

    All phases of consolidation run, and no ceiling stops them in the middle of a load.
    """
    return {
        "MEMSTREAM_BROKER": broker,
        "MEMSTREAM_DATADIR": str(datadir),
        "MEMSTREAM_SESSION_TIMEOUT": f"{session_timeout:g}",
        "MEMSTREAM_TIER": "full",
    }
