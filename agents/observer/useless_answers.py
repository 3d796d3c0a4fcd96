"""Runs of turns whose answers yield nothing: a model that is too small, or a form that it does not follow.

The count is a process's own. It is a warning for the operator and changes no decision.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from ...memory.facts.routing import Route, route
from ...memory.policies import MemoryPolicy
from ...schemas.observations import Observation, Observed

log = structlog.get_logger()

RUN_MIN: Final = 10
"""Number of turns in a row from which a run is reported. The log repeats it at each tenfold length."""
MODELS_MAX: Final = 32
"""Maximum number of models whose runs are kept. Beyond it, the model that answered longest ago is dropped."""
REASONS_SHOWN: Final = 5
_NO_REASONS: Final = frozenset(
    ("evicted", "message_unread", "observation_skipped", "pin_refused", "turn_cut", "turn_repaired", "unknown_id")
)
"""Names of metrics of a batch that say nothing about why a statement fell."""


@dataclass(slots=True)
class _Run:
    turns: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        named = ", ".join(f"{name} {count}" for name, count in self.reasons.most_common(REASONS_SHOWN))
        return f"{self.turns} turns in a row ({named})"


class UselessAnswers:
    """The current run of each model. An empty answer neither lengthens nor ends a run."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, _Run] = OrderedDict()

    def note(
        self, model: str, observed: Sequence[Observed], *, items: int, counted: Iterable[str], policy: MemoryPolicy
    ) -> None:
        """Count one answer. `items` is the number of statements in it, `counted` the names of metrics of its batch."""
        if not items:
            return
        kept = [each for turn in observed for each in turn.observations]
        if any(_is_useful(each, policy) for each in kept):
            self._runs.pop(model, None)
            return
        run = self._runs.setdefault(model, _Run())
        self._runs.move_to_end(model)
        if len(self._runs) > MODELS_MAX:
            self._runs.popitem(last=False)
        before, run.turns = run.turns, run.turns + len(observed)
        run.reasons.update(name for name in counted if name not in _NO_REASONS)
        run.reasons.update(_why_no_fact(each, policy) for each in kept)
        if any(before < mark <= run.turns for mark in (RUN_MIN, 10 * RUN_MIN, 100 * RUN_MIN)):
            log.warning(
                "answers_yield_nothing",
                model=model,
                turns=run.turns,
                reasons=dict(run.reasons),
                remedy="run memstream doctor: it tries the model and its forms",
            )

    def report(self) -> str:
        """Return the text about long runs for /readyz; empty when there is none."""
        long = [f"{model}: {run}" for model, run in self._runs.items() if run.turns >= RUN_MIN]
        return f"answers yield nothing: {'; '.join(long)} (memstream doctor)" if long else ""


def _is_useful(observation: Observation, policy: MemoryPolicy) -> bool:
    """Return whether an observation has an effect beyond the working set, or is all that the deployment asks for."""
    return policy.tiers.working_only or observation.retracts or route(observation, policy) != Route()


def _why_no_fact(observation: Observation, policy: MemoryPolicy) -> str:
    return "unimportant" if observation.importance < policy.capture.threshold else observation.durability
