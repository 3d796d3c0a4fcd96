"""Port for spending limits: a model's client reserves the cost before each call, and reports the usage afterwards.

The client counts the calls, because only the client knows how many calls an answer takes (a repair, a retry, a fallback
with another price), and whether the server may have charged for a failed call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from .ports import Usage


class Reservation(Protocol):
    """Amount that is reserved for one call."""

    @property
    def max_output_tokens(self) -> int | None:
        """The limit of output tokens to send to the server. None: no limit."""
        ...

    def settle(self, usage: Usage | None) -> None:
        """Report the end of the call. None: the usage is unknown, so the whole reservation counts as spent."""
        ...


class Meter(Protocol):
    """Limit of spending: none (`Unmetered`), or accounts in the store (agents/common/budget_client.py)."""

    async def reserve(self, *, tenant_id: str, task: str, model: str, input_tokens: Callable[[], int]) -> Reservation:
        """Reserve the maximum cost of one call. `input_tokens` returns an upper bound for the tokens of the prompt. It
        is called only when there is a ceiling. Raise `OverBudget` when the cost exceeds a ceiling, and `Transient` when
        the amount spent so far cannot be read."""
        ...


class _UnlimitedReservation:
    @property
    def max_output_tokens(self) -> int | None:
        return None

    def settle(self, usage: Usage | None) -> None:
        return None


UNBOUNDED: Final[Reservation] = _UnlimitedReservation()


class Unmetered:
    """Meter without limits, for commands that are run by hand and deployments without a ceiling."""

    async def reserve(self, *, tenant_id: str, task: str, model: str, input_tokens: Callable[[], int]) -> Reservation:
        return UNBOUNDED
