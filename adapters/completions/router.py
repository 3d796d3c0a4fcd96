"""A model for each task: who is asked depends on what is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ...schemas.tasks import Task
from ..ports import Completion, CompletionRequest, Completions
from .fallbacks import FallbackCompletions

A = TypeVar("A")


class CompletionsByTask:
    """`Completions`: of a task's own model where it has one, else of the `default`. `made` are all models, each once,
    to be closed at the end."""

    def __init__(
        self, *, default: Completions, by_task: Mapping[Task, Completions], made: Sequence[Completions]
    ) -> None:
        self._default = default
        self._by_task: dict[str, Completions] = dict(by_task.items())
        self._made = made

    def of(self, task: Task) -> Completions:
        return self._by_task.get(task, self._default)

    def paid_models(self, task: Task) -> tuple[str, ...]:
        """The names of all that may be asked for it and cost money, fallbacks too."""
        completions = self.of(task)
        several = completions.models if isinstance(completions, FallbackCompletions) else (completions,)
        return tuple(each.model for each in several if each.costs_money)

    @property
    def model(self) -> str:
        """Of a task that has none of its own."""
        return self._default.model

    @property
    def costs_money(self) -> bool:
        """Whether that one does; for a task's own ask `of`."""
        return self._default.costs_money

    async def complete(self, request: CompletionRequest[A]) -> Completion[A]:
        """See the port."""
        return await self._by_task.get(request.task, self._default).complete(request)

    async def close(self) -> None:
        for completions in self._made:
            await completions.close()
