"""One question to a model: within what may be spent, behind the tenant's breaker, for as long as patience lasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from pydantic import JsonValue

from ...adapters.ports import Completion, CompletionRequest, Completions, Message, Usage
from ...schemas.errors import OverBudget, Poison, Transient
from ...schemas.observations import TokenUsage
from ...schemas.tasks import Task
from ...streams.engine.retry import Calls
from .tier_spending import TierSpending

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class ModelQuestion(Generic[A]):
    """`task` is the schema's name; `name` says which prompt it is, for `cause.prompt`."""

    task: Task
    name: str
    messages: tuple[Message, ...]
    schema: Mapping[str, JsonValue]
    parse: Callable[[JsonValue], A]


@dataclass(frozen=True, slots=True)
class CallStopped:
    """No answer, and why. paused: it may not be asked. deferred: the model is away. failed: of no use after a repair.
    `retry_after`: seconds, of a pause that ends by itself, or that a server asks for beyond the patience."""

    status: Literal["paused", "deferred", "failed"]
    why: str
    poison: Poison | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class ModelCaller:
    """`patience`: seconds that a question waits for a model that is away."""

    completions: Completions
    calls: Calls
    spending: TierSpending
    patience: float

    async def ask(self, tenant_id: str, question: ModelQuestion[A]) -> Completion[A] | CallStopped:
        """Raises Fatal and Relinquished."""
        paused = self.spending.paused(question.task)
        if paused is not None:
            return CallStopped("paused", str(paused))
        try:
            return await self._asked(tenant_id, question)
        except Poison as refused:
            return CallStopped("failed", str(refused), poison=refused)
        except OverBudget as over:
            return CallStopped("paused", f"{over}: {over.remedy}", retry_after=over.retry_after)
        except Transient as away:
            remedy = f" ({away.remedy})" if away.remedy else ""
            why = f"the model is away, it is tried again: {away}{remedy}"
            asked_for = away.retry_after if (away.retry_after or 0.0) > self.patience else None
            return CallStopped("deferred", why, retry_after=asked_for)

    async def _asked(self, tenant_id: str, question: ModelQuestion[A]) -> Completion[A]:
        breaker = model_breaker(tenant_id)
        if self.calls.breaker_open(breaker):
            raise Transient("model", "its breaker is open")
        request = CompletionRequest(
            task=question.task,
            tenant_id=tenant_id,
            messages=question.messages,
            json_schema=question.schema,
            parse=question.parse,
        )
        return await self.calls.call(breaker, lambda: self.completions.complete(request), give_up_after=self.patience)


def model_breaker(tenant_id: str) -> str:
    """Name the breaker of a tenant: a tenant whose model is dead holds up nobody else."""
    return f"model:{tenant_id}"


def token_usage(usage: Usage) -> TokenUsage:
    return TokenUsage(calls=usage.calls, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
