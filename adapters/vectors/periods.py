"""The parts of a collection that is kept by period, as the aliases in Qdrant tell them.

A part is one collection of the engine. Its alias names its period (`turns_2026q4`). The part that an earlier version
filled, before there were periods, has the bare alias (`turns`), and that of the period that took it over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from ...schemas.periods import Period, parse_period, period_collection


@dataclass(frozen=True, slots=True)
class PeriodPart:
    """One collection of the engine, and the periods whose records it holds."""

    collection: str
    behind: str
    """The collection's own name, behind the alias."""
    periods: tuple[Period, ...] = ()
    """Ascending, mostly one. Empty: no period has taken this part over yet."""
    taken_over: bool = False
    """Whether it was there before its period: then its period says only what a worker's clock said."""

    @property
    def name(self) -> str:
        """The one alias that all requests use, so that writes to a point keep their order."""
        return period_collection(self.collection, self.periods[-1]) if self.periods else self.collection

    @property
    def ends(self) -> datetime | None:
        """When the last of its periods ends; None before a period took it over."""
        return self.periods[-1].ends if self.periods else None


def parts_of(collection: str, aliases: Mapping[str, str]) -> tuple[PeriodPart, ...]:
    """Return the parts of a collection, newest first. `aliases`: the collection behind each."""
    before = aliases.get(collection)
    behind: defaultdict[str, list[Period]] = defaultdict(list)
    if before is not None:
        behind[before] = []
    for alias, name in aliases.items():
        named = parse_period(alias)
        if named is not None and named[0] == collection:
            behind[name].append(named[1])
    parts = (PeriodPart(collection, name, tuple(sorted(periods)), name == before) for name, periods in behind.items())
    return tuple(sorted(parts, key=lambda part: part.periods, reverse=True))


def ended(parts: Iterable[PeriodPart], *, before: datetime) -> tuple[PeriodPart, ...]:
    """Return the parts whose last period ended by then."""
    return tuple(part for part in parts if part.ends is not None and part.ends <= before)


def forgotten(collection: str, names: Iterable[str], aliases: Mapping[str, str], *, before: datetime) -> list[str]:
    """Return collections of ended periods that have no alias: a server that stopped in the middle of a deletion leaves
    them. `names`: all collections of the engine, by their own names."""
    used = set(aliases.values())
    found = []
    for name in names:
        named = parse_period(name.partition("__")[0])
        if name not in used and named is not None and named[0] == collection and named[1].ends <= before:
            found.append(name)
    return found
