"""Parts of a read that may be slow or away: each is asked until the deadline, and what did not answer is named."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..schemas.errors import Poison, Transient
from .searching import Missing

T = TypeVar("T")


class Parts:
    """Of one read. Made when it starts: every part has the rest of `patience`, in seconds."""

    def __init__(self, *, patience: float) -> None:
        self._patience = patience
        self._deadline = asyncio.get_running_loop().time() + patience
        self._missing: list[Missing] = []

    @property
    def missing(self) -> tuple[Missing, ...]:
        return tuple(sorted(self._missing, key=lambda each: each.part))

    async def ask(self, name: str, ask: Callable[[], Awaitable[T]]) -> T | None:
        """Its answer; None, and its name among the missing, when it is away, refuses or is slow."""
        try:
            async with asyncio.timeout_at(self._deadline):
                return await ask()
        except TimeoutError:
            self._missing.append(Missing(name, f"no answer within {self._patience:g} s"))
        except (Transient, Poison) as error:
            self._missing.append(Missing(name, str(error)))
        return None
