"""Turns whose call ends without an answer in time; see docs/reference/models.md.

A turn may be too much work for the model, or the model may be away. Each further time-out doubles the pause before the
next call, and the turn is then observed alone. Before the last call the observer asks the model a short question. If
the model does not answer it, the model is away, and the turn waits. If it does, and the turn gets no answer in time
again, the turn becomes a dead letter.
"""

from __future__ import annotations

from typing import Final

from pydantic import JsonValue

from ...adapters.ports import CompletionRequest, Completions, Message
from ...schemas.errors import Poison, TimedOut, Transient
from ...streams.engine.retry import Calls
from ..common.model_call import model_breaker
from .answer_schema import TASK, WORKING_ONLY

TIMEOUTS_MAX: Final = 5
"""Number of time-outs at which a turn becomes a dead letter."""
ANSWER_TOKENS: Final = 64
"""Maximum tokens of the answer to the short question. A longer answer shows as well that the model answers."""
_QUESTION: Final = (
    Message("system", 'Answer with an empty list: {"observations": []}'),
    Message("user", "[t1]\nuser: Hello."),
)


def is_last_try(timeouts: int) -> bool:
    """Return whether one more time-out makes the turn a dead letter."""
    return timeouts >= TIMEOUTS_MAX - 1


def pause_after(timeouts: int, patience: float) -> float:
    """Return the seconds before the next call about a turn with this many time-outs."""
    return patience * 2.0 ** (timeouts - 1)


async def is_answering(tenant_id: str, *, completions: Completions, calls: Calls) -> bool:
    """Return whether the model answers a short question. Raise OverBudget when the budget forbids the call."""
    request: CompletionRequest[JsonValue] = CompletionRequest(
        task=TASK,
        tenant_id=tenant_id,
        messages=_QUESTION,
        json_schema=WORKING_ONLY.schema(1),
        parse=lambda answer: answer,
        max_output_tokens=ANSWER_TOKENS,
    )
    try:
        await calls.call(
            model_breaker(tenant_id), lambda: completions.complete(request), give_up_after=0.0, tentative=True
        )
    except Poison:
        return True
    except Transient:
        return False
    return True


def given_up(timeouts: int, last: TimedOut) -> Poison:
    """Return the reason of the dead letter."""
    return Poison(
        "timed_out",
        f"{timeouts} calls about this turn got no answer in time ({last}), and the model answers a short question. "
        f"Raise MEMSTREAM_MODEL_TIMEOUT or use a faster model, then run memstream dlq redrive --reason timed_out",
    )
