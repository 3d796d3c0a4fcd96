"""Port through which a model asks what it may spend before each call, and reports what the call used.

The calls are counted at the connection, not in the stages. Only there it is known how many calls an answer takes (a
repair, a retry, a fallback with another price), and whether a failed call may have been charged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from .ports import Usage


class Reservation(Protocol):
    """The amount that is set aside for one call."""

    @property
    def max_output_tokens(self) -> int | None:
        """The limit of output tokens to send to the server. None: no limit."""
        ...

    def settle(self, usage: Usage | None) -> None:
        """Report the end of the call. None: the usage is unknown, so the whole reservation counts as spent."""
        ...


class Meter(Protocol):
    async def reserve(self, *, tenant_id: str, task: str, model: str, input_tokens: Callable[[], int]) -> Reservation:
        """Set aside the most that one call may cost. `input_tokens` bounds its prompt, and is called only where there
        is a ceiling. Raises `OverBudget`, and `Transient` when the amount spent so far cannot be read."""
        ...


class _AsMuchAsItLikes:
    @property
    def max_output_tokens(self) -> int | None:
        return None

    def settle(self, usage: Usage | None) -> None:
        return None


UNBOUNDED: Final[Reservation] = _AsMuchAsItLikes()


class Unmetered:
    """A meter without limits, for commands that are run by hand and deployments without a ceiling."""

    async def reserve(self, *, tenant_id: str, task: str, model: str, input_tokens: Callable[[], int]) -> Reservation:
        return UNBOUNDED
