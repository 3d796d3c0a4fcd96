"""Deadline for the parts of one read. Slow and failed parts are reported; the other parts are used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..schemas.errors import OverBudget, Poison, Transient

T = TypeVar("T")
EMBEDDER = "embedder"
LINKS = "links"
EVENT = "event"
NAMES = "names"
HELPERS = frozenset((EMBEDDER, LINKS, EVENT, NAMES))
"""Parts that contain no memories. They only support search or ranking."""


@dataclass(frozen=True, slots=True)
class UnansweredPart:
    """A part of the read that did not answer."""

    part: str
    """`embedder`, `links`, `event`, `names`, `reranker`, `selection`, `groups`, or `<tier>.<search>`."""
    why: str


class DeadlineReads:
    """The parts of one read. Their common deadline is `patience` seconds after the creation of this object."""

    def __init__(self, *, patience: float) -> None:
        self._patience = patience
        self._begun = asyncio.get_running_loop().time()
        self._missing: list[UnansweredPart] = []
        self._answered = False

    @property
    def answered(self) -> bool:
        """True when a memory part has answered. Helper parts do not count."""
        return self._answered

    @property
    def silent(self) -> bool:
        """True when memory parts were asked and none has answered. Helper parts do not count."""
        return bool(self._missing) and not self._answered

    @property
    def missing(self) -> tuple[UnansweredPart, ...]:
        return tuple(sorted(self._missing, key=lambda each: each.part))

    async def ask(
        self, name: str, ask: Callable[[], Awaitable[T]], *, also: Sequence[str] = (), share: float = 1.0
    ) -> T | None:
        """Call `ask` and return its answer. If it fails, refuses or is slow, return None and add `name` to `missing`.

        `also`: names of further parts that the same request answers. `share`: fraction of the patience for this part.
        It is below 1 when later steps wait for this part.
        """
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
