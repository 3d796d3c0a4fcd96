"""Deadline for the parts of one read. Parts that are slow or fail are named, and the others are used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..schemas.errors import OverBudget, Poison, Transient

T = TypeVar("T")
EMBEDDER = "embedder"
LINKS = "links"
HELPERS = frozenset((EMBEDDER, LINKS))
"""Parts that hold no memory themselves. They help to search or to rank."""


@dataclass(frozen=True, slots=True)
class UnansweredPart:
    """A part of the read that did not answer."""

    part: str
    """`embedder`, `links`, `reranker`, `selection`, `groups`, or `<tier>.<search>`."""
    why: str


class DeadlineReads:
    """The parts of one read. Every part may use what is left of `patience`, in seconds since this object was made."""

    def __init__(self, *, patience: float) -> None:
        self._patience = patience
        self._begun = asyncio.get_running_loop().time()
        self._missing: list[UnansweredPart] = []
        self._answered = False

    @property
    def silent(self) -> bool:
        """True when parts of memory were asked and none has answered. Helper parts do not count."""
        return bool(self._missing) and not self._answered

    @property
    def missing(self) -> tuple[UnansweredPart, ...]:
        return tuple(sorted(self._missing, key=lambda each: each.part))

    async def ask(
        self, name: str, ask: Callable[[], Awaitable[T]], *, also: Sequence[str] = (), share: float = 1.0
    ) -> T | None:
        """Return the answer of `ask`, or None and add `name` to the missing parts when it fails, refuses or is slow.
        `also` names parts that the same request asks. `share` limits the part to this share of the patience, because
        others wait for its answer."""
        try:
            async with asyncio.timeout_at(self._begun + share * self._patience):
                answer = await ask()
                self._answered |= name not in HELPERS
                return answer
        except TimeoutError:
            why = f"no answer within {share * self._patience:g} s"
        except (Transient, Poison, OverBudget) as error:
            why = str(error)
        self._missing += [UnansweredPart(each, why) for each in (name, *also)]
        return None
