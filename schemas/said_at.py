"""Times of statements in the formats of producers, with the offset of the speaker's clock."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, StringConstraints, WithJsonSchema

from .times import read_time

TIME_ZONE_MAX: Final = 64
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""A time up to this value comes from a clock that was not set, and counts as absent."""


def in_utc(value: datetime) -> datetime:
    """Return the time in UTC. Raise ValueError when it is outside the years 1 to 9999."""
    try:
        return value.astimezone(UTC)
    except OverflowError:  # an offset at the first or last representable time; pydantic only handles ValueError
        raise ValueError("is outside the years 1 to 9999 in UTC") from None


def _checked(value: datetime) -> datetime:
    in_utc(value)
    return value


def zone_named(name: str) -> tzinfo:
    """Return a time zone by its IANA name. Raise ValueError for an unknown name."""
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r}; write an IANA name such as Europe/Lisbon, or UTC") from None


def in_zone(at: datetime, zone: tzinfo | None) -> datetime:
    """Return a time in a zone. Without a zone, and at the limits of the calendar, the time stays unchanged."""
    try:
        return at if zone is None else at.astimezone(zone)
    except OverflowError:
        return at


def _read_time(value: object) -> datetime | None:
    """Read a time in the format of a chat service; None for other values. A time without an offset is UTC."""
    try:
        found = value if isinstance(value, datetime) else _of_any_clock(value)
        found = _checked(found if found.tzinfo is not None else found.replace(tzinfo=UTC))
    except (ValueError, TypeError):
        return None
    return found if found > _EPOCH else None


def _of_any_clock(value: object) -> datetime:
    try:
        return read_time(value)  # type: ignore[arg-type] # a value that is not JSON is not a time
    except ValueError:
        if not isinstance(value, str):
            raise
        return datetime.fromisoformat(value.strip())


def _read_zone(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) and len(value) <= TIME_ZONE_MAX else None


LocalInstant = Annotated[AwareDatetime, AfterValidator(_checked)]
"""A time with its producer's offset: RFC 3339, microseconds at most."""
SaidAt = Annotated[
    AwareDatetime | None,
    BeforeValidator(_read_time),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]}),
]
"""Time of a message: RFC 3339 with any offset, or a number since 1970. Other values count as absent."""
TimeZoneName = Annotated[
    Annotated[str, StringConstraints(max_length=TIME_ZONE_MAX)] | None, BeforeValidator(_read_zone)
]
"""An IANA name such as `Europe/Lisbon`. Other types count as absent."""
