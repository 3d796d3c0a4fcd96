"""Decoded events of a lane, and access to the events that wait in the lane after the current event."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ...schemas.errors import Poison
from ..log.port import Record
from .failures import DecisionFailed
from .parking import retry_of

W = TypeVar("W")
W_co = TypeVar("W_co", covariant=True)


@dataclass(frozen=True, slots=True)
class RoutedEvent(Generic[W_co]):
    """A decoded event and its lane. Events of one lane are handled one after the other."""

    lane: str
    work: W_co


@dataclass(frozen=True, slots=True)
class UndecodableEvent:
    """An event that could not be decoded."""

    lane: str
    poison: Poison


@dataclass(frozen=True, slots=True)
class DecodeCrash:
    """An event at which the decoder failed with an unexpected exception."""

    lane: str
    failure: DecisionFailed


Routed = RoutedEvent[W] | UndecodableEvent | DecodeCrash
LookAhead = Callable[[], Iterator[tuple[Record, Routed[Any]]]]
"""Function that yields the events of the current event's lane that have not started, in order."""


def nothing_ahead() -> Iterator[tuple[Record, RoutedEvent[Any]]]:
    """Return no events, for a worker that holds one event at a time."""
    return iter(())


class QueuedEvents(Generic[W]):
    """The events that wait in the lane after the current event.

    A stage may decide the next events together with the current event (`StageDecision.covers`). `alone`: the stage must
    decide the current event alone, for example because a decision for several events failed.
    """

    def __init__(
        self,
        events: LookAhead = nothing_ahead,
        *,
        by_itself: Callable[[Record, str], bool] = lambda record, lane: False,
        ignored: Callable[[Record, W], bool] = lambda record, work: False,
        alone: bool = False,
    ) -> None:
        self._events = events
        self._ignored = ignored
        self._by_itself = by_itself
        self._alone = alone
        self.were_given = False
        """True when the stage has received any of these events."""

    def any(self) -> bool:
        """Return whether another event of the lane will reach the stage. Undecodable events never reach it."""
        return any(isinstance(routed, RoutedEvent) for _, routed in self._events())

    def next(self, at_most: int) -> list[tuple[Record, W]]:
        """Return up to `at_most` next events that the stage can decide together with the current event.

        The list ends before an event that must be handled alone: an undecodable or misplaced record, a record at which
        a worker hung, a retry of a parked key, or an event of an erased user.
        """
        found: list[tuple[Record, W]] = []
        for record, routed in self._events() if at_most > 0 and not self._alone else ():
            if not isinstance(routed, RoutedEvent) or retry_of(record) is not None:
                break
            if self._by_itself(record, routed.lane) or self._ignored(record, routed.work):
                break
            found.append((record, routed.work))
            if len(found) == at_most:
                break
        self.were_given = self.were_given or bool(found)
        return found
