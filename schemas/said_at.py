"""Times of what was said: as producers write them, with the offset of the speaker's clock."""

from __future__ import annotations

import math
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, StringConstraints, WithJsonSchema

TIME_ZONE_MAX: Final = 64
_MILLIS_FROM: Final = 2e10
"""A number from here on counts milliseconds: as seconds it lies after the year 2600."""


def in_utc(value: datetime) -> datetime:
    """Return the time in UTC. ValueError: it lies outside the years 1 to 9999."""
    try:
        return value.astimezone(UTC)
    except OverflowError:  # an offset at the first or last representable time; pydantic only handles ValueError
        raise ValueError("lies outside the years 1 to 9999 in UTC") from None


def _checked(value: datetime) -> datetime:
    in_utc(value)
    return value


def zone_named(name: str) -> tzinfo:
    """Return a time zone by its IANA name. ValueError: there is none of this name."""
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r}; write an IANA name such as Europe/Lisbon, or UTC") from None


def in_zone(at: datetime, zone: tzinfo | None) -> datetime:
    """Return a time by the clock of a zone; as it is without a zone, and at the ends of the calendar."""
    try:
        return at if zone is None else at.astimezone(zone)
    except OverflowError:
        return at


def _read_time(value: object) -> datetime | None:
    """Read a time as chat services write it; None when it is none. A time without an offset is UTC."""
    try:
        if isinstance(value, bool):
            return None
        if isinstance(value, str) and value.strip().replace(".", "", 1).isdigit():
            value = float(value)
        if isinstance(value, int | float):
            seconds = value / 1000 if value >= _MILLIS_FROM else float(value)
            return datetime.fromtimestamp(seconds, UTC) if math.isfinite(seconds) and seconds > 0 else None
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip())
        return _checked(found if found.tzinfo is not None else found.replace(tzinfo=UTC))
    except (ValueError, OverflowError, OSError):
        return None


def _read_zone(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) and len(value) <= TIME_ZONE_MAX else None


LocalInstant = Annotated[AwareDatetime, AfterValidator(_checked)]
"""A time with the offset that its producer wrote: RFC 3339, microseconds at most."""
SaidAt = Annotated[
    AwareDatetime | None,
    BeforeValidator(_read_time),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]}),
]
"""The time of a message: RFC 3339 with any offset, or seconds or milliseconds since 1970. What is no time is absent."""
TimeZoneName = Annotated[
    Annotated[str, StringConstraints(max_length=TIME_ZONE_MAX)] | None, BeforeValidator(_read_zone)
]
"""An IANA name such as `Europe/Lisbon`. What is no text is absent."""
