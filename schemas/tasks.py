"""Tasks of models. Each task has the name of the JSON schema of its answer (docs/reference/models.md)."""

from __future__ import annotations

from typing import Final, Literal, get_args

Task = Literal[
    "observations",
    "evidence",
    "consolidation",
    "prune",
    "judge",
    "digest",
    "summary",
    "gist",
    "insights",
    "procedures",
    "selection",
]

TASKS: Final[tuple[Task, ...]] = get_args(Task)


def names_in(text: str) -> tuple[str, ...]:
    """Split a comma-separated list of models' names. Drop duplicates, keep the order."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
