"""Times in common formats: ISO 8601 with any offset, or a number since 1970."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import AwareDatetime, JsonValue, TypeAdapter, ValidationError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS_MAX: Final = 20_000_000_000
"""Maximum of a number in seconds (the year 2603). A greater number is in milliseconds, microseconds or nanoseconds. The
maximum of each unit is 1000 times the maximum of the unit before."""
_UNITS_MAX: Final = 4
_DIGITS: Final = re.compile(r"[-+]?\d+(?:\.\d*)?")
_NUMBER: Final = re.compile(r"-?\d{9,19}(?:\.\d{1,9})?")
"""A number in a text. A shorter number may be a year or a date."""
_ZONE: Final = re.compile(r"(?:\[!?[A-Za-z0-9_+/:=-]{1,64}\])+$")
"""Suffix with the name of a time zone and of a calendar, as java.time and Temporal write it."""
_LEAST: Final = 100_000_000
"""Smallest whole number that counts as a time (March 1973). A smaller positive number may be a year or a date, such as
20261120."""
_AWARE: Final = TypeAdapter[datetime](AwareDatetime)
_WANTED: Final = "send a text such as 2026-11-20T10:00:00Z, or the seconds or milliseconds since 1970"


def read_time(value: JsonValue) -> datetime:
    """Return the time with its original offset. Raise ValueError, whose message says which formats are accepted."""
    if isinstance(value, str):
        text = value.strip()
        if _NUMBER.fullmatch(text):
            return _of_number(float(text) if "." in text else int(text))
        return _of_text(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"is no time: {_WANTED}")
    return _of_number(value)


def _of_number(number: float) -> datetime:
    if not math.isfinite(number) if isinstance(number, float) else 0 < number < _LEAST:
        raise ValueError(f"is no time: {_WANTED}")
    unit = 1
    for _ in range(_UNITS_MAX):
        if abs(number) <= _SECONDS_MAX * unit:
            return _after_epoch(number, unit)
        unit *= 1_000
    raise ValueError("is outside the years 1 to 9999")


def _after_epoch(number: float, unit: int) -> datetime:
    try:
        if isinstance(number, int):
            seconds, rest = divmod(number, unit)
            return _EPOCH + timedelta(seconds=seconds, microseconds=rest * 1_000_000 // unit)
        return _EPOCH + timedelta(seconds=number / unit)
    except OverflowError:
        raise ValueError("is outside the years 1 to 9999") from None


def _of_text(text: str) -> datetime:
    text = _ZONE.sub("", text)
    if _DIGITS.fullmatch(text):
        raise ValueError(f"is no time: {_WANTED}")
    try:
        return _AWARE.validate_python(text)
    except ValidationError as error:
        if error.errors()[0]["type"] == "timezone_aware":
            raise ValueError("has no offset: end it with Z, or with an offset such as +02:00") from None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"is no time: {_WANTED}") from None
    if found.tzinfo is None:
        raise ValueError("has no offset: end it with Z, or with an offset such as +02:00")
    return found
