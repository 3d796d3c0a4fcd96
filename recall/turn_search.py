"""Search in a user's recorded turns, newest first: by words, by time, and by the stage that a turn has reached.

The time is a condition of the store. Words and stage are compared here, so a page reads a limited number of turns, and
may have fewer turns than asked for while older turns follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .deadline import UnansweredPart
from .record_filters import RecordSelection
from .record_reader import TURNS_MAX, LoggedTurn, RecordReader, Sees
from .turn_trace import TurnOutcome, TurnStage, TurnTracer

READ_MAX: Final = 500
"""Maximum number of turns that a page compares with the words."""


@dataclass(frozen=True, slots=True)
class TurnSearch:
    """A turn must have all words, each in one of its messages, and the stage. Case does not matter."""

    words: tuple[str, ...] = ()
    stage: TurnStage | None = None

    @classmethod
    def of(cls, text: str, stage: TurnStage | None) -> TurnSearch:
        return cls(tuple(text.casefold().split()), stage)

    def says(self, turn: LoggedTurn) -> bool:
        said = [message.content.casefold() for message in turn.messages]
        return all(any(word in text for text in said) for word in self.words)


@dataclass(frozen=True, slots=True)
class FoundTurns:
    """A page. `next`: cursor of the next page, or None at the end."""

    turns: tuple[TurnOutcome, ...]
    missing: tuple[UnansweredPart, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class TurnFinder:
    """Reader of pages of turns with their outcomes. Raises Transient when the store does not answer."""

    reader: RecordReader
    tracer: TurnTracer

    async def page(
        self, selection: RecordSelection, search: TurnSearch, *, limit: int, cursor: str | None, sees: Sees
    ) -> FoundTurns:
        """Return a page of at most `limit` turns. Raises ValueError for a wrong limit or cursor."""
        said: list[LoggedTurn] = []
        for _ in range(READ_MAX // TURNS_MAX):
            page = await self.reader.log(selection, limit=limit - len(said), cursor=cursor)
            said += filter(search.says, page.items)
            cursor = page.next
            if cursor is None or len(said) == limit or not search.words:
                break
        traced = await self.tracer.trace_page(selection.tenant_id, said, sees=sees, ceiling=selection.ceiling)
        turns = tuple(each for each in traced.turns if search.stage in (None, each.stage))
        return FoundTurns(turns, traced.missing, cursor)
