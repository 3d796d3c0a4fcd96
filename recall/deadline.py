"""Parts of a read that may be slow or away: each is asked until the deadline, and what did not answer is named."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..schemas.errors import Poison, Transient

T = TypeVar("T")
EMBEDDER = "embedder"
LINKS = "links"
HELPERS = frozenset((EMBEDDER, LINKS))
"""They hold no memory: what they say helps to ask for it, or to rank it."""


@dataclass(frozen=True, slots=True)
class UnansweredPart:
    """A part of the read that did not answer."""

    part: str
    """`embedder`, `links`, or `<tier>.<search>`."""
    why: str


class DeadlineReads:
    """Of one read. Made when it starts: every part has the rest of `patience`, in seconds."""

    def __init__(self, *, patience: float) -> None:
        self._patience = patience
        self._begun = asyncio.get_running_loop().time()
        self._missing: list[UnansweredPart] = []
        self._answered = False

    @property
    def silent(self) -> bool:
        """Parts of memory were asked, and not one has answered. Helpers are none."""
        return bool(self._missing) and not self._answered

    @property
    def missing(self) -> tuple[UnansweredPart, ...]:
        return tuple(sorted(self._missing, key=lambda each: each.part))

    async def ask(
        self, name: str, ask: Callable[[], Awaitable[T]], *, also: Sequence[str] = (), share: float = 1.0
    ) -> T | None:
        """Its answer; None, and its name among the missing, when it is away, refuses or is slow. `also`: parts that are
        asked in the same request. `share`: how much of the patience may be gone, for what others wait for."""
        try:
            async with asyncio.timeout_at(self._begun + share * self._patience):
                answer = await ask()
                self._answered |= name not in HELPERS
                return answer
        except TimeoutError:
            why = f"no answer within {share * self._patience:g} s"
        except (Transient, Poison) as error:
            why = str(error)
        self._missing += [UnansweredPart(each, why) for each in (name, *also)]
        return None
