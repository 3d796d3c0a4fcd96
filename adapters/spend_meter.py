"""The port by which a model asks what it may spend: before each call on the wire, and after it what it took.

On the wire and not in the stages, because there alone it is known how many calls an answer takes (a repair, a retry, a
fallback with another price), and whether a call that failed may have been charged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from .ports import Usage


class Reservation(Protocol):
    """What is set aside for one call."""

    @property
    def max_output_tokens(self) -> int | None:
        """So many the answer may have; the server is to be told. None: as many as it likes."""
        ...

    def settle(self, usage: Usage | None) -> None:
        """The call is over; None: nobody knows what it took, so all that was set aside counts as spent."""
        ...


class Meter(Protocol):
    async def reserve(self, *, tenant_id: str, task: str, model: str, input_tokens: Callable[[], int]) -> Reservation:
        """Set aside what one call may cost at most; `input_tokens` bounds its prompt, and is asked for only where there
        is a ceiling. Raises `OverBudget`, and `Transient` when what was spent cannot be looked up."""
        ...


class _AsMuchAsItLikes:
    @property
    def max_output_tokens(self) -> int | None:
        return None

    def settle(self, usage: Usage | None) -> None:
        return None


UNBOUNDED: Final[Reservation] = _AsMuchAsItLikes()


class Unmetered:
    """Nobody counts: commands that are run by hand, and deployments without a ceiling."""

    async def reserve(self, *, tenant_id: str, task: str, model: str, input_tokens: Callable[[], int]) -> Reservation:
        return UNBOUNDED
