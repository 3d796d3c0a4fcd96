"""Fallback models: when a model is unavailable, the next model is called until the first one is available again.

- unavailable (no answer in time, no connection, 5xx, 401, 402, 403, 404): the next model is called immediately
- busy (429): the call is retried (streams/engine/retry.py); after `patience`, which includes the wait that the server
  asks for, the model counts as unavailable
- unavailable, and the next model is free of charge (the offline rules): treated as busy, because the offline rules
  replace a model only during an outage, not after a single error
- the model refuses the request or gives an unusable answer: the model counts as available, and no other model is called

An unavailable model is not called for ten seconds. This time is longer if its server asks for a longer wait or the
failed call took longer. Then one call tests the model, while other calls go to the next model. When the test call gets
an answer, all calls return to the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, TypeVar

import structlog

from ...schemas.errors import OverBudget, Poison, Transient
from ..openai_errors import MODEL, RateLimited
from ..ports import Completion, CompletionRequest, Completions

A = TypeVar("A")
log = structlog.get_logger(__name__)

PROBE_AFTER: Final = 10.0
"""Minimum seconds without calls to an unavailable model. Circuit breakers use the same value."""


class _Link:
    """A model with a fallback, and its state. Times are monotonic, in seconds."""

    def __init__(self, completions: Completions, following: Completions, *, patience: float) -> None:
        self.completions = completions
        self.following = following
        self._patience = patience
        self._failing_since: float | None = None
        self._away_until: float | None = None
        self._probing = False

    def may_be_asked(self, now: float) -> bool:
        return self._away_until is None or (now >= self._away_until and not self._probing)

    def begin(self) -> bool:
        """Begin a call. Return True when this call tests whether the model is available again."""
        self._probing = self._away_until is not None
        return self._probing

    def end(self, probe: bool) -> None:
        """End a call, with any result."""
        if probe:
            self._probing = False

    def answered(self) -> None:
        if self._away_until is not None:
            log.info("model_is_back", model=self.completions.model)
        self._failing_since = self._away_until = None

    def failed(self, failure: Transient, *, began: float, now: float) -> bool:
        """Record a failed call, and return whether the next model is called."""
        if self._failing_since is None:
            self._failing_since = began
        requested_wait = failure.retry_after or 0.0
        is_waited_for = isinstance(failure, RateLimited) or not self.following.costs_money
        if is_waited_for and now + requested_wait - self._failing_since < self._patience:
            return False
        self._away_until = now + max(PROBE_AFTER, requested_wait, now - began)
        log.warning(
            "model_fell_over",
            model=self.completions.model,
            to=self.following.model,
            why=str(failure),
            remedy=failure.remedy,
        )
        return True


class FallbackCompletions:
    """`Completions` of the first available model. The last model is called whenever no earlier model is available.
    `patience`: seconds that a call is retried when the model is busy or its fallback is free of charge."""

    def __init__(
        self, models: Sequence[Completions], *, patience: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._links = [_Link(model, after, patience=patience) for model, after in pairwise(models)]
        self._last = models[-1]
        self.models = tuple(models)
        self._clock = clock

    @property
    def model(self) -> str:
        """The first model's name. A completion has the name of the model that answered."""
        return self._first.model

    @property
    def costs_money(self) -> bool:
        """True when the first model costs money."""
        return self._first.costs_money

    @property
    def by_rules(self) -> bool:
        """True when the first model is the rules. A completion has its own `by_rules`."""
        return self._first.by_rules

    async def complete(self, request: CompletionRequest[A]) -> Completion[A]:
        """Answer a request. When all models fail, raise the failure with the shortest wait."""
        failures: list[Transient | OverBudget] = []
        for link in self._links:
            began = self._clock()
            if not link.may_be_asked(began):
                continue
            probe = link.begin()
            try:
                completion = await link.completions.complete(request)
            except Transient as failure:
                if failure.component != MODEL or not link.failed(failure, began=began, now=self._clock()):
                    raise
                failures.append(failure)
            except Poison:
                link.answered()
                raise
            else:
                link.answered()
                return completion
            finally:
                link.end(probe)
        try:
            return await self._last.complete(request)
        except (Transient, OverBudget) as failure:
            raise min([*failures, failure], key=lambda each: each.retry_after or 0.0) from failure

    async def close(self) -> None:
        """Do nothing: the creator of the models closes them."""

    @property
    def _first(self) -> Completions:
        return self._links[0].completions if self._links else self._last
