"""Several models for one: when the first is away the next is asked, and the first again as soon as it may be back.

- away (no answer in time, no connection, 5xx, 401, 402, 403, 404): the next is asked at once;
- busy (429): it is tried again (streams/engine/retry.py); beyond the patience, the time that it asks for included,
  it is away;
- away in whatever way, and the next one costs nothing: as busy. Rules stand in for a model that is away, not for one
  that stumbles;
- it refuses what it was shown, or answers what cannot be used: it answered, nobody else is asked.

A model that was passed on from is away: nobody asks it for ten seconds (or what its server asked for, or as long as it
took to fail). Then one call tries it, while the others go on to the next; when it answers, all come back to it.
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
"""Seconds that a model which is away is left alone, at least: as a breaker's."""


class _Link:
    """A model that has a next one, and how it is. Times are monotonic, seconds."""

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
        """Before a call; True when this one finds out whether it is back."""
        self._probing = self._away_until is not None
        return self._probing

    def end(self, probe: bool) -> None:
        """After a call, whatever became of it."""
        if probe:
            self._probing = False

    def answered(self) -> None:
        if self._away_until is not None:
            log.info("model_is_back", model=self.completions.model)
        self._failing_since = self._away_until = None

    def failed(self, failure: Transient, *, began: float, now: float) -> bool:
        """Whether the next one is asked."""
        if self._failing_since is None:
            self._failing_since = began
        asked = failure.retry_after or 0.0
        is_waited_for = isinstance(failure, RateLimited) or not self.following.costs_money
        if is_waited_for and now + asked - self._failing_since < self._patience:
            return False
        self._away_until = now + max(PROBE_AFTER, asked, now - began)
        log.warning(
            "model_fell_over",
            model=self.completions.model,
            to=self.following.model,
            why=str(failure),
            remedy=failure.remedy,
        )
        return True


class FallbackCompletions:
    """`Completions` of the first of these models that is not away; the last is always asked. `patience`: seconds that a
    model which is busy, or whose next one costs nothing, is waited for."""

    def __init__(
        self, models: Sequence[Completions], *, patience: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._links = [_Link(model, after, patience=patience) for model, after in pairwise(models)]
        self._last = models[-1]
        self.models = tuple(models)
        self._clock = clock

    @property
    def model(self) -> str:
        """The first; a completion names the one that answered."""
        return self._first.model

    @property
    def costs_money(self) -> bool:
        """Whether the first does."""
        return self._first.costs_money

    async def complete(self, request: CompletionRequest[A]) -> Completion[A]:
        """See the port. Of several failures the one leaves that asks for the least time."""
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
        """The models are closed by who made them."""

    @property
    def _first(self) -> Completions:
        return self._links[0].completions if self._links else self._last
