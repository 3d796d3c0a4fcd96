"""Which model is asked for what."""

from __future__ import annotations

from dataclasses import dataclass

from ...schemas.tasks import TASKS, Task
from .checks import require


@dataclass(frozen=True, slots=True)
class ModelsPolicy:
    """A task's own model, or several with commas: the others are its fallbacks. Empty: MEMSTREAM_MODEL. In the file it
    is the table [models]."""

    observations: str = ""
    consolidation: str = ""
    prune: str = ""
    judge: str = ""
    digest: str = ""
    summary: str = ""
    gist: str = ""
    insights: str = ""
    procedures: str = ""
    selection: str = ""

    def __post_init__(self) -> None:
        for task, names in self.given.items():
            each_named = all(name.strip() for name in names.split(","))
            require(each_named, f"models.{task} must be a model's name, or several with commas, not {names!r}")

    @property
    def given(self) -> dict[Task, str]:
        """By task, where it has its own."""
        every: dict[Task, str] = {task: getattr(self, task) for task in TASKS}
        return {task: names for task, names in every.items() if names}
