"""Router that selects the model by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ...schemas.tasks import Task
from ..ports import Completion, CompletionRequest, Completions
from .fallbacks import FallbackCompletions

A = TypeVar("A")


class CompletionsByTask:
    """`Completions` that uses a task's own model, or `default` for a task without its own model. `made` has every model
    once; `close` closes these models."""

    def __init__(
        self, *, default: Completions, by_task: Mapping[Task, Completions], made: Sequence[Completions]
    ) -> None:
        self._default = default
        self._by_task: dict[str, Completions] = dict(by_task.items())
        self._made = made

    def of(self, task: Task) -> Completions:
        return self._by_task.get(task, self._default)

    def paid_models(self, task: Task) -> tuple[str, ...]:
        """Return the names of all paid models that may be called for the task, including fallbacks."""
        completions = self.of(task)
        several = completions.models if isinstance(completions, FallbackCompletions) else (completions,)
        return tuple(each.model for each in several if each.costs_money)

    @property
    def model(self) -> str:
        """The name of the default model."""
        return self._default.model

    @property
    def costs_money(self) -> bool:
        """True when the default model costs money. For a task, use `of(task).costs_money`."""
        return self._default.costs_money

    @property
    def by_rules(self) -> bool:
        """True when the default model is the rules. For a task, use `of(task).by_rules`."""
        return self._default.by_rules

    async def complete(self, request: CompletionRequest[A]) -> Completion[A]:
        """Answer a request with the model of its task."""
        return await self._by_task.get(request.task, self._default).complete(request)

    async def close(self) -> None:
        for completions in self._made:
            await completions.close()
