"""Periods of a collection that is partitioned by time: the quarters of a year, in UTC.

The collection of a period has the name of the whole collection and of the period: `turns_2026q4`. In Qdrant, this name
is an alias.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

_NAMED = re.compile(r"([a-z]+)_(\d{4})q([1-4])")
MONTHS = 3


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """A quarter of a year. Later periods compare as greater."""

    year: int
    quarter: int
    """From 1 to 4."""

    @classmethod
    def of(cls, at: datetime) -> Period:
        """Return the period of a time. The time must have a time zone."""
        utc = at.astimezone(UTC)
        return cls(utc.year, 1 + (utc.month - 1) // MONTHS)

    @property
    def begins(self) -> datetime:
        return datetime(self.year, 1 + MONTHS * (self.quarter - 1), 1, tzinfo=UTC)

    @property
    def ends(self) -> datetime:
        """Start of the next period."""
        return self.next.begins

    @property
    def next(self) -> Period:
        return Period(self.year + self.quarter // 4, self.quarter % 4 + 1)

    def __str__(self) -> str:
        return f"{self.year:04}q{self.quarter}"


def period_collection(collection: str, period: Period) -> str:
    """Return the name of a period's collection: `turns_2026q4`."""
    return f"{collection}_{period}"


def parse_period(name: str) -> tuple[str, Period] | None:
    """Return the collection and the period in a name. None: it is not the name of a period's collection."""
    found = _NAMED.fullmatch(name)
    return None if found is None else (found[1], Period(int(found[2]), int(found[3])))
