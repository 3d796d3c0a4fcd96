"""One model call: within the budget, through the tenant's circuit breaker, with a time limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from pydantic import JsonValue

from ...adapters.ports import Completion, CompletionRequest, Completions, Message, Usage
from ...memory.language.clean_text import clean_value
from ...memory.secrets.secret_filter import SecretFilter
from ...schemas.errors import OverBudget, Poison, Transient
from ...schemas.observations import TokenUsage
from ...schemas.tasks import Task
from ...streams.engine.retry import Calls
from .tier_spending import TierSpending

A = TypeVar("A")
_MODEL = "model"


@dataclass(frozen=True, slots=True)
class ModelQuestion(Generic[A]):
    """A model call to make. `task` names the answer's schema. `name` names the prompt, for `cause.prompt`."""

    task: Task
    name: str
    messages: tuple[Message, ...]
    schema: Mapping[str, JsonValue]
    parse: Callable[[JsonValue], A]


@dataclass(frozen=True, slots=True)
class CallStopped:
    """The reason why there is no answer.

    paused: the tier or the budget forbids the call. deferred: the model is not available. failed: the answer was
    unusable, even after one repair. `retry_after`: seconds until a retry can succeed. It is set when the pause ends at
    a known time, or when the server asks for a longer wait than `ModelCaller.patience`.
    """

    status: Literal["paused", "deferred", "failed"]
    why: str
    poison: Poison | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class ModelCaller:
    """Caller of models. `patience`: seconds that a call waits for an unreachable model.

    Each answer is cleaned and passes the secret filter before it is parsed.
    """

    completions: Completions
    calls: Calls
    spending: TierSpending
    patience: float
    secrets: SecretFilter

    async def ask(self, tenant_id: str, question: ModelQuestion[A]) -> Completion[A] | CallStopped:
        """Return the answer, or the reason why there is none. Raises Fatal and Relinquished."""
        paused = self.spending.paused(question.task)
        if paused is not None:
            return CallStopped("paused", str(paused))
        try:
            return await self._complete(tenant_id, question)
        except Poison as error:
            return CallStopped("failed", str(error), poison=error)
        except OverBudget as error:
            return CallStopped("paused", f"{error}: {error.remedy}", retry_after=error.retry_after)
        except Transient as error:
            remedy = f" ({error.remedy})" if error.remedy else ""
            why = f"the model is not available, the call is retried later: {error}{remedy}"
            retry_after = error.retry_after if (error.retry_after or 0.0) > self.patience else None
            return CallStopped("deferred", why, retry_after=retry_after)

    async def _complete(self, tenant_id: str, question: ModelQuestion[A]) -> Completion[A]:
        breaker = model_breaker(tenant_id)
        if self.calls.breaker_open(breaker):
            raise Transient("model", "its breaker is open")
        request = CompletionRequest(
            task=question.task,
            tenant_id=tenant_id,
            messages=question.messages,
            json_schema=question.schema,
            parse=lambda answer: question.parse(self.secrets.value(clean_value(answer)).value),
        )
        return await self.calls.call(breaker, lambda: self.completions.complete(request), give_up_after=self.patience)


def model_breaker(tenant_id: str) -> str:
    """Return the breaker's name. Each tenant has its own breaker: a failed model affects one tenant."""
    return f"{_MODEL}:{tenant_id}"


def tenant_of_breaker(breaker: str) -> str | None:
    """Return the tenant whose model this breaker protects, or None for a breaker of another component."""
    component, _, tenant_id = breaker.partition(":")
    return tenant_id if component == _MODEL else None


def token_usage(usage: Usage) -> TokenUsage:
    return TokenUsage(calls=usage.calls, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
