"""Parts of a collection that is partitioned by period, as listed by the aliases in Qdrant.

A part is one collection of the engine. Its alias contains its period (`turns_2026q4`). A part that was filled before
periods existed has the bare alias (`turns`) and the alias of its assigned period.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from ....schemas.periods import Period, parse_period, period_collection


@dataclass(frozen=True, slots=True)
class PeriodPart:
    """One collection of the engine, and the periods of its records."""

    collection: str
    behind: str
    """The collection's own name. The alias points to it."""
    periods: tuple[Period, ...] = ()
    """Ascending, mostly one period. Empty: no period is assigned to this part yet."""
    taken_over: bool = False
    """True when the part existed before its period was assigned. The period was then assigned by a worker's clock."""

    @property
    def name(self) -> str:
        """The alias for all requests. Writes are queued by this name, so a second alias for the same collection would
        break the order of writes to a point."""
        return period_collection(self.collection, self.periods[-1]) if self.periods else self.collection

    @property
    def ends(self) -> datetime | None:
        """The end of the part's last period; None before a period is assigned."""
        return self.periods[-1].ends if self.periods else None


def parts_of(collection: str, aliases: Mapping[str, str]) -> tuple[PeriodPart, ...]:
    """Return the parts of a collection, newest first. `aliases` maps an alias to its collection."""
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
    """Return the parts whose last period ended by `before`."""
    return tuple(part for part in parts if part.ends is not None and part.ends <= before)


def forgotten(collection: str, names: Iterable[str], aliases: Mapping[str, str], *, before: datetime) -> list[str]:
    """Return collections of ended periods that have no alias, left over from an interrupted deletion. `names` has the
    own names of all collections of the engine."""
    used = set(aliases.values())
    found = []
    for name in names:
        named = parse_period(name.partition("__")[0])
        if name not in used and named is not None and named[0] == collection and named[1].ends <= before:
            found.append(name)
    return found
